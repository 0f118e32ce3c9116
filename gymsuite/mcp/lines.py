"""JSON-RPC messages as lines over any two byte streams: a pipe, or a process in a sandbox."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import NamedTuple

import anyio
from mcp.shared._stream_protocols import ReadStream, WriteStream
from mcp.shared.message import SessionMessage
from mcp_types import jsonrpc_message_adapter

MOST_LINE_BYTES = 16 << 20

Read = Callable[[], Awaitable[bytes]]
"""Some bytes; none at the end."""

Write = Callable[[bytes], Awaitable[None]]
"""Sends bytes, and waits while they are not taken."""


class Streams(NamedTuple):
    """What a session of the mcp package runs over."""

    incoming: ReadStream[SessionMessage | Exception]
    outgoing: WriteStream[SessionMessage]


@asynccontextmanager
async def open_lines(read: Read, write: Write) -> AsyncIterator[Streams]:
    """Carry messages until the block ends; the end of what is read ends the incoming stream.

    A line that is no message, or longer than `MOST_LINE_BYTES`, comes in as the error that it is.
    """
    received, incoming = anyio.create_memory_object_stream[SessionMessage | Exception](0)
    outgoing, sent = anyio.create_memory_object_stream[SessionMessage](0)

    async def pull() -> None:
        async with received:
            async for line in _lines(read):
                await received.send(_message(line))

    async def push() -> None:
        async with sent:
            async for message in sent:
                text = message.message.model_dump_json(by_alias=True, exclude_unset=True)
                await write(text.encode() + b"\n")

    async with incoming, outgoing, anyio.create_task_group() as group:
        group.start_soon(pull)
        group.start_soon(push)
        try:
            yield Streams(incoming, outgoing)
        finally:
            group.cancel_scope.cancel()


def _message(line: bytes | None) -> SessionMessage | Exception:
    if line is None:
        return ValueError(f"a line is longer than {MOST_LINE_BYTES} bytes")
    try:
        return SessionMessage(jsonrpc_message_adapter.validate_json(line, by_name=False))
    except ValueError as error:
        return error


async def _lines(read: Read) -> AsyncIterator[bytes | None]:
    """The lines that are not blank; None in place of one that is too long."""
    buffer, too_long = bytearray(), False
    while data := await read():
        *whole, rest = data.split(b"\n")
        for piece in whole:
            buffer += piece
            if too_long or len(buffer) > MOST_LINE_BYTES:
                yield None
            elif buffer.strip():
                yield bytes(buffer)
            buffer, too_long = bytearray(), False
        buffer += rest
        if len(buffer) > MOST_LINE_BYTES:
            buffer, too_long = bytearray(), True
