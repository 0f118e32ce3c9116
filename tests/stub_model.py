"""A chat-completions server on loopback that answers as a test says, on a thread of its own."""

import asyncio
import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Reply:
    """What the server sends: `body` as JSON, or as it is when it is bytes."""

    body: Any
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    delay_seconds: float = 0.0
    raw: bytes = b""


@dataclass
class Request:
    """What the server got."""

    headers: dict[str, str]
    body: dict[str, Any]
    path: str


Answer = Callable[[Request, int], Reply]
"""From a request and its number, counted from 0, to the reply."""


@dataclass
class StubModel:
    """A running server: where it listens, and all that it was asked."""

    base_url: str
    requests: list[Request]


def completion(
    content: str | None = None,
    *calls: tuple[str, Any],
    finish_reason: str = "stop",
    usage: dict[str, Any] | None = None,
    **message: Any,
) -> Reply:
    """A well-formed response; a call is a tool's name with its arguments, text or JSON value."""
    tool_calls = [
        {
            "id": f"call_{number}",
            "type": "function",
            "function": {
                "name": name,
                "arguments": arguments if isinstance(arguments, str) else json.dumps(arguments),
            },
        }
        for number, (name, arguments) in enumerate(calls)
    ]
    said = {"role": "assistant", "content": content, "tool_calls": tool_calls or None, **message}
    return Reply(
        {
            "id": "chatcmpl-1",
            "model": "served-model",
            "choices": [{"index": 0, "message": said, "finish_reason": finish_reason}],
            "usage": usage or {"prompt_tokens": 10, "completion_tokens": 2},
        }
    )


@contextmanager
def serve(answer: Answer) -> Iterator[StubModel]:
    """Run a server until the block ends."""
    loop = asyncio.new_event_loop()
    requests: list[Request] = []
    server = loop.run_until_complete(
        asyncio.start_server(
            lambda reader, writer: _converse(reader, writer, answer, requests), "127.0.0.1", 0
        )
    )
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    port = server.sockets[0].getsockname()[1]
    try:
        yield StubModel(f"http://127.0.0.1:{port}/v1", requests)
    finally:
        asyncio.run_coroutine_threadsafe(_close(server), loop).result()
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


async def _close(server: asyncio.Server) -> None:
    server.close()
    others = asyncio.all_tasks() - {asyncio.current_task()}
    for task in others:
        task.cancel()
    await asyncio.gather(*others, return_exceptions=True)


async def _converse(
    reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
    answer: Answer,
    requests: list[Request],
) -> None:
    try:
        while head := await reader.readuntil(b"\r\n\r\n"):
            first, *lines = head.decode().strip().split("\r\n")
            headers = {k.lower(): v for k, v in (line.split(": ", 1) for line in lines)}
            body = await reader.readexactly(int(headers.get("content-length", 0)))
            request = Request(headers, json.loads(body), first.split(" ")[1])
            requests.append(request)
            reply = answer(request, len(requests) - 1)
            await asyncio.sleep(reply.delay_seconds)
            writer.write(reply.raw or _encode(reply))
            await writer.drain()
            if reply.raw:
                break
    except (asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):
        pass
    finally:
        writer.close()


def _encode(reply: Reply) -> bytes:
    body = reply.body if isinstance(reply.body, bytes) else json.dumps(reply.body).encode()
    headers = {"Content-Type": "application/json", "Content-Length": str(len(body))}
    lines = [f"{name}: {value}" for name, value in (headers | reply.headers).items()]
    return (
        f"HTTP/1.1 {reply.status} Status\r\n".encode()
        + "\r\n".join([*lines, "", ""]).encode()
        + body
    )
