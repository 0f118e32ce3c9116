"""Where a foreign server runs: in the episode's sandbox, or on this machine with your consent."""

import asyncio
import tempfile
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress

import httpx2
from mcp import StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client

from gymsuite.errors import DefinitionError, SandboxDead
from gymsuite.mcp.lines import Streams, open_lines
from gymsuite.mcp.manifest import CommandServer, ServerEntry
from gymsuite.sandbox.protocol import Process
from gymsuite.tools import Context

_PATIENCE = httpx2.Timeout(30.0, read=300.0)
"""A server may hold a stream open without a word; how long a call may take is said elsewhere."""

Connect = Callable[[ServerEntry], AbstractAsyncContextManager[Streams]]
"""Starts or reaches a server; leaving the block ends what was started."""

Place = Callable[[Context], Connect]
"""How an episode connects."""


def in_sandbox(context: Context) -> Connect:
    """Start servers in the episode's sandbox; one with an address is refused.

    Where the agent has a shell there too, the server is within its reach.
    """

    @asynccontextmanager
    async def connect(entry: ServerEntry) -> AsyncIterator[Streams]:
        if not isinstance(entry, CommandServer):
            raise DefinitionError(
                f"{entry.url} is reached from this machine, not from a sandbox: take `on_host`"
            )
        command = [entry.command, *entry.args]
        process = await context.sandbox.spawn(command, cwd=entry.cwd, env=entry.env)
        draining = asyncio.create_task(_drain(process))
        try:
            async with open_lines(process.read, process.write) as streams:
                yield streams
        finally:
            draining.cancel()
            with suppress(SandboxDead):
                await process.kill()

    return connect


def on_host(_: Context) -> Connect:
    """Start servers as processes of yours, with your rights and your network, or reach them.

    What they may do on this machine, the agent may have them do: this is the explicit consent.
    """
    return reach


@asynccontextmanager
async def reach(entry: ServerEntry) -> AsyncIterator[Streams]:
    """See `on_host`."""
    if not isinstance(entry, CommandServer):
        async with (
            httpx2.AsyncClient(headers=dict(entry.headers), timeout=_PATIENCE) as client,
            streamable_http_client(entry.url, http_client=client) as streams,
        ):
            yield Streams(*streams)
        return
    server = StdioServerParameters(
        command=entry.command, args=list(entry.args), env=dict(entry.env), cwd=entry.cwd
    )
    with tempfile.TemporaryFile("w+") as errors:
        async with stdio_client(server, errors) as streams:
            yield Streams(*streams)


async def _drain(process: Process) -> None:
    """Read what it says on stderr, so that it never waits for a reader."""
    with suppress(SandboxDead):
        while await process.read_error():
            pass
