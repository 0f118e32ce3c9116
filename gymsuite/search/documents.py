"""Documents, and reading them from JSONL; a corpus is nothing but many of them."""

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from pydantic import Field, ValidationError
from pydantic_core import from_json

from gymsuite.complaints import complaints
from gymsuite.errors import DefinitionError
from gymsuite.types import Model


class Document(Model):
    """One text that can be found and opened. `meta` is carried, never searched."""

    id: str = Field(min_length=1)
    title: str = ""
    text: str
    url: str = ""
    date: str = ""
    meta: Mapping[str, Any] = {}

    def line(self) -> bytes:
        """The document as one canonical line of JSON, without a line end."""
        return self.model_dump_json(exclude_defaults=True).encode()


def read_documents(path: Path) -> Iterator[Document]:
    """Read `.jsonl` or `.parquet`; raises `DefinitionError` that names the line.

    Both `{id, title, text, url?, date?, meta?}` and wiki-18's `{id, contents}` are understood.
    """
    if path.suffix == ".parquet":
        from gymsuite.search.parquet import read_rows  # noqa: PLC0415 - an optional dependency

        yield from _documents(path, enumerate(read_rows(path), 1))
        return
    try:
        with path.open("rb") as lines:
            rows = ((number, line) for number, line in enumerate(lines, 1) if line.strip())
            yield from _documents(path, rows)
    except OSError as error:
        raise DefinitionError(f"{path}: {error.strerror}; a corpus is a JSONL file") from error


def _documents(
    path: Path, rows: Iterable[tuple[int, bytes | Mapping[str, Any]]]
) -> Iterator[Document]:
    for number, row in rows:
        try:
            yield _tolerant(row)
        except ValidationError as error:
            raise DefinitionError(
                f"{path}:{number}: {complaints(error, 'line')}; a document is "
                '{"id": ..., "title": ..., "text": ...}'
            ) from error


def _tolerant(row: bytes | Mapping[str, Any]) -> Document:
    """A document, also where its id is a number or nulls stand for what is not there."""
    try:
        return _document(row)
    except ValidationError:
        fields = _fields(row)
        if fields is None:
            raise
    present = {key: value for key, value in fields.items() if value is not None}
    if isinstance(present.get("id"), int):
        present["id"] = str(present["id"])
    return _document(present)


def _fields(row: bytes | Mapping[str, Any]) -> Mapping[str, Any] | None:
    try:
        fields = from_json(row) if isinstance(row, bytes) else row
    except ValueError:
        return None
    return fields if isinstance(fields, Mapping) else None


def _document(row: bytes | Mapping[str, Any]) -> Document:
    if isinstance(row, bytes):
        if b'"contents"' not in row:
            return Document.model_validate_json(row)
        row = _Contents.model_validate_json(row).model_dump()
    if "contents" not in row:
        return Document.model_validate(row)
    contents = _Contents.model_validate(row)
    title, _, text = contents.contents.partition("\n")
    return Document(id=str(contents.id), title=title.strip().strip('"'), text=text)


class _Contents(Model):
    """A row of the wiki-18 corpus: the title in quotes, a line break, the text."""

    id: str | int
    contents: str
