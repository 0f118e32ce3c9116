"""Serves an application over HTTP on a socket of its own, for as long as a block lasts."""

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import uvicorn

from gymsuite.errors import UsageError

App = Any
"""An ASGI application."""

_BACKLOG = 2048
_KEEP_ALIVE_SECONDS = 60
_POLL_SECONDS = 0.01


@asynccontextmanager
async def open_server(app: App, *, host: str = "127.0.0.1", port: int = 0) -> AsyncIterator[str]:
    """Serve until the block ends, and yield the address; port 0 is any free one.

    Raises `UsageError` where the address cannot be had.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind((host, port))
        except OSError as error:
            raise UsageError(f"cannot listen on {host}:{port}: {error.strerror}") from error
        config = uvicorn.Config(
            app, log_level="warning", access_log=False, lifespan="off", backlog=_BACKLOG,
            timeout_keep_alive=_KEEP_ALIVE_SECONDS, timeout_graceful_shutdown=1,
        )  # fmt: skip
        server = uvicorn.Server(config)
        serving = asyncio.create_task(server.serve(sockets=[listener]))
        try:
            while not server.started and not serving.done():  # noqa: ASYNC110 - it has no event
                await asyncio.sleep(_POLL_SECONDS)
            yield f"http://{host}:{listener.getsockname()[1]}"
        finally:
            server.should_exit = True
            await serving
