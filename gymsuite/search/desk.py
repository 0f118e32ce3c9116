"""One episode at the library: its own document ids, and a log of what was shown and opened.

Ids are drawn from the episode's seed, so none can be learned by heart; `#1` also names the first
document that was shown in this episode, `#2` the second. The log is kept here, on our side: what
an agent claims to have opened is never asked.
"""

import copy
import hashlib
import html
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, Protocol

from gymsuite.search.documents import Document
from gymsuite.search.excerpts import Page, finds, page_of, words_of
from gymsuite.search.retriever import Hit, Retriever
from gymsuite.tools import Context, ToolError
from gymsuite.types import Model, Task

MOST_CITATIONS = 20
MOST_CALLS = 300
MOST_QUERY_CHARACTERS = 512
MOST_RESULTS = 20
_KEY = "gymsuite.search.desk"
_ID_CHARACTERS = 8
_LONGEST_NUMBER = 8
_SHORTEST_QUOTE, _LONGEST_QUOTE = 5, 40

Withheld = Callable[[Task], Collection[str]]
"""The ids of the documents that a task's episode must not find."""


class Citation(Model):
    """A document that supports the answer, and words of it that do."""

    document: str
    quote: str = ""


class Desk:
    """What one episode has seen of the library."""

    def __init__(self, retriever: Retriever, key: bytes, withheld: Collection[str]) -> None:
        self._retriever = retriever
        self._key = key
        self._withheld = withheld
        self._shown: dict[str, Document] = {}
        self._opened: dict[str, None] = {}
        self._calls = 0
        self._searches = 0
        self._citations: list[dict[str, Any]] = []
        self._confidence: float | None = None

    async def search(self, query: str, limit: int) -> list[tuple[str, Hit]]:
        """The hits with their ids of this episode, withheld documents left out."""
        self._call()
        if not query.strip():
            raise ToolError("the query is empty; give a few words to search for")
        if len(query) > MOST_QUERY_CHARACTERS:
            raise ToolError(f"the query is longer than {MOST_QUERY_CHARACTERS} characters")
        self._searches += 1
        hits = await self._retriever.search(query, limit + len(self._withheld))
        kept = [hit for hit in hits if hit.document.id not in self._withheld][:limit]
        return [(self._show(hit.document), hit) for hit in kept]

    def open(self, reference: str, number: int) -> tuple[str, Document, Page]:
        """A page of a document that was shown before; it counts as opened from now on."""
        self._call()
        name, document = self._resolve(reference)
        page = page_of(document.text, number)
        if page is None:
            count = (page_of(document.text, 1) or Page("", 1, 1)).total
            raise ToolError(f"document {name} has {count} page(s), none of number {number}")
        self._opened[document.id] = None
        return name, document, page

    def find(self, reference: str, pattern: str) -> tuple[str, list[tuple[int, str]]]:
        """Where a literal text occurs in a document that was shown before."""
        self._call()
        if not pattern.strip() or len(pattern) > MOST_QUERY_CHARACTERS:
            raise ToolError(f"give 1 to {MOST_QUERY_CHARACTERS} characters to find")
        name, document = self._resolve(reference)
        return name, finds(document.text, pattern)

    def cite(self, citations: Sequence[str | Citation], confidence: float | None) -> None:
        """Note what supports the answer; raises `ToolError` for what was never shown."""
        if len(citations) > MOST_CITATIONS:
            raise ToolError(f"cite {MOST_CITATIONS} documents at most")
        given = [Citation(document=c) if isinstance(c, str) else c for c in citations]
        self._citations = [self._checked(citation) for citation in given]
        self._confidence = confidence

    def fork(self) -> "Desk":
        """A second desk that has seen the same."""
        shared = {id(part): part for part in (self._retriever, *self._shown.values())}
        return copy.deepcopy(self, shared)

    def close(self) -> None:
        """Nothing is held: the library is not this episode's."""

    async def left(self) -> Mapping[str, Any]:
        """What the verifier may know: all ids are the corpus' own."""
        return {
            "citations": self._citations,
            "confidence": self._confidence,
            "opened": list(self._opened),
            "returned": [document.id for document in self._shown.values()],
            "searches": self._searches,
        }

    def _call(self) -> None:
        self._calls += 1
        if self._calls > MOST_CALLS:
            raise ToolError(f"all {MOST_CALLS} calls of this episode are used up; submit now")

    def _show(self, document: Document) -> str:
        secret = hashlib.blake2b(document.id.encode(), key=self._key).hexdigest()
        for length in range(_ID_CHARACTERS, len(secret)):
            name = secret[:length]
            if self._shown.setdefault(name, document).id == document.id:
                return name
        return secret

    def _resolve(self, reference: str) -> tuple[str, Document]:
        reference = reference.strip().strip("[]")
        if reference[:1] == "#" and reference[1:].isdecimal() and len(reference) < _LONGEST_NUMBER:
            names = list(self._shown)
            number = int(reference[1:])
            if 1 <= number <= len(names):
                return names[number - 1], self._shown[names[number - 1]]
        elif reference in self._shown:
            return reference, self._shown[reference]
        raise ToolError(
            f"no document {reference[:40]!r} was shown in this episode; "
            "use an id that `search` returned"
        )

    def _checked(self, citation: Citation) -> dict[str, Any]:
        _, document = self._resolve(citation.document)
        quote = words_of(html.unescape(citation.quote))
        return {
            "document": document.id,
            "opened": document.id in self._opened,
            "quote": " ".join(quote),
            "quoted": _SHORTEST_QUOTE <= len(quote) <= _LONGEST_QUOTE
            and f" {' '.join(quote)} " in f" {' '.join(words_of(html.unescape(document.text)))} ",
        }


class Shelf(Protocol):
    """Where an episode's documents are: a `Library`, or what chooses one for each task."""

    async def of(self, context: Context) -> Retriever:
        """The retriever for an episode."""
        ...


async def desk_of(context: Context, shelf: Shelf, withheld: Withheld) -> Desk:
    """The desk of an episode, made on first use; from then on its log goes to the verifier."""
    desk = context.state.get(_KEY)
    if not isinstance(desk, Desk):
        key = context.rng.getrandbits(128).to_bytes(16, "big")
        desk = Desk(await shelf.of(context), key, frozenset(withheld(context.task)))
        context.state[_KEY] = desk
    return desk
