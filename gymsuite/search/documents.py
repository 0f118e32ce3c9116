"""Documents, and reading them from JSONL; a corpus is nothing but many of them."""

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any

from pydantic import BeforeValidator, Field, ValidationError

from gymsuite.errors import DefinitionError
from gymsuite.types import Model


def _numbered(name: object) -> object:
    """A number as an id: many corpora count their documents."""
    return str(name) if isinstance(name, int) and not isinstance(name, bool) else name


def _present(value: object) -> object:
    return "" if value is None else value


_Text = Annotated[str, BeforeValidator(_present)]


class Document(Model):
    """One text that can be found and opened. `meta` is carried, never searched."""

    id: Annotated[str, BeforeValidator(_numbered)] = Field(min_length=1)
    title: _Text = ""
    text: str
    url: _Text = ""
    date: _Text = ""
    meta: Annotated[Mapping[str, Any], BeforeValidator(lambda value: value or {})] = {}

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
            yield _document(row)
        except ValidationError as error:
            problem = error.errors()[0]
            where = ".".join(map(str, problem["loc"])) or "line"
            raise DefinitionError(
                f"{path}:{number}: {where}: {problem['msg']}; a document is "
                '{"id": ..., "title": ..., "text": ...}'
            ) from error


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
