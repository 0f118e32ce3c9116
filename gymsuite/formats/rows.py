"""Rows of foreign files as strict values; what is wrong with a row names the file and the line."""

import csv
import io
import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from gymsuite.complaints import complaints
from gymsuite.errors import DefinitionError


class Row(BaseModel):
    """Base of foreign rows: frozen; what is not needed here may be there."""

    model_config = ConfigDict(frozen=True, extra="ignore")


RowId = Annotated[str, Field(min_length=1)]
"""The id of a row: never empty."""

R = TypeVar("R", bound=Row)


def read_json(path: Path, kind: type[R]) -> Iterator[R]:
    """Rows of a file that is one JSON array."""
    try:
        rows = json.loads(_text(path))
    except (ValueError, RecursionError) as error:
        raise DefinitionError(f"{path}: not JSON: {error}") from error
    if not isinstance(rows, list):
        raise DefinitionError(f"{path}: a JSON array is expected, not {type(rows).__name__}")
    yield from checked(path, enumerate(rows, 1), kind)


def read_jsonl(path: Path, kind: type[R]) -> Iterator[R]:
    """Rows of a file with one JSON object a line."""
    lines = ((n, line) for n, line in enumerate(_text(path).split("\n"), 1) if line.strip())
    yield from checked(path, _decoded(path, lines), kind)


def read_csv(path: Path, kind: type[R], *, delimiter: str = ",") -> Iterator[R]:
    """Rows of a CSV file whose first line names the columns."""
    reader = csv.DictReader(io.StringIO(_text(path), newline=""), delimiter=delimiter)
    try:
        yield from checked(path, ((reader.line_num, row) for row in reader), kind)
    except csv.Error as error:
        raise DefinitionError(f"{path}:{reader.line_num}: not CSV: {error}") from error


def checked(
    path: Path, rows: Iterable[tuple[int, Mapping[str, Any]]], kind: type[R]
) -> Iterator[R]:
    """Validate rows; raises `DefinitionError` with the row's number and what is wrong with it."""
    for number, row in rows:
        try:
            yield kind.model_validate(row)
        except ValidationError as error:
            raise DefinitionError(f"{path}:{number}: {complaints(error, 'row')}") from error


def _decoded(path: Path, lines: Iterable[tuple[int, str]]) -> Iterator[tuple[int, Any]]:
    for number, line in lines:
        try:
            yield number, json.loads(line)
        except (ValueError, RecursionError) as error:
            raise DefinitionError(f"{path}:{number}: not JSON: {error}") from error


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise DefinitionError(f"{path}: {error}") from error
