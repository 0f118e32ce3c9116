"""A corpus on disk: canonical lines in the order of their ids, and where each begins."""

import hashlib
import mmap
import os
import weakref
from array import array
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic_core import from_json

from gymsuite.errors import DefinitionError
from gymsuite.search.documents import Document

DOCUMENTS, OFFSETS = "documents.jsonl", "offsets"


@dataclass(frozen=True)
class Corpus:
    """Where documents come from. `digest` pins what they are; "" accepts whatever comes.

    `documents` is called only when the index has to be built.
    """

    name: str
    documents: Callable[[], Iterable[Document]]
    digest: str = ""


def ordered_lines(corpus: Corpus) -> list[bytes]:
    """The canonical lines, sorted by id.

    Raises `DefinitionError` for no documents, for two with one id, and for a corpus that is not
    the one its digest pins.
    """
    lines = {document.id: document.line() for document in _once(corpus)}
    if not lines:
        raise DefinitionError(f"corpus {corpus.name!r} has no documents")
    ordered = [lines[key] for key in sorted(lines)]
    if corpus.digest and (found := digest(ordered)) != corpus.digest:
        raise DefinitionError(
            f"corpus {corpus.name!r} has drifted: its documents hash to {found}, not to "
            f"{corpus.digest}; restore its source, or publish a new version of the tasks"
        )
    return ordered


def _once(corpus: Corpus) -> Iterable[Document]:
    seen: set[str] = set()
    for document in corpus.documents():
        if document.id in seen:
            raise DefinitionError(f"corpus {corpus.name!r} has two documents {document.id!r}")
        seen.add(document.id)
        yield document


def digest(lines: Iterable[bytes]) -> str:
    """The hash of canonical lines in the order of their ids."""
    hasher = hashlib.sha256()
    for line in lines:
        hasher.update(line)
        hasher.update(b"\n")
    return hasher.hexdigest()[:32]


def write_store(folder: Path, lines: Iterable[bytes]) -> None:
    """Write the lines and where each begins."""
    offsets = array("Q", [0])
    with (folder / DOCUMENTS).open("wb") as out:
        for line in lines:
            out.write(line)
            out.write(b"\n")
            offsets.append(offsets[-1] + len(line) + 1)
    with (folder / OFFSETS).open("wb") as out:
        offsets.tofile(out)


class Store:
    """Documents by number or id, from a folder that `write_store` filled.

    Documents are read, not mapped: what was read once would stay in this process's memory.
    """

    def __init__(self, folder: Path) -> None:
        self._descriptor = os.open(folder / DOCUMENTS, os.O_RDONLY | os.O_CLOEXEC)
        weakref.finalize(self, os.close, self._descriptor)
        with (folder / OFFSETS).open("rb") as file:
            offsets = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        self._offsets = memoryview(offsets).cast("Q")

    def __len__(self) -> int:
        return len(self._offsets) - 1

    def __getitem__(self, number: int) -> Document:
        return Document.model_construct(**self.row(number))

    def row(self, number: int) -> Mapping[str, Any]:
        """A document's fields, those that are empty left out."""
        start, end = self._offsets[number], self._offsets[number + 1]
        row: dict[str, Any] = from_json(os.pread(self._descriptor, end - start, start))
        return row

    def number(self, document_id: str) -> int | None:
        """The number of a document, or None if there is none of that id."""
        low, high = 0, len(self)
        while low < high:
            middle = (low + high) // 2
            if self.row(middle)["id"] < document_id:
                low = middle + 1
            else:
                high = middle
        return low if low < len(self) and self.row(low)["id"] == document_id else None
