"""One episode over this process's stdin and stdout, as clients that start their servers want it."""

import asyncio
import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from gymsuite import __version__
from gymsuite.errors import UsageError
from gymsuite.mcp.desk import Desk
from gymsuite.mcp.lines import Read, Write, open_lines
from gymsuite.mcp.offering import server_of

_READ_BYTES = 64 << 10


async def play_stdio(desk: Desk) -> None:
    """Play one episode; it ends, and is scored, when the client closes our stdin."""
    sitting = desk.begin()
    server = await server_of(sitting, desk.offer.environment.toolbox.schemas, __version__)
    async with _standard_streams() as (read, write), open_lines(read, write) as streams:
        await server.run(*streams, server.create_initialization_options())
    sitting.visitor.leave("session_closed")
    await sitting.over.wait()


@asynccontextmanager
async def _standard_streams() -> AsyncIterator[tuple[Read, Write]]:
    """Both streams for the protocol alone: what is printed meanwhile goes to stderr."""
    loop = asyncio.get_running_loop()
    sys.stdout.flush()
    wire = os.dup(1)
    os.dup2(2, 1)
    reader = asyncio.StreamReader(limit=_READ_BYTES)
    try:
        try:
            transport, _ = await loop.connect_read_pipe(
                lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(os.dup(0), "rb", 0)
            )
        except ValueError as error:
            raise UsageError("stdin is no pipe: an MCP client is to start this command") from error

        async def read() -> bytes:
            return await reader.read(_READ_BYTES)

        async def write(data: bytes) -> None:
            await asyncio.to_thread(_write_all, wire, data)

        try:
            yield read, write
        finally:
            transport.close()
            os.set_blocking(0, True)
    finally:
        os.dup2(wire, 1)
        os.close(wire)


def _write_all(descriptor: int, data: bytes) -> None:
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(descriptor, rest) :]
