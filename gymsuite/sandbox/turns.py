"""Who waits for a sandbox, and on whose behalf: what admission knows of its callers."""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field


@dataclass(eq=False)
class Holder:
    """All that must go on together: an episode with its verifier, and what was forked from it.

    Whoever holds a sandbox never waits for another one, so that no two can wait for each other.
    `held` counts its sandboxes; `waiting` are ways to let in those that wait for their turn. With
    a `task` it stands for that task alone.
    """

    task: "asyncio.Task[object] | None" = None
    held: int = 0
    begun: bool = False
    waiting: list[Callable[[], None]] = field(default_factory=list)

    @contextmanager
    def here(self) -> Iterator[None]:
        """Open sandboxes for this holder during the block, in tasks that start there too."""
        token = _holder.set(self)
        try:
            yield
        finally:
            _holder.reset(token)


def current_holder() -> Holder:
    """For whom the caller opens sandboxes: whoever has said so, or else its task alone.

    What a task without a holder starts has to wait as everyone does: it may be a thousand episodes.
    """
    holder = _holder.get()
    task = asyncio.current_task()
    if holder is None or holder.task not in (None, task):
        holder = Holder(task)
        _holder.set(holder)
    return holder


@contextmanager
def together() -> Iterator[None]:
    """Let all that the block opens, in tasks that start there too, be one holder's."""
    holder = current_holder()
    if holder.task is None:
        yield
    else:
        with Holder(held=holder.held).here():
            yield


def forget(holder: Holder) -> None:
    """Let go of a task's own holder when its last sandbox is gone."""
    if holder.task is not None and not holder.held and _holder.get() is holder:
        _holder.set(None)


@contextmanager
def lane(name: str) -> Iterator[None]:
    """Queue in a lane of one's own during the block: lanes take turns, whatever their length."""
    token = _lane.set(name)
    try:
        yield
    finally:
        _lane.reset(token)


def current_lane() -> str:
    """The lane that the caller queues in."""
    return _lane.get()


_holder: ContextVar[Holder | None] = ContextVar("gymsuite_holder", default=None)
_lane: ContextVar[str] = ContextVar("gymsuite_lane", default="")
