import asyncio
import json
import socket
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import msgpack  # type: ignore[import-untyped]  # it has no types
import pytest

from gymsuite.errors import UsageError
from gymsuite.search import Corpus, Document, Hit, Library, Retriever
from gymsuite.serve.listening import open_server
from gymsuite.serve.retrieval import retrieval_app

DOCS = [
    Document(id="heron", title="The Heron", text="The grey heron nests by the weir."),
    Document(id="weir", title="The Weir", text="The weir was built in 1821."),
    Document(id="long", title="Long", text="heron " * 3000 + "the end", date="1990"),
]


class Broken:
    """A retriever that raises."""

    def __len__(self) -> int:
        return 0

    async def search(self, query: str, limit: int) -> Sequence[Hit]:
        raise OSError("the disk is gone")

    async def document(self, document_id: str) -> Document | None:
        raise OSError("the disk is gone")


@contextmanager
def served(retriever: Retriever) -> Iterator[tuple[str, int]]:
    """The server on a thread of its own."""
    ready, addresses = threading.Event(), list[str]()
    loop = asyncio.new_event_loop()
    end = asyncio.Event()

    async def run() -> None:
        async with open_server(retrieval_app(retriever)) as address:
            addresses.append(address)
            ready.set()
            await end.wait()

    thread = threading.Thread(target=lambda: loop.run_until_complete(run()))
    thread.start()
    try:
        assert ready.wait(30)
        host, _, port = addresses[0].removeprefix("http://").partition(":")
        yield host, int(port)
    finally:
        loop.call_soon_threadsafe(end.set)
        thread.join(30)
        loop.close()


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, int]]:
    cache: Path = tmp_path_factory.mktemp("cache")
    library = Library(Corpus("test", lambda: DOCS), lambda: cache)
    with served(asyncio.run(library.open())) as where:
        yield where


def post(
    address: tuple[str, int], path: str, body: bytes, content_type: str | None = "application/json"
) -> tuple[int, bytes, str]:
    connection = HTTPConnection(*address, timeout=30)
    headers = {"content-type": content_type} if content_type else {}
    connection.request("POST", path, body, headers)
    response = connection.getresponse()
    data = response.read()
    connection.close()
    return response.status, data, response.getheader("content-type") or ""


def ask(address: tuple[str, int], path: str, **body: Any) -> Any:
    status, data, _ = post(address, path, json.dumps(body).encode())
    assert status == 200, data
    return json.loads(data)


def test_search_r1_and_verl_get_a_list_for_each_query_with_scores(
    address: tuple[str, int],
) -> None:
    found = ask(address, "/retrieve", queries=["weir", "grey heron"], topk=2, return_scores=True)
    first, second = found["result"]
    assert first[0]["document"]["id"] == "weir"
    assert second[0]["document"]["contents"] == '"The Heron"\nThe grey heron nests by the weir.'
    assert second[0]["document"]["title"] == "The Heron"
    assert first[0]["score"] > first[1]["score"] > 0


@pytest.mark.parametrize("body", [{"return_scores": False}, {}, {"return_scores": None}])
def test_without_scores_documents_are_not_wrapped(
    address: tuple[str, int], body: dict[str, Any]
) -> None:
    found = ask(address, "/retrieve", queries=["weir"], **body)
    assert [document["id"] for document in found["result"][0]] == ["weir", "heron"]


def test_skyrl_sends_one_query_and_gets_a_list_of_one(address: tuple[str, int]) -> None:
    found = ask(address, "/retrieve", query="weir", topk=1, return_scores=True)
    assert [[hit["document"]["id"] for hit in hits] for hits in found["result"]] == [["weir"]]


@pytest.mark.parametrize("content_type", [None, "application/msgpack", "application/x-msgpack"])
def test_gem_speaks_messagepack(address: tuple[str, int], content_type: str | None) -> None:
    many = {"queries": ["weir"], "topk": 1, "return_scores": True}
    status, data, kind = post(address, "/retrieve", msgpack.packb(many), content_type)
    assert (status, kind) == (200, "application/msgpack")
    assert msgpack.unpackb(data)["result"][0][0]["document"]["id"] == "weir"
    one = {"query": "weir", "topk": 1, "return_scores": True}
    _, data, _ = post(address, "/retrieve", msgpack.packb(one), content_type)
    assert msgpack.unpackb(data)["result"][0]["document"]["id"] == "weir"


def test_the_queries_of_a_whole_batch_come_in_one_request(address: tuple[str, int]) -> None:
    found = ask(address, "/retrieve", queries=["weir", "heron"] * 1280, topk=1)["result"]
    assert len(found) == 2560
    assert {hits[0]["id"] for hits in found[::2]} == {"weir"}


def test_json_under_another_content_type_is_json(address: tuple[str, int]) -> None:
    body = b'{"query": "weir", "topk": 1}'
    for kind in ("text/plain", "application/x-www-form-urlencoded"):
        assert json.loads(post(address, "/retrieve", body, kind)[1])["result"][0][0]["id"] == "weir"
    packed = msgpack.packb({"query": "weir", "topk": 1})
    assert post(address, "/retrieve", packed, "application/octet-stream")[0] == 200


