"""Runs a server in a thread and a loop of its own: what holds it up holds up nobody else."""

import asyncio
import socket
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager, closing

from gymsuite.sandbox.threads import in_thread

_END_SECONDS = 2.0

Serve = Callable[[], Coroutine[None, None, None]]


@asynccontextmanager
async def apart(serve: Serve) -> AsyncIterator[None]:
    """Serve as long as the block lasts; a server that does not end in time then is left behind."""
    ours, its = socket.socketpair()
    its.setblocking(False)
    serving = in_thread(lambda: asyncio.run(_until(its, serve)))
    try:
        yield
    finally:
        ours.close()
        await asyncio.wait([serving], timeout=_END_SECONDS)


async def _until(ended: socket.socket, serve: Serve) -> None:
    with closing(ended):
        task = asyncio.create_task(serve())
        await asyncio.sleep(0)  # a task that is cancelled before it began closes nothing
        await asyncio.get_running_loop().sock_recv(ended, 1)
        task.cancel()
        await asyncio.wait([task])
