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
        loop, task = asyncio.get_running_loop(), asyncio.current_task()
        if task is not None:
            loop.add_signal_handler(signal.SIGTERM, task.cancel)
        loop.set_exception_handler(_but_impatience)
        return await work

    try:
        return asyncio.run(main())
    except (KeyboardInterrupt, asyncio.CancelledError) as error:
        raise Interrupted from error


def _but_impatience(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """Report what goes wrong beside the work, but no Ctrl-C that came while it cleaned up."""
    if not isinstance(context.get("exception"), KeyboardInterrupt):
        loop.default_exception_handler(context)
