"""A retrieval server for trainers: every dialect of `/retrieve` in use, and search, open and find.

Dialects of POST /retrieve (sources: Search-R1's retrieval_server.py and the clients of verl, SkyRL
and GEM): `queries` (a list) or `query` (one), `topk`, `return_scores` true, false or missing; in
JSON, or in MessagePack, which is answered in MessagePack. Without scores documents are not wrapped.
One `query` in MessagePack gets its hits without the list around them.
"""

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

import msgpack  # type: ignore[import-untyped]  # it has no types
from pydantic import Field, ValidationError
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from gymsuite.complaints import complaints
from gymsuite.search.documents import Document
from gymsuite.search.excerpts import finds, page_of, snippet, words_of
from gymsuite.search.retriever import Hit, Retriever
from gymsuite.types import Model

MOST_BODY_BYTES = 1 << 20
MOST_QUERIES = 4096
"""Search-R1 sends the queries of a whole batch at once: 512 prompts with five rollouts each."""
MOST_RESULTS = 100
MOST_DOCUMENTS = 20_480
"""How many documents one request may ask for: queries times `topk`."""
MOST_ANSWER_CHARACTERS = 32 << 20
MOST_CONTENT_CHARACTERS = 8000
_DEFAULT_RESULTS = 3
_JSON, _MSGPACK = "application/json", "application/msgpack"


class _Bad(Exception):  # noqa: N818 - a reply rather than an error
    """What the client did wrong, and the status that says so."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status = status


class _Open(Model):
    """What /open takes; trainers call the id `docid`, too."""

    id: str
    page: int = Field(default=1, ge=1)


class _Find(Model):
    """What /find takes."""

    id: str
    text: str = Field(min_length=1, max_length=512)


class _Search(Model):
    """What /search takes."""

    query: str
    limit: int = Field(default=10, ge=1, le=MOST_RESULTS)


def retrieval_app(retriever: Retriever) -> Starlette:
    """The server over one retriever."""

    async def retrieve(body: Mapping[str, Any], packed: bool) -> Mapping[str, Any]:  # noqa: FBT001 - of the wire
        queries, single = _queries(body)
        topk = _topk(body)
        if len(queries) * topk > MOST_DOCUMENTS:
            raise _Bad(
                422,
                f"{len(queries)} queries with {topk} hits each; {MOST_DOCUMENTS} hits in one "
                "request at most: send fewer queries at a time",
            )
        scored = bool(body.get("return_scores"))
        found, size = [], 0
        for query in queries:
            hits = await retriever.search(query, topk)
            found.append(hits)
            size += sum(min(len(hit.document.text), MOST_CONTENT_CHARACTERS) for hit in hits)
            if size > MOST_ANSWER_CHARACTERS:
                raise _Bad(
                    422,
                    f"the answer is longer than {MOST_ANSWER_CHARACTERS} characters: send fewer "
                    "queries at a time, or a smaller topk",
                )
            await asyncio.sleep(0)  # a large request must not keep the others waiting
        result = [[_dialect(hit, scored) for hit in hits] for hits in found]
        return {"result": result[0] if single and packed else result}

    async def search(body: Mapping[str, Any], _: bool) -> Mapping[str, Any]:  # noqa: FBT001 - of the wire
        asked = _read(_Search, body)
        hits = await retriever.search(asked.query, asked.limit)
        return {"hits": _snippets(asked.query, hits)}

    async def open_document(body: Mapping[str, Any], _: bool) -> Mapping[str, Any]:  # noqa: FBT001 - of the wire
        asked = _read(_Open, _renamed(body))
        document = await _document(retriever, asked.id)
        page = page_of(document.text, asked.page)
        if page is None:
            raise _Bad(404, f"document {asked.id!r} has no page {asked.page}")
        return {
            "id": document.id,
            "title": document.title,
            "url": document.url,
            "date": document.date,
            "text": page.text,
            "page": page.number,
            "pages": page.total,
        }

    async def find(body: Mapping[str, Any], _: bool) -> Mapping[str, Any]:  # noqa: FBT001 - of the wire
        asked = _read(_Find, _renamed(body))
        document = await _document(retriever, asked.id)
        found = finds(document.text, asked.text)
        return {"matches": [{"page": page, "text": text} for page, text in found]}

    async def health(_: Request) -> Response:
        return _encode({"status": "ok", "documents": len(retriever)}, packed=False)

    return Starlette(
        routes=[
            Route("/retrieve", _endpoint(retrieve), methods=["POST"]),
            Route("/search", _endpoint(search), methods=["POST"]),
            Route("/open", _endpoint(open_document), methods=["POST"]),
            Route("/find", _endpoint(find), methods=["POST"]),
            Route("/health", health),
        ]
    )


_Handler = Callable[[Mapping[str, Any], bool], Awaitable[Mapping[str, Any]]]


def _endpoint(handle: _Handler) -> Callable[[Request], Awaitable[Response]]:
    """Decode, handle, and answer in the same encoding; what is wrong is said, never a traceback."""

    async def endpoint(request: Request) -> Response:
        packed = False
        try:
            data = await _body(request)
            packed = _is_packed(request, data)
            return _encode(await handle(_decode(data, packed=packed), packed), packed=packed)
        except _Bad as bad:
            return _encode({"error": str(bad)}, packed=packed, status=bad.status)

    return endpoint


async def _body(request: Request) -> bytes:
    data = bytearray()
    async for chunk in request.stream():
        data += chunk
        if len(data) > MOST_BODY_BYTES:
            raise _Bad(413, f"the request is larger than {MOST_BODY_BYTES} bytes")
    return bytes(data)


def _is_packed(request: Request, data: bytes) -> bool:
    """GEM's client sends MessagePack without a content type; JSON never begins like its maps."""
    said = request.headers.get("content-type", "")
    if "msgpack" in said or "json" in said:
        return "msgpack" in said
    return data.lstrip()[:1] != b"{"


