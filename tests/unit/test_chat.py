"""The chat client against a server of ours on loopback."""

import asyncio
import json
import re
import socket
import sys
from typing import Any

import pytest
from pydantic import ValidationError

from gymsuite import Message, ModelError, ToolSchema, Truncated
from gymsuite.chat import ChatSettings, open_chat
from tests.stub_model import Reply, completion, serve

_HELLO = (Message(role="user", content="hello"),)
_KEY = "sk-very-secret-key"


@pytest.fixture(params=["aiohttp", "plain httpx"])
def transport(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Both ways to reach a server; the second is what an install without aiohttp has."""
    if request.param == "plain httpx":
        monkeypatch.setitem(sys.modules, "httpx_aiohttp", None)
    else:
        pytest.importorskip("httpx_aiohttp")
    return str(request.param)


def _ask(
    base_url: str,
    *,
    api_key: str | None = None,
    tools: tuple[ToolSchema, ...] = (),
    **settings: Any,
) -> Message:
    async def ask() -> Message:
        chosen = ChatSettings(base_url=base_url, model="m", **settings)
        async with open_chat(chosen, api_key) as client:
            return await client.complete(_HELLO, tools)

    return asyncio.run(ask())


def _free_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return int(taken.getsockname()[1])


def test_a_conversation_with_tools(transport: str) -> None:
    schema = ToolSchema(name="bash", description="d", parameters={"type": "object"})
    with serve(lambda *_: completion(None, ("bash", {"command": "ls"}))) as server:
        message = _ask(
            server.base_url, api_key=_KEY, tools=(schema,), temperature=0.5, seed=7, max_tokens=9
        )
    assert message.tool_calls[0].arguments == {"command": "ls"}
    assert message.usage is not None
    assert message.usage.input_tokens == 10
    (request,) = server.requests
    assert request.path == "/v1/chat/completions"
    assert request.headers["authorization"] == f"Bearer {_KEY}"
    assert request.body["messages"] == [{"role": "user", "content": "hello"}]
    assert request.body["tools"][0]["function"]["name"] == "bash"
    sent = {key: request.body[key] for key in ("model", "temperature", "seed", "max_tokens")}
    assert sent == {"model": "m", "temperature": 0.5, "seed": 7, "max_tokens": 9}


def test_options_that_are_not_set_are_not_sent() -> None:
    with serve(lambda *_: completion("hi")) as server:
        _ask(server.base_url)
    assert server.requests[0].body.keys() == {"model", "messages"}
    assert "authorization" not in server.requests[0].headers


def test_the_body_can_be_added_to() -> None:
    with serve(lambda *_: completion("hi")) as server:
        _ask(server.base_url, body={"top_k": 5, "model": "other"})
    assert server.requests[0].body["top_k"] == 5
    assert server.requests[0].body["model"] == "other"


def test_the_full_endpoint_may_stand_for_the_base_url() -> None:
    with serve(lambda *_: completion("hi")) as server:
        _ask(server.base_url + "/chat/completions/")
    assert server.requests[0].path == "/v1/chat/completions"


def test_passing_trouble_is_waited_out(transport: str) -> None:
    trouble = [Reply(b"busy", 503), Reply({"error": {"message": "x"}}, 500)]
    with serve(lambda _, n: trouble[n] if n < 2 else completion("hi")) as server:
        assert _ask(server.base_url).text == "hi"
    assert len(server.requests) == 3


def test_retry_after_is_waited_for() -> None:
    def answer(_: object, number: int) -> Reply:
        return completion("hi") if number else Reply(b"", 429, {"Retry-After": "0.3"})

    async def ask(url: str) -> float:
        started = asyncio.get_running_loop().time()
        async with open_chat(ChatSettings(base_url=url, model="m")) as client:
            await client.complete(_HELLO)
        return asyncio.get_running_loop().time() - started

    with serve(answer) as server:
        assert asyncio.run(ask(server.base_url)) >= 0.3


def test_a_wait_that_outlives_the_deadline_is_not_begun() -> None:
    wait = Reply({"error": {"message": "slow down"}}, 429, {"Retry-After": "30"})
    with serve(lambda *_: wait) as server, pytest.raises(ModelError, match="slow down") as caught:
        _ask(server.base_url, timeout_seconds=5)
    assert caught.value.retryable
    assert len(server.requests) == 1


def test_retries_end() -> None:
    with serve(lambda *_: Reply(b"", 500)) as server, pytest.raises(ModelError, match="status 500"):
        _ask(server.base_url, max_retries=2)
    assert len(server.requests) == 3


@pytest.mark.parametrize("status", [400, 401, 403, 404])
def test_a_request_that_is_wrong_is_not_repeated(status: int) -> None:
    reply = Reply({"error": {"message": "that is wrong"}}, status)
    with serve(lambda *_: reply) as server, pytest.raises(ModelError) as caught:
        _ask(server.base_url)
    assert len(server.requests) == 1
    assert not caught.value.retryable
    assert f"status {status}: that is wrong" in str(caught.value)
    assert server.base_url in str(caught.value)


def test_an_exhausted_account_is_not_worth_a_retry() -> None:
    reply = Reply({"error": {"message": "pay", "code": "insufficient_quota"}}, 429)
    with serve(lambda *_: reply) as server, pytest.raises(ModelError, match="pay") as caught:
        _ask(server.base_url)
    assert len(server.requests) == 1
    assert not caught.value.retryable


def test_a_gateways_error_inside_a_200_counts_as_its_status() -> None:
    trouble = Reply({"error": {"message": "upstream is down", "code": 502}})
    with serve(lambda _, n: completion("hi") if n else trouble) as server:
        assert _ask(server.base_url).text == "hi"


@pytest.mark.parametrize("body", [b"<html>hello</html>", b"", b"{}", {"choices": []}, [1]])
def test_garbage_is_a_model_error(body: Any) -> None:
    with (
        serve(lambda *_: Reply(body)) as server,
        pytest.raises(ModelError, match="no chat completion"),
    ):
        _ask(server.base_url)
    assert len(server.requests) == 1


@pytest.mark.parametrize("raw", [b"SSH-2.0-OpenSSH\r\n\r\n", b"HTTP/1.1 200 OK\r\nContent-"])
def test_a_server_that_speaks_no_http_is_a_model_error(raw: bytes, transport: str) -> None:
    with serve(lambda *_: Reply(None, raw=raw)) as server, pytest.raises(ModelError):
        _ask(server.base_url, max_retries=1)
    assert len(server.requests) == 2


def test_a_response_cut_short_is_asked_for_again(transport: str) -> None:
    cut = b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{"
    with serve(lambda _, n: completion("hi") if n else Reply(None, raw=cut)) as server:
        assert _ask(server.base_url).text == "hi"


def test_a_silent_server_meets_the_deadline(transport: str) -> None:
    with (
        serve(lambda *_: Reply({}, delay_seconds=60)) as server,
        pytest.raises(ModelError, match=r"no answer within 0\.3 s") as caught,
    ):
        _ask(server.base_url, timeout_seconds=0.3)
    assert caught.value.retryable


def test_a_server_that_is_not_there_says_what_to_look_at(transport: str) -> None:
    base_url = f"http://127.0.0.1:{_free_port()}/v1"
    with pytest.raises(ModelError, match="is the server running") as caught:
        _ask(base_url, max_retries=1)
    assert base_url in str(caught.value)


@pytest.mark.parametrize(
    ("status", "error"),
    [
        (400, {"message": "too long", "code": "context_length_exceeded"}),
        (400, {"message": "This model's maximum context length is 4096 tokens."}),
        (400, {"message": "exceeds the available context size", "type": "exceed_context_size"}),
        (413, {"message": "prompt is too long"}),
        (400, {"message": "max_tokens must be at least 1, got -186."}),
        (400, {"message": "request (431 tokens) is too much", "type": "exceed_context_size_error"}),
    ],
)
def test_a_conversation_that_is_too_long_truncates(status: int, error: dict[str, str]) -> None:
    with (
        serve(lambda *_: Reply({"error": error}, status)) as server,
        pytest.raises(Truncated, match=re.escape(error["message"])),
    ):
        _ask(server.base_url)


def test_running_out_of_tokens_with_nothing_said_truncates() -> None:
    reply = completion(None, finish_reason="length", reasoning="hm")
    with serve(lambda *_: reply) as server, pytest.raises(Truncated) as caught:
        _ask(server.base_url)
    assert isinstance(caught.value.action, Message)
    assert (caught.value.action.reasoning, caught.value.action.usage is None) == ("hm", False)


def test_running_out_of_tokens_keeps_what_was_said() -> None:
    reply = completion("half a", ("bash", '{"command": "l'), finish_reason="length")
    with serve(lambda *_: reply) as server:
        message = _ask(server.base_url)
    assert message.text == "half a"
    assert message.tool_calls[0].error is not None


def test_a_response_without_end_is_given_up(transport: str) -> None:
    head = b"HTTP/1.1 200 OK\r\nContent-Length: 80000000\r\n\r\n"
    reply = Reply(None, raw=head + b" " * 80_000_000)
    with serve(lambda *_: reply) as server, pytest.raises(ModelError, match="larger than"):
        _ask(server.base_url)


@pytest.mark.parametrize("base_url", ["localhost:8000", "ftp://x/v1", "http://", ""])
def test_an_address_that_is_none_is_refused(base_url: str) -> None:
    with pytest.raises(ValidationError, match="http://localhost:8000/v1"):
        ChatSettings(base_url=base_url, model="m")


def test_credentials_in_the_base_url_are_used_and_never_shown(transport: str) -> None:
    reply = Reply({"error": {"message": "bad password hunter2-hunter2"}}, 401)
    with serve(lambda *_: reply) as server:
        base_url = server.base_url.replace("//", "//me:hunter2-hunter2@") + "?token=abcdefgh"
        settings = ChatSettings(base_url=base_url, model="m")
        with pytest.raises(ModelError) as caught:
            _ask(base_url)
    assert server.requests[0].headers["authorization"].startswith("Basic ")
    assert server.requests[0].path.endswith("?token=abcdefgh")
    shown = f"{settings!r} {settings.model_dump_json()} {caught.value}"
    assert "hunter2" not in shown
    assert "abcdefgh" not in shown
    assert json.loads(settings.model_dump_json())["base_url"] == server.base_url


def test_the_key_is_never_shown() -> None:
    async def show() -> str:
        async with open_chat(ChatSettings(base_url=server.base_url, model="m"), _KEY) as client:
            with pytest.raises(ModelError) as caught:
                await client.complete(_HELLO)
            return f"{client!r} {caught.value!r}"

    reply = Reply({"error": {"message": f"Incorrect API key provided: {_KEY}"}}, 401)
    with serve(lambda *_: reply) as server:
        shown = asyncio.run(show())
    assert "Incorrect API key" in shown
    assert _KEY not in shown