def test_an_answer_has_a_limit(tmp_path: Path) -> None:
    text = "weir " * 2000
    documents = [Document(id=str(n), text=text) for n in range(100)]
    library = Library(Corpus("long", lambda: documents), lambda: tmp_path)
    with served(asyncio.run(library.open())) as where:
        body = json.dumps({"queries": ["weir"] * 200, "topk": 100}).encode()
        status, data, _ = post(where, "/retrieve", body)
        assert (status, "smaller topk" in json.loads(data)["error"]) == (422, True)


def test_a_query_without_hits_is_an_empty_list(address: tuple[str, int]) -> None:
    for query in ("", "???", "unheardof", "\ud800"):
        assert ask(address, "/retrieve", queries=[query])["result"] == [[]]
    assert ask(address, "/retrieve", queries=[])["result"] == []
    assert ask(address, "/retrieve", queries=["weir " * 10_000])["result"][0][0]["id"] == "weir"


@pytest.mark.parametrize(
    ("body", "status", "said"),
    [
        (b"{", 400, "JSON"),
        (b"[]", 400, "object"),
        (b"[" * 100_000, 400, "JSON"),
        (b'{"q": 1}', 422, "queries"),
        (b'{"queries": [1]}', 422, "queries"),
        (b'{"queries": null}', 422, "queries"),
        (b'{"query": "x", "topk": 0}', 422, "topk"),
        (b'{"query": "x", "topk": 101}', 422, "topk"),
        (b'{"query": "x", "topk": true}', 422, "topk"),
        (b'{"query": "x", "topk": "3"}', 422, "topk"),
        (json.dumps({"queries": ["x"] * 4097}).encode(), 422, "4096 at most"),
        (json.dumps({"queries": ["x"] * 4096, "topk": 6}).encode(), 422, "fewer queries"),
        (b'{"query": "' + b"x" * (1 << 20) + b'"}', 413, "larger"),
        (b"\xff\xfe", 400, "JSON"),
    ],
)
def test_what_cannot_be_served_is_said(
    address: tuple[str, int], body: bytes, status: int, said: str
) -> None:
    got, data, _ = post(address, "/retrieve", body)
    assert got == status
    assert said in json.loads(data)["error"]


def test_searching_opening_and_finding(address: tuple[str, int]) -> None:
    hits = ask(address, "/search", query="heron", limit=1)["hits"]
    assert hits[0]["id"] == "long"
    assert "heron" in hits[0]["snippet"]
    page = ask(address, "/open", docid="long", page=5)
    assert page["text"].endswith("the end")
    assert (page["page"], page["pages"], page["date"]) == (5, 5, "1990")
    assert ask(address, "/find", id="long", text="THE END")["matches"][0]["page"] == 5
    assert ask(address, "/find", id="weir", text="heron")["matches"] == []


@pytest.mark.parametrize(
    ("path", "body", "status"),
    [
        ("/open", {"id": "nope"}, 404),
        ("/open", {"id": "weir", "page": 2}, 404),
        ("/open", {"id": "weir", "page": 0}, 422),
        ("/open", {}, 422),
        ("/find", {"id": "weir", "text": ""}, 422),
        ("/find", {"id": "nope", "text": "x"}, 404),
        ("/search", {"query": "x", "limit": 1000}, 422),
        ("/search", {"query": "x", "more": 1}, 422),
        ("/nowhere", {}, 404),
    ],
)
def test_other_mistakes_have_their_status(
    address: tuple[str, int], path: str, body: dict[str, Any], status: int
) -> None:
    assert post(address, path, json.dumps(body).encode())[0] == status


def test_health_says_how_large_the_corpus_is(address: tuple[str, int]) -> None:
    connection = HTTPConnection(*address, timeout=30)
    connection.request("GET", "/health")
    assert json.loads(connection.getresponse().read()) == {"status": "ok", "documents": 3}
    connection.close()


def test_a_retriever_that_fails_is_a_500_and_the_server_lives_on(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with served(Broken()) as address:
        for _ in range(2):
            status, _, _ = post(address, "/retrieve", b'{"query": "x"}')
            assert status == 500


def test_a_client_that_hangs_up_harms_nobody(address: tuple[str, int]) -> None:
    for part in (b"", b"POST /retrieve HTTP/1.1\r\ncontent-length: 99\r\n\r\n{", b"\x00\xff\r\n"):
        with socket.create_connection(address) as raw:
            raw.sendall(part)
    assert ask(address, "/retrieve", query="weir")["result"][0]


def test_many_clients_at_once_all_get_their_own_answers(address: tuple[str, int]) -> None:
    wrong: list[object] = []

    def client(number: int) -> None:
        connection = HTTPConnection(*address, timeout=60)
        for _ in range(20):
            query = ("weir built", "grey nests")[number % 2]
            connection.request("POST", "/retrieve", json.dumps({"query": query, "topk": 1}))
            response = connection.getresponse()
            hit = json.loads(response.read())["result"][0][0]["id"]
            if hit != ("weir", "heron")[number % 2]:
                wrong.append(hit)
        connection.close()

    threads = [threading.Thread(target=client, args=(number,)) for number in range(64)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_an_address_in_use_is_a_usage_error(address: tuple[str, int]) -> None:
    async def second() -> None:
        async with open_server(retrieval_app(Broken()), port=address[1]):
            pass

    with pytest.raises(UsageError, match="cannot listen on"):
        asyncio.run(second())
