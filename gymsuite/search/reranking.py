"""A second look at what an index found, by the meaning of its words: the hook for embeddings."""

import math
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Sequence

from gymsuite.search.documents import Document
from gymsuite.search.retriever import Hit, Retriever

Vector = Sequence[float]

Embed = Callable[[Sequence[str]], Awaitable[Sequence[Vector]]]
"""From texts to their vectors, in the same order; any model will do."""

_CANDIDATES = 50
_RANK_OFFSET = 60
_MOST_CHARACTERS = 2000
_KEPT_VECTORS = 20_000


class Reranked:
    """A retriever whose best hits are ordered by words and by meaning, with equal say.

    The two orders are fused by reciprocal ranks, which needs no scale in common. Vectors of
    documents are kept; equal scores go by id.
    """

    def __init__(self, retriever: Retriever, embed: Embed) -> None:
        self._retriever = retriever
        self._embed = embed
        self._vectors: OrderedDict[str, Vector] = OrderedDict()

    def __len__(self) -> int:
        return len(self._retriever)

    async def search(self, query: str, limit: int) -> Sequence[Hit]:
        """See `Retriever.search`."""
        found = await self._retriever.search(query, max(limit, _CANDIDATES))
        if not found:
            return []
        asked, *vectors = await self._look_up(query, [hit.document for hit in found])
        near = [_cosine(asked, vector) for vector in vectors]
        ids = [hit.document.id for hit in found]
        by_meaning = sorted(range(len(found)), key=lambda n: (-near[n], ids[n]))
        scores = [1 / (_RANK_OFFSET + place) for place in range(len(found))]
        for place, number in enumerate(by_meaning):
            scores[number] += 1 / (_RANK_OFFSET + place)
        order = sorted(range(len(found)), key=lambda n: (-scores[n], ids[n]))
        return [Hit(found[n].document, scores[n]) for n in order[:limit]]

    async def document(self, document_id: str) -> Document | None:
        """See `Retriever.document`."""
        return await self._retriever.document(document_id)

    async def _look_up(self, query: str, documents: Sequence[Document]) -> list[Vector]:
        """The query's vector, then those of the documents; only unknown texts are sent."""
        # Kept here: what others look up meanwhile may crowd them out.
        known = {d.id: self._vectors[d.id] for d in documents if d.id in self._vectors}
        unknown = [document for document in documents if document.id not in known]
        texts = [query, *(f"{d.title}\n{d.text}"[:_MOST_CHARACTERS] for d in unknown)]
        asked, *fresh = await self._embed(texts)
        new = {document.id: vector for document, vector in zip(unknown, fresh, strict=True)}
        vectors = {**known, **new}
        self._vectors.update(new)
        while len(self._vectors) > _KEPT_VECTORS:
            self._vectors.popitem(last=False)
        return [asked, *(vectors[document.id] for document in documents)]


def _cosine(one: Vector, two: Vector) -> float:
    length = math.hypot(*one) * math.hypot(*two)
    return math.fsum(a * b for a, b in zip(one, two, strict=True)) / length if length else 0.0
