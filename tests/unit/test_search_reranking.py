import asyncio
from collections.abc import Sequence
from pathlib import Path

import pytest

from gymsuite import ModelError
from gymsuite.search import Corpus, Document, Hit, Library
from gymsuite.search.embeddings import open_embeddings
from gymsuite.search.reranking import Reranked
from tests.stub_model import Reply, Request, serve

DOCS = [
    Document(id="a", text="car car car repair"),
    Document(id="b", text="car automobile engine"),
    Document(id="c", text="car flowers and bees"),
]


def vector(text: str) -> list[float]:
    return [float("engine" in text or "motor" in text), float("flowers" in text), 0.1]


def test_meaning_moves_what_words_put_last(tmp_path: Path) -> None:
    asked: list[Sequence[str]] = []

    async def embed(texts: Sequence[str]) -> Sequence[Sequence[float]]:
        asked.append(texts)
        return [vector(text) for text in texts]

    async def run() -> list[list[str]]:
        plain = await Library(Corpus("t", lambda: DOCS), lambda: tmp_path).open()
        reranked = Reranked(plain, embed)
        queries = ("car flowers", "car motor", "car motor", "nothing here")
        hits = [await reranked.search(query, 2) for query in queries]
        assert len(reranked) == 3
        assert await reranked.document("b") == DOCS[1]
        return [[hit.document.id for hit in found] for found in hits]

    flowers, motor, again, nothing = asyncio.run(run())
    assert flowers[0] == "c"
    assert "b" in motor
    assert motor == again
    assert nothing == []
    assert [len(texts) for texts in asked] == [4, 1, 1]  # documents are embedded once


def test_who_crowds_vectors_out_meanwhile_disturbs_nobody(tmp_path: Path) -> None:
    crowd = [Document(id=f"d{n}", text=f"crowd w{n}") for n in range(20_001)]

    async def embed(texts: Sequence[str]) -> Sequence[Sequence[float]]:
        await asyncio.sleep(0 if len(texts) > 1 else 0.05)
        return [vector(text) for text in texts]

    class All:
        """Finds everything."""

        def __len__(self) -> int:
            return len(crowd)

        async def search(self, query: str, limit: int) -> Sequence[Hit]:
            return [Hit(d, 1.0) for d in (crowd if query == "crowd" else crowd[:2])]

        async def document(self, document_id: str) -> Document | None:
            return None

    async def run() -> Sequence[Hit]:
        reranked = Reranked(All(), embed)
        await reranked.search("w0", 2)
        found, _ = await asyncio.gather(reranked.search("w0", 2), reranked.search("crowd", 2))
        return found

    assert len(asyncio.run(run())) == 2


def reply(request: Request, number: int) -> Reply:
    if request.headers.get("authorization") != "Bearer key":
        return Reply({"error": "no"}, status=401)
    texts = request.body["input"]
    rows = [{"index": n, "embedding": [float(len(t))]} for n, t in enumerate(texts)]
    return Reply({"data": rows[::-1] if texts != ["short"] else []})


def ask(key: str, texts: list[str]) -> Sequence[Sequence[float]]:
    async def run(base_url: str) -> Sequence[Sequence[float]]:
        async with open_embeddings(base_url, "m", key) as embed:
            return await embed(texts)

    with serve(reply) as server:
        return asyncio.run(run(server.base_url))


def test_an_endpoints_vectors_come_in_the_order_of_the_texts() -> None:
    assert ask("key", ["a", "bb", "ccc"]) == [[1.0], [2.0], [3.0]]


def test_no_vectors_are_a_failure() -> None:
    with pytest.raises(ModelError, match="status 401"):
        ask("wrong", ["a"])
    with pytest.raises(ModelError, match="0 embeddings for 1 texts"):
        ask("key", ["short"])
