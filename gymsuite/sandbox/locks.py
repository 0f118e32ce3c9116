"""Locks between processes that the kernel releases, however their holder ends.

A lock file is never removed: whoever removed it could not know who is about to lock it.
"""

import asyncio
import fcntl
import os
from collections.abc import Callable
from pathlib import Path

from gymsuite.errors import DeadlineError, SandboxError

_WAIT_SECONDS = 3600.0
_FIRST_PAUSE_SECONDS = 0.01
_LONGEST_PAUSE_SECONDS = 0.5
_QUIET_SECONDS = 1.0


class Lock:
    """A held lock. Only the process that made it can release it, or its end."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def close(self) -> None:
        """Release it; a second time does nothing."""
        descriptor, self._descriptor = self._descriptor, -1
        if descriptor >= 0:
            os.close(descriptor)


def try_exclusive(path: Path) -> Lock | None:
    """Lock for one holder, or return None where anybody holds it."""
    return _try(path, fcntl.LOCK_EX)


async def exclusive(path: Path, *, waiting: Callable[[], None]) -> Lock:
    """Lock for one holder; `waiting` is called once if that takes a while."""
    return await _wait(path, fcntl.LOCK_EX, waiting)


async def shared(path: Path, *, waiting: Callable[[], None]) -> Lock:
    """Lock together with others who share it; `waiting` is called once if that takes a while."""
    return await _wait(path, fcntl.LOCK_SH, waiting)


async def _wait(path: Path, kind: int, waiting: Callable[[], None]) -> Lock:
    pause, waited, said = _FIRST_PAUSE_SECONDS, 0.0, False
    # Polled, since a thread that is blocked in flock can be neither cancelled nor joined.
    while (lock := _try(path, kind)) is None:
        if waited >= _WAIT_SECONDS:
            raise DeadlineError(f"another process holds {path} for {_WAIT_SECONDS:.0f} seconds")
        if waited >= _QUIET_SECONDS and not said:
            waiting()
            said = True
        await asyncio.sleep(pause)
        waited += pause
        pause = min(pause * 2, _LONGEST_PAUSE_SECONDS)
    return lock


def _try(path: Path, kind: int) -> Lock | None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    except OSError as error:
        message = f"cannot lock {path}: {error}; the cache must be a directory that you can write"
        raise SandboxError(message, retryable=False) from error
    try:
        fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        return None
    return Lock(descriptor)
