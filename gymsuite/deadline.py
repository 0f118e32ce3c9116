"""Deadlines whose clock stands still while something waits for its turn in a queue.

What a caller cannot hurry is not its time: whether a machine is busy must never decide whether an
episode, a verifier or the start of a sandbox took too long.
"""

import asyncio
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from contextvars import ContextVar, Token
from types import TracebackType
from typing import Self


class Deadline:
    """`async with Deadline(seconds)` ends its block with TimeoutError, as asyncio.timeout does.

    None is a stopwatch that ends nothing. `seconds` is the time that counted, `stopped_seconds`
    what did not, and `queue_seconds` the part of it that was spent in queues.
    """

    def __init__(self, seconds: float | None) -> None:
        self._limit = seconds
        self._timeout = asyncio.timeout(None)
        self._started = 0.0
        self._ended: float | None = None
        self._stops = _Span()
        self._queues = _Span()
        self._token: Token[tuple[Deadline, ...]] | None = None

    async def __aenter__(self) -> Self:
        await self._timeout.__aenter__()
        self._started = time.monotonic()
        self._schedule()
        self._token = _running.set((*_running.get(), self))
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._ended = time.monotonic()
        if self._token is not None:
            _running.reset(self._token)
        await self._timeout.__aexit__(kind, error, traceback)

    @property
    def seconds(self) -> float:
        """How much time has counted so far."""
        return self._now() - self._started - self.stopped_seconds

    @property
    def stopped_seconds(self) -> float:
        """How long the clock has stood still so far."""
        return self._stops.seconds(self._now())

    @property
    def queue_seconds(self) -> float:
        """How long something has waited for its turn so far; waits side by side count once."""
        return self._queues.seconds(self._now())

    def expired(self) -> bool:
        """Whether the time ran out, and ended the block."""
        return self._timeout.expired()

    @contextmanager
    def stopped(self) -> Iterator[None]:
        """Let no time count during the block."""
        with self._open(self._stops):
            yield

    @contextmanager
    def queueing(self) -> Iterator[None]:
        """Let no time count during the block, and know it as a wait for one's turn."""
        with self._open(self._stops), self._open(self._queues):
            yield

    @contextmanager
    def _open(self, span: "_Span") -> Iterator[None]:
        span.open(self._now())
        self._schedule()
        try:
            yield
        finally:
            # A task that outlives the block it began in changes nothing any more.
            span.close(self._now())
            self._schedule()

    def _schedule(self) -> None:
        if self._limit is None or self._ended is not None or self._timeout.expired():
            return
        if self._stops.depth:
            self._timeout.reschedule(None)
        else:
            left = self._limit - self.seconds
            self._timeout.reschedule(asyncio.get_running_loop().time() + left)

    def _now(self) -> float:
        return time.monotonic() if self._ended is None else self._ended


class _Span:
    """Adds up the time during which it is open at least once."""

    def __init__(self) -> None:
        self.depth = 0
        self._sum = 0.0
        self._since = 0.0

    def open(self, now: float) -> None:
        if not self.depth:
            self._since = now
        self.depth += 1

    def close(self, now: float) -> None:
        self.depth -= 1
        if not self.depth:
            self._sum += now - self._since

    def seconds(self, now: float) -> float:
        return self._sum + (now - self._since if self.depth else 0.0)


_running: ContextVar[tuple[Deadline, ...]] = ContextVar("gymsuite_deadlines", default=())


@contextmanager
def queueing() -> Iterator[None]:
    """Stop the clock of every deadline that the caller runs under, for as long as it waits."""
    with ExitStack() as stack:
        for deadline in _running.get():
            stack.enter_context(deadline.queueing())
        yield
