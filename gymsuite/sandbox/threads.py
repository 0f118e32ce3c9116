"""Runs what blocks in a thread of its own that nothing has to wait for."""

import asyncio
import contextlib
import threading
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


def in_thread(function: Callable[[], T]) -> "asyncio.Future[T]":
    """Run a function in a thread that no exit of the interpreter waits for."""
    loop = asyncio.get_running_loop()
    future: asyncio.Future[T] = loop.create_future()
    # Somebody who waits no longer is not told about its error, and asyncio need not complain.
    future.add_done_callback(lambda done: done.cancelled() or done.exception())

    def settle(result: T | None, error: BaseException | None) -> None:
        if future.done():
            return
        if error is not None:
            future.set_exception(error)
        else:
            future.set_result(result)  # type: ignore[arg-type]  # None only beside an error

    def work() -> None:
        result, error = None, None
        try:
            result = function()
        except BaseException as caught:  # noqa: BLE001 - carried to whoever waits
            error = caught
        with contextlib.suppress(RuntimeError):  # the loop may be closed by now
            loop.call_soon_threadsafe(settle, result, error)

    threading.Thread(target=work, daemon=True).start()
    return future
