"""Loads rows: from wherever they lie, in whatever dialect they are."""

from collections.abc import Collection
from pathlib import Path

from gymsuite.errors import DefinitionError, UsageError
from gymsuite.swe.dialects.table import read_row
from gymsuite.swe.rows import Row
from gymsuite.swe.sources import CACHE, read_source


def load_rows(
    source: str,
    *,
    split: str = "test",
    dialect: str = "",
    ids: Collection[str] = (),
    cache: Path = CACHE,
) -> tuple[Row, ...]:
    """Load the rows of a source, or those of them that `ids` names.

    `source` is a .json, .jsonl or .parquet file, a folder, a task repository, or the name of a data
    set in Hugging Face's cache. Without a `dialect`, each row's columns tell it. Raises
    `DefinitionError` for a row that is wrong, for two rows of one id, and where there is no row at
    all; `UsageError` for an id that no row has.
    """
    rows: dict[str, Row] = {}
    for columns in read_source(source, split, cache):
        row = read_row(columns, dialect)
        if row.instance_id in rows:
            raise DefinitionError(f"{columns.where}: a second row {row.instance_id!r}")
        rows[row.instance_id] = row
    if not rows:
        raise DefinitionError(f"{source}: it holds no row of split {split!r}")
    if missing := sorted(set(ids) - rows.keys()):
        raise UsageError(f"{source}: no row {missing[0]!r}; there are {len(rows)} rows")
    return tuple(row for name, row in rows.items() if not ids or name in ids)
