"""The seam between those who search and whatever finds: an index here, or a server elsewhere."""

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from gymsuite.search.documents import Document


class Hit(NamedTuple):
    """A document that was found, and how well it fits; scores compare within one query only."""

    document: Document
    score: float


class Retriever(Protocol):
    """Finds documents. The same query gets the same hits in the same order, always."""

    def __len__(self) -> int:
        """How many documents there are."""
        ...

    async def search(self, query: str, limit: int) -> Sequence[Hit]:
        """The best hits, best first; equal scores by id. Nothing to search for finds nothing."""
        ...

    async def document(self, document_id: str) -> Document | None:
        """One document by its id, or None."""
        ...
