"""Runs asynchronous work for a command, and ends it in order when it is interrupted."""

import asyncio
import signal
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


class Interrupted(Exception):  # noqa: N818 - an outcome rather than an error
    """The work was cancelled by Ctrl-C or SIGTERM, after it had cleaned up."""


def run(work: Coroutine[Any, Any, T]) -> T:
    """Run `work` to its end. SIGTERM is taken as Ctrl-C is: sandboxes are removed first."""

    async def main() -> T:
        task = asyncio.current_task()
        if task is not None:
            asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
        return await work

    try:
        return asyncio.run(main())
    except (KeyboardInterrupt, asyncio.CancelledError) as error:
        raise Interrupted from error
