"""Rows of a Parquet file: the only door to pyarrow."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from gymsuite.errors import DefinitionError, UsageError


def read_rows(path: Path) -> Iterator[Mapping[str, Any]]:
    """Yield the rows in their order, a batch in memory at a time."""
    try:
        from pyarrow import (  # type: ignore[import-untyped] # noqa: PLC0415 - optional, untyped
            parquet,
        )
    except ImportError as error:
        raise UsageError(
            f"{path}: Parquet needs the extra `parquet`: pip install 'gymsuite[parquet]'"
        ) from error
    try:
        with parquet.ParquetFile(path) as file:
            for batch in file.iter_batches(batch_size=4096):
                yield from batch.to_pylist()
    except (OSError, ValueError) as error:
        raise DefinitionError(f"{path}: not a readable Parquet file: {error}") from error
