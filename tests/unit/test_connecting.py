"""Opening the channel to a container's exec server, with an Engine and a server of our own."""

import asyncio
import socket
import struct
from dataclasses import dataclass, field
from pathlib import Path
from typing import cast

import pytest

from gymsuite.sandbox import wire
from gymsuite.sandbox.accounts import ROOT
from gymsuite.sandbox.connecting import Connected, connect
from gymsuite.sandbox.docker import Engine
from gymsuite.sandbox.engine import Started, Wish

NOBODY = (1 << 22) + 1  # no process has this number
HELLO = struct.pack("<IIBI", 9, 0, 0x80, wire.VERSION)
WISH = Wish("c", "i", Path(), Path(), {}, "", ROOT, 1 << 28, 1.0, 8, ())


@dataclass
class OneContainer:
    """An Engine with one container, whose server comes to the meeting and says hello."""

    ours: list[socket.socket] = field(default_factory=list)
    theirs: list[socket.socket] = field(default_factory=list)
    path: Path = Path("meeting")

    def pair(self) -> tuple[socket.socket, socket.socket]:
        ours, theirs = socket.socketpair()
        self.ours.append(ours)
        self.theirs.append(theirs)
        return ours, theirs

    async def start(self, _: Wish) -> Started:
        await asyncio.sleep(0)
        return Started("container", self.pair()[0])

    async def first_process(self, _: str) -> int:
        await asyncio.sleep(0)
        return NOBODY

    async def accept(self) -> int:
        await asyncio.sleep(0)
        return NOBODY

    def take(self) -> socket.socket:
        ours, theirs = self.pair()
        theirs.send(HELLO)
        return ours

    def close(self) -> None:
        """Nothing is taken that is not closed."""

    def end(self) -> None:
        for end in self.theirs:
            end.close()


def open_ends(engine: OneContainer) -> int:
    return sum(end.fileno() >= 0 for end in engine.ours)


async def opened(engine: OneContainer) -> Connected:
    return await connect(cast("Engine", engine), WISH, engine)


def test_a_server_that_comes_is_spoken_to_without_the_engine() -> None:
    async def main() -> None:
        engine = OneContainer()
        connected = await opened(engine)
        assert open_ends(engine) == 1
        await connected.channel.close()
        assert open_ends(engine) == 0
        engine.end()

    asyncio.run(main())


@pytest.mark.parametrize("again", [False, True])
def test_a_cancellation_at_any_step_leaves_no_connection(*, again: bool) -> None:
    async def cancelled_after(steps: int) -> bool:
        engine = OneContainer()
        task = asyncio.create_task(opened(engine))
        for _ in range(steps):
            await asyncio.sleep(0)
        task.cancel()
        if again:
            await asyncio.sleep(0)
            task.cancel()
        await asyncio.wait([task])
        finished = not task.cancelled()
        if finished:
            await task.result().channel.close()
        assert open_ends(engine) == 0, steps
        engine.end()
        return finished and not again

    async def main() -> int:
        steps = 0
        while not await cancelled_after(steps) and steps < 60:
            steps += 1
        return steps

    assert asyncio.run(main()) > 5
