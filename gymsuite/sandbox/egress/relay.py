"""Moves bytes between a client and a server, and pays for each of them."""

import asyncio
import socket
from collections.abc import Awaitable, Callable
from contextlib import suppress

from gymsuite.sandbox.egress.hello import examine
from gymsuite.sandbox.egress.log import BudgetSpentError, Entry, Log
from gymsuite.sandbox.egress.names import address_of
from gymsuite.sandbox.egress.request import Refusal, Request

CHUNK_BYTES = 64 << 10
MOST_PIECES = 64
"""In so many pieces a client may say what it wants: each is looked at with all before it."""

_IDLE_SECONDS = 120.0
_HALF_SECONDS = 30.0
_DISCARD_SECONDS = 0.02
# An alert of TLS, fatal: unrecognized_name.
_ALERT = bytes.fromhex("15030100020270")

Pay = Callable[[Entry, int], int]


class Relay:
    """One client's connection to one server, which ends when it has been idle for two minutes."""

    def __init__(
        self, client: socket.socket, server: socket.socket, log: Log, entry: Entry
    ) -> None:
        self._client = client
        self._server = server
        self._log = log
        self._entry = entry
        self._loop = asyncio.get_running_loop()
        self._patience = _IDLE_SECONDS
        self._idle = asyncio.timeout(_IDLE_SECONDS)

    async def run(self, request: Request, early: bytes) -> None:
        """Until both ends have said all. Raises BudgetSpentError, Refusal and OSError."""
        up = self._tunnel(request, early) if request.is_tunnel else self._forward(request, early)
        async with self._idle:
            await _both(up, self._down())

    async def _tunnel(self, request: Request, early: bytes) -> None:
        first = await self._greeting(request.endpoint.host, early)
        await self._send(self._server, first, self._log.up)
        await self._pump(self._client, self._server, self._log.up)
        self._hurry()

    async def _greeting(self, host: str, data: bytes) -> bytes:
        """The client's first bytes, once they are known to ask for no other server by TLS."""
        pieces = 0
        while (hello := examine(data)).kind == "part" and pieces < MOST_PIECES:
            pieces += 1
            more = await self._loop.sock_recv(self._client, CHUNK_BYTES)
            if not more:
                break
            data += more
        by_name = address_of(host) is None
        right = hello.server_name == host or not (by_name or hello.server_name)
        broken = hello.kind == "broken" or pieces == MOST_PIECES
        if broken or (hello.kind == "hello" and not right):
            with suppress(OSError):
                await self._loop.sock_sendall(self._client, _ALERT)
            raise Refusal("", "tls", f"the client asked for {hello.server_name!r} by TLS")
        return data if hello.kind != "part" else b""

    async def _forward(self, request: Request, early: bytes) -> None:
        """One request and its body: what the client sends after that goes nowhere."""
        body = early[: request.body_bytes]
        await self._send(self._server, request.head + body, self._log.up)
        left = request.body_bytes - len(body)
        while left:
            data = await self._loop.sock_recv(self._client, min(CHUNK_BYTES, left))
            if not data:
                raise ConnectionAbortedError
            await self._send(self._server, data, self._log.up)
            left -= len(data)
        await discard(self._client)
        self._hurry()

    def _hurry(self) -> None:
        """One of them has said all, or is gone: the other may keep the connection all the same."""
        self._patience = _HALF_SECONDS
        self._rest()

    def _rest(self) -> None:
        if not self._idle.expired():
            self._idle.reschedule(self._loop.time() + self._patience)

    async def _down(self) -> None:
        await self._pump(self._server, self._client, self._log.down)
        self._hurry()

    async def _pump(self, source: socket.socket, sink: socket.socket, pay: Pay) -> None:
        while data := await self._loop.sock_recv(source, CHUNK_BYTES):
            await self._send(sink, data, pay)
        with suppress(OSError):
            sink.shutdown(socket.SHUT_WR)

    async def _send(self, sink: socket.socket, data: bytes, pay: Pay) -> None:
        self._rest()
        covered = pay(self._entry, len(data))
        await self._loop.sock_sendall(sink, data[:covered])
        if covered < len(data):
            raise BudgetSpentError


async def discard(client: socket.socket) -> None:
    """Read what goes nowhere until a client has said all, and slowly: it is to cost little.

    A client with words left unread would hear of a broken connection, and not of the answer.
    """
    loop = asyncio.get_running_loop()
    while True:
        if not await loop.sock_recv(client, CHUNK_BYTES):
            return
        await asyncio.sleep(_DISCARD_SECONDS)


async def _both(one: Awaitable[None], other: Awaitable[None]) -> None:
    """Carry out both; where one fails, end the other first."""
    tasks = [asyncio.ensure_future(one), asyncio.ensure_future(other)]
    try:
        await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)
