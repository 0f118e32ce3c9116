"""The documentation in two editions: as it is, and with its facts rewritten by a seed.

The documents come from the image, and only their places and new values are kept here.
"""

import functools
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from gymsuite import Context, DefinitionError, OpenSandbox, Sandbox, SandboxSpec
from gymsuite.search import Corpus, Document, Library, Retriever
from gymsuite.suite import default_cache

SANDBOX = SandboxSpec(image="docdive")
SOURCE = "/corpus/documents.jsonl"
DIGESTS: Mapping[str, str] = {
    "true": "f89077869e1f45bc50405281fdf43faf",
    "perturbed": "7088230d794a75133be96e64a5d51275",
}
_MOST_BYTES = 64 << 20
_REWRITES = Path(__file__).with_name("rewrites.jsonl")


class Rewrite(NamedTuple):
    """A place in a page, and what stands there in the perturbed edition."""

    page: str
    start: int
    end: int
    value: str


class _NotBuilt(Exception):  # noqa: N818 - a signal: the image must be asked
    """There is no index of this edition yet."""


class Editions:
    """The libraries over both editions; each is built from the image when it is first needed."""

    async def of(self, context: Context) -> Retriever:
        """The library of an episode's edition."""
        edition = str(context.task.metadata["edition"])
        try:
            return await _closed(edition).open()
        except _NotBuilt:
            return await _build(edition, context.sandbox)

    async def open(self, edition: str, open_sandbox: OpenSandbox) -> Retriever:
        """The same outside of an episode."""
        try:
            return await _closed(edition).open()
        except _NotBuilt:
            async with open_sandbox(SANDBOX) as sandbox:
                return await _build(edition, sandbox)


@functools.cache
def _closed(edition: str) -> Library:
    """A library that opens only what is built; no documents are at hand here."""

    def missing() -> Iterator[Document]:
        raise _NotBuilt

    return Library(Corpus(_name(edition), missing, DIGESTS[edition]), default_cache)


async def _build(edition: str, sandbox: Sandbox) -> Retriever:
    data = await sandbox.read(SOURCE, max_bytes=_MOST_BYTES)
    if data is None:
        raise DefinitionError(f"image {SANDBOX.image!r} has no {SOURCE}; build it again")
    pages = edition_of(edition, read_pages(data))
    corpus = Corpus(_name(edition), lambda: pages, DIGESTS[edition])
    return await Library(corpus, default_cache).open()


def _name(edition: str) -> str:
    return f"docdive-v1, {edition} edition"


def read_pages(data: bytes) -> list[Document]:
    """The documents of the image's file."""
    return [Document.model_validate_json(line) for line in data.splitlines() if line.strip()]


def edition_of(edition: str, pages: Sequence[Document]) -> Sequence[Document]:
    """The pages as they are, or rewritten."""
    return pages if edition == "true" else rewritten(pages, read_rewrites())


def read_rewrites() -> list[Rewrite]:
    """All places that the perturbed edition rewrites."""
    with _REWRITES.open(encoding="utf-8") as lines:
        return [Rewrite(*json.loads(line)) for line in lines]


def rewritten(pages: Iterable[Document], rewrites: Iterable[Rewrite]) -> list[Document]:
    """Put the new values in their places, from the end of each page to its beginning."""
    places: dict[str, list[Rewrite]] = {}
    for rewrite in rewrites:
        places.setdefault(rewrite.page, []).append(rewrite)
    found = []
    for page in pages:
        text = page.text
        for place in sorted(places.get(page.id, ()), key=lambda p: p.start, reverse=True):
            text = text[: place.start] + place.value + text[place.end :]
        found.append(page.model_copy(update={"text": text}))
    return found
