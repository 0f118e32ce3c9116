"""An exec server that is a script of frames."""

import asyncio
import struct
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

import pytest

from gymsuite.errors import SandboxDead
from gymsuite.sandbox.channel import Channel

HELLO = (0, 0x80, struct.pack("<I", 2))
REPLY = 0x80


def encode(request: int, kind: int, payload: bytes = b"") -> bytes:
    return struct.pack("<IIB", 5 + len(payload), request, kind) + payload


def exec_reply(stdout: bytes = b"", *, code: int = 0, flags: int = 0) -> bytes:
    return struct.pack("<iBQQI", code, flags, 2_000_000, 500_000, len(stdout)) + stdout


class ScriptedServer:
    """A byte stream in memory. What it is sent is parsed; what it says is up to the test."""

    def __init__(self, hello: tuple[Any, ...] | None = HELLO) -> None:
        self.requests: asyncio.Queue[tuple[int, int, bytes]] = asyncio.Queue()
        self.closed = False
        self._hello = hello

    def say(self, request: int, kind: int, payload: bytes = b"") -> None:
        self.raw(encode(request, kind, payload))

    def raw(self, data: bytes) -> None:
        # In small pieces, as a socket may.
        for at in range(0, len(data), 3):
            self._received(data[at : at + 3])

    def hang_up(self) -> None:
        self._ended(None)

    def start(
        self, received: Callable[[bytes], None], ended: Callable[[OSError | None], None], /
    ) -> None:
        self._received, self._ended = received, ended
        if self._hello:
            self.say(*self._hello)

    def send(self, data: bytes, /) -> None:
        length, request, kind = struct.unpack_from("<IIB", data)
        assert length == len(data) - 4
        self.requests.put_nowait((request, kind, data[9:]))

    async def close(self) -> None:
        self.closed = True


Body = Callable[[Channel, ScriptedServer], Coroutine[Any, Any, Any]]


def with_channel(body: Body, *, grace: float = 30.0) -> Any:
    async def main() -> Any:
        server = ScriptedServer()
        channel = Channel(server, grace=grace)
        await channel.open(within=30)
        try:
            return await asyncio.wait_for(body(channel, server), 30)
        finally:
            await channel.close()
            assert server.closed

    return asyncio.run(main())


async def lost(work: Awaitable[Any]) -> str:
    with pytest.raises(SandboxDead) as error:
        await work
    return str(error.value)
