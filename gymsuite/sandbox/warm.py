"""Containers that run before anybody asks for them, since to start one is what takes long.

One is made for a kind of sandbox that was asked for often enough, and given to one taker only. What
was used never comes back.
"""

import asyncio
import os
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass, field
from typing import NamedTuple

from gymsuite.errors import GymsuiteError
from gymsuite.sandbox.image import Image
from gymsuite.sandbox.prepared import Prepared
from gymsuite.sandbox.resident import finish
from gymsuite.sandbox.workdirs import workdir
from gymsuite.types import SandboxSpec

IDLE_SECONDS = 60.0

_MOST_ASKED = 1024
# An episode and both looks at what it hands in take three, and their image may never come again.
_OFTEN = 3
_EACH_PER_PROCESSOR = 1
_ALL_PER_PROCESSOR = 2


class Kind(NamedTuple):
    """What two sandboxes have in common that one container can serve."""

    digest: str
    frozen: str
    workdir: str
    cpus: float
    memory_bytes: int
    pids: int
    disk_bytes: int
    inodes: int
    lifetime_seconds: float


def kind_of(image: Image, spec: SandboxSpec) -> Kind:
    """Say which containers can serve as a sandbox."""
    return Kind(
        image.digest,
        image.frozen[-1].key if image.frozen else "",
        workdir(image, spec),
        spec.cpus,
        spec.memory_bytes,
        spec.pids,
        spec.disk_bytes,
        spec.inodes,
        spec.lifetime_seconds,
    )


@dataclass
class Warm:
    """The pool. `make` makes a container, `discard` removes one, `busy` says to make none now."""

    make: Callable[[Image, SandboxSpec], Awaitable[Prepared]]
    discard: Callable[[Prepared], Coroutine[None, None, None]]
    busy: Callable[[], bool]
    idle_seconds: float = IDLE_SECONDS
    _asked: deque[Kind] = field(default_factory=lambda: deque(maxlen=_MOST_ASKED))
    _ready: deque[tuple[Kind, Prepared]] = field(default_factory=deque)
    _coming: list[Kind] = field(default_factory=list)
    _tasks: set[asyncio.Task[None]] = field(default_factory=set)

    def take(self, image: Image, spec: SandboxSpec) -> Prepared | None:
        """Take a container if one is ready, and have more made where they are wanted often."""
        kind = kind_of(image, spec)
        found = self._pop(kind)
        if self._asked.count(kind) >= _OFTEN:
            self._fill(kind, image, spec)
        else:
            self._asked.append(kind)
        return found

    async def close(self) -> None:
        """Stop making containers, and remove those that nobody took."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await asyncio.gather(*(self.discard(one) for _, one in self._ready))
        self._ready.clear()

    def _pop(self, kind: Kind) -> Prepared | None:
        for one in self._ready:
            if one[0] == kind:
                self._ready.remove(one)
                return one[1]
        return None

    def _fill(self, kind: Kind, image: Image, spec: SandboxSpec) -> None:
        processors = os.cpu_count() or 1
        there = [*self._coming, *(ready for ready, _ in self._ready)]
        missing = _EACH_PER_PROCESSOR * processors - there.count(kind)
        room = _ALL_PER_PROCESSOR * processors - len(there)
        # Whoever waits for a container now comes first.
        if self.busy():
            return
        for _ in range(missing):
            if room <= 0 and not self._make_room(kind):
                return
            room -= 1
            self._coming.append(kind)
            self._run(self._add(kind, image, spec))

    def _make_room(self, kind: Kind) -> bool:
        """Give up the container that has waited longest for another kind of sandbox."""
        for one in self._ready:
            if one[0] != kind:
                self._ready.remove(one)
                self._run(self.discard(one[1]))
                return True
        return False

    async def _add(self, kind: Kind, image: Image, spec: SandboxSpec) -> None:
        try:
            one = kind, await self.make(image, spec)
        except GymsuiteError:
            # Whoever needs one makes it, and is told what is wrong.
            return
        finally:
            self._coming.remove(kind)
        self._ready.append(one)
        # A task of its own, which does not hold the image: it may be the last that does.
        self._run(self._expire(one))

    async def _expire(self, one: tuple[Kind, Prepared]) -> None:
        await asyncio.sleep(self.idle_seconds)
        if one in self._ready:
            self._ready.remove(one)
            await finish(self.discard(one[1]))

    def _run(self, work: Coroutine[None, None, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
