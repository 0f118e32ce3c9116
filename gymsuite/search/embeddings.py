"""Embeddings from any OpenAI-compatible /embeddings endpoint, for `Reranked`."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

import httpx
from pydantic import BaseModel, ValidationError

from gymsuite.errors import ModelError
from gymsuite.search.reranking import Embed, Vector

_SECONDS = 60.0
_TRIES = 3


class _Embedding(BaseModel):
    index: int
    embedding: list[float]


class _Answer(BaseModel):
    data: list[_Embedding]


@asynccontextmanager
async def open_embeddings(
    base_url: str, model: str, api_key: str | None = None
) -> AsyncIterator[Embed]:
    """Open a client of one model. What it yields raises `ModelError` when there is no answer."""
    headers = {"authorization": f"Bearer {api_key}"} if api_key else {}
    url = f"{base_url.rstrip('/')}/embeddings"
    async with httpx.AsyncClient(headers=headers, timeout=_SECONDS, trust_env=False) as http:

        async def embed(texts: Sequence[str]) -> Sequence[Vector]:
            problem = ""
            for _ in range(_TRIES):
                try:
                    response = await http.post(url, json={"model": model, "input": list(texts)})
                except httpx.HTTPError as error:
                    problem = str(error) or type(error).__name__
                    continue
                if response.status_code == httpx.codes.OK:
                    return _vectors(response.content, len(texts))
                problem = f"status {response.status_code}"
            raise ModelError(f"no embeddings from {model}: {problem}")

        yield embed


def _vectors(data: bytes, count: int) -> list[list[float]]:
    try:
        answer = _Answer.model_validate_json(data)
    except ValidationError as error:
        raise ModelError("the embeddings endpoint answered nonsense") from error
    found = {row.index: row.embedding for row in answer.data}
    if found.keys() != set(range(count)):
        raise ModelError(f"{len(found)} embeddings for {count} texts")
    return [found[number] for number in range(count)]
