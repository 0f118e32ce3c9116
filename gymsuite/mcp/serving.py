"""Serves a desk's episodes to agents, and its control channel to whoever started the server."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from typing import NamedTuple

from gymsuite.errors import UsageError
from gymsuite.mcp.control import control_app
from gymsuite.mcp.desk import Desk
from gymsuite.mcp.over_http import PATH, Sessions
from gymsuite.mcp.over_stdio import play_stdio
from gymsuite.serve.listening import open_server

_LOOPBACK = ("127.0.0.1", "localhost", "::1")


class Door(NamedTuple):
    """Where to listen, and the token that lets in."""

    host: str
    port: int
    token: str


async def serve_stdio(desk: Desk, control: Door | None) -> None:
    """Play one episode over stdin and stdout."""
    async with AsyncExitStack() as stack:
        if control is not None:
            await stack.enter_async_context(open_control(desk, control))
        await play_stdio(desk)


async def serve_http(
    desk: Desk, door: Door, control: Door | None, say: Callable[[str], object]
) -> None:
    """Serve until cancelled, and say where."""
    async with AsyncExitStack() as stack:
        address = await stack.enter_async_context(open_sessions(desk, door))
        say(f"{desk.offer.environment.id} at {address}")
        if control is not None:
            address = await stack.enter_async_context(open_control(desk, control))
            say(f"control at {address}, token {control.token}")
        await asyncio.Event().wait()


@asynccontextmanager
async def open_sessions(desk: Desk, door: Door) -> AsyncIterator[str]:
    """Serve MCP, and yield its address; raises `UsageError` beyond loopback without a token."""
    if door.host not in _LOOPBACK and not door.token:
        raise UsageError(f"{door.host} can be reached from elsewhere: give a token of your own")
    async with (
        Sessions(desk, door.token) as sessions,
        open_server(sessions, host=door.host, port=door.port) as address,
    ):
        yield address + PATH


@asynccontextmanager
async def open_control(desk: Desk, door: Door) -> AsyncIterator[str]:
    """Serve the control channel, and yield its address."""
    app = control_app(desk, door.token)
    async with open_server(app, host=door.host, port=door.port) as address:
        yield f"{address}/episodes"
