"""Serves a socket in a thread and a loop of its own: what holds it up holds up nobody else."""

import asyncio
import socket
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import ExitStack, asynccontextmanager, closing

from gymsuite.sandbox.threads import in_thread

_END_SECONDS = 2.0

Serve = Callable[[socket.socket], Coroutine[None, None, None]]


@asynccontextmanager
async def apart(listener: socket.socket, serve: Serve) -> AsyncIterator[None]:
    """Serve as long as the block lasts; a server that does not end in time then is left behind.

    It closes the listener. Raises OSError or RuntimeError where this machine has no descriptor or
    no thread left.
    """
    with ExitStack() as unused:
        unused.callback(listener.close)
        ours, its = socket.socketpair()
        unused.callback(ours.close)
        unused.callback(its.close)
        its.setblocking(False)
        # Not in the thread, where nobody would hear that it cannot be made.
        loop = asyncio.new_event_loop()
        unused.callback(loop.close)

        def work() -> None:
            with closing(listener), closing(its), asyncio.Runner(loop_factory=lambda: loop) as own:
                own.run(_until(its, serve(listener)))

        serving = in_thread(work)
        unused.pop_all()
    try:
        yield
    finally:
        ours.close()
        await asyncio.wait([serving], timeout=_END_SECONDS)


async def _until(ended: socket.socket, serving: Coroutine[None, None, None]) -> None:
    task = asyncio.create_task(serving)
    await asyncio.get_running_loop().sock_recv(ended, 1)
    task.cancel()
    await asyncio.wait([task])