def _decode(data: bytes, *, packed: bool) -> Mapping[str, Any]:
    try:
        body = msgpack.unpackb(data) if packed else json.loads(data)
    except (ValueError, msgpack.UnpackException, RecursionError) as error:
        raise _Bad(400, f"not readable {'MessagePack' if packed else 'JSON'}: {error}") from error
    if not isinstance(body, dict):
        raise _Bad(400, f"the body must be an object, not {type(body).__name__}")
    return body


def _encode(value: Mapping[str, Any], *, packed: bool, status: int = 200) -> Response:
    if packed:
        return Response(msgpack.packb(value), status, media_type=_MSGPACK)
    data = json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode(errors="replace")
    return Response(data, status, media_type=_JSON)


def _read(kind: type[Any], body: Mapping[str, Any]) -> Any:  # noqa: ANN401 - an instance of `kind`
    try:
        return kind.model_validate(dict(body))
    except ValidationError as error:
        raise _Bad(422, complaints(error)) from error


def _renamed(body: Mapping[str, Any]) -> dict[str, Any]:
    return {("id" if key == "docid" else key): value for key, value in body.items()}


def _queries(body: Mapping[str, Any]) -> tuple[Sequence[str], bool]:
    """The queries, and whether the client asked in the singular."""
    single = "queries" not in body and "query" in body
    given = [body["query"]] if single else body.get("queries")
    if isinstance(given, str):
        given = [given]
    if not isinstance(given, list) or not all(isinstance(query, str) for query in given):
        raise _Bad(422, 'give `queries`, a list of texts, or `query`, one: {"queries": ["..."]}')
    if len(given) > MOST_QUERIES:
        raise _Bad(422, f"{len(given)} queries in one request; {MOST_QUERIES} at most")
    return given, single


def _topk(body: Mapping[str, Any]) -> int:
    topk = body.get("topk")
    if topk is None:
        return _DEFAULT_RESULTS
    if not isinstance(topk, int) or isinstance(topk, bool) or not 1 <= topk <= MOST_RESULTS:
        raise _Bad(422, f"topk must be a whole number from 1 to {MOST_RESULTS}, not {topk!r:.40}")
    return topk


def _dialect(hit: Hit, scored: bool) -> Mapping[str, Any]:  # noqa: FBT001 - of the wire
    document = hit.document
    text = document.text[:MOST_CONTENT_CHARACTERS]
    shown = {
        "id": document.id,
        "contents": f'"{document.title}"\n{text}',
        "title": document.title,
        "text": text,
    }
    return {"document": shown, "score": hit.score} if scored else shown


def _snippets(query: str, hits: Sequence[Hit]) -> list[Mapping[str, Any]]:
    words = set(words_of(query))
    return [
        {
            "id": hit.document.id,
            "title": hit.document.title,
            "snippet": snippet(hit.document.text, words),
            "score": hit.score,
        }
        for hit in hits
    ]


async def _document(retriever: Retriever, document_id: str) -> Document:
    document = await retriever.document(document_id)
    if document is None:
        raise _Bad(404, f"no document {document_id[:80]!r}")
    return document
