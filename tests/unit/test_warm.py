"""The pool of containers, over containers that are none."""

import asyncio
import os
from collections.abc import Callable, Coroutine
from typing import Any, cast

from gymsuite import SandboxSpec
from gymsuite.errors import SandboxError
from gymsuite.sandbox.channel import Channel
from gymsuite.sandbox.image import Image
from gymsuite.sandbox.looking import Look
from gymsuite.sandbox.prepared import Prepared
from gymsuite.sandbox.warm import Warm

IMAGE = Image(name="a", digest="1" * 64, base="debian", layers=())
SPEC = SandboxSpec(image="a")
OFTEN = 3


# Nobody speaks to them.
CHANNEL = cast("Channel", None)


class Maker:
    """Makes containers that are only numbers, and remembers which were made and discarded."""

    def __init__(self) -> None:
        self.made: list[str] = []
        self.discarded: list[str] = []
        self.broken = False
        self.is_busy = False

    async def make(self, image: Image, spec: SandboxSpec) -> Prepared:
        await asyncio.sleep(0)
        if self.broken:
            raise SandboxError("no Engine")
        name = f"{image.name}{len(self.made)}"
        self.made.append(name)
        look = Look({}, frozenset(), complete=True)
        return Prepared(name, name, CHANNEL, (), {}, look)

    async def discard(self, prepared: Prepared) -> None:
        self.discarded.append(prepared.name)

    def busy(self) -> bool:
        return self.is_busy


def run(body: Callable[[Warm, Maker], Coroutine[Any, Any, None]], *, idle: float = 60.0) -> Maker:
    maker = Maker()

    async def main() -> None:
        warm = Warm(maker.make, maker.discard, maker.busy, idle)
        try:
            await body(warm, maker)
        finally:
            await warm.close()

    asyncio.run(main())
    return maker


async def settle() -> None:
    for _ in range(20):
        await asyncio.sleep(0)


def test_nothing_is_made_for_what_one_episode_and_its_verdict_ask_for() -> None:
    async def body(warm: Warm, maker: Maker) -> None:
        assert [warm.take(IMAGE, SPEC) for _ in range(OFTEN)] == [None] * OFTEN
        await settle()

    assert run(body).made == []


def test_a_container_is_given_to_one_taker_and_the_rest_is_discarded_at_the_end() -> None:
    taken: list[str] = []

    async def body(warm: Warm, maker: Maker) -> None:
        for _ in range(OFTEN + 5):
            if (one := warm.take(IMAGE, SPEC)) is not None:
                taken.append(one.name)
            await settle()

    maker = run(body)
    assert len(taken) == 4  # of those asked for after it was known that they are wanted
    assert len(set(taken)) == len(taken)
    assert sorted(taken + maker.discarded) == sorted(maker.made)


def test_kinds_are_told_apart_and_the_pool_is_bounded() -> None:
    async def body(warm: Warm, maker: Maker) -> None:
        for number in range(20):
            spec = SPEC.model_copy(update={"memory_bytes": (64 + number) << 20})
            for _ in range(OFTEN + 1):
                assert warm.take(IMAGE, spec) is None
            await settle()
            assert len(maker.made) - len(maker.discarded) <= 2 * (os.cpu_count() or 1)

    run(body)


def test_a_container_that_nobody_takes_is_removed() -> None:
    async def body(warm: Warm, maker: Maker) -> None:
        for _ in range(OFTEN + 1):
            warm.take(IMAGE, SPEC)
        async with asyncio.timeout(10):
            while not maker.made or maker.discarded != maker.made:  # noqa: ASYNC110 - no event
                await asyncio.sleep(0.01)
        assert warm.take(IMAGE, SPEC) is None

    run(body, idle=0.01)


def test_a_busy_or_broken_engine_is_left_alone() -> None:
    async def body(warm: Warm, maker: Maker) -> None:
        maker.is_busy = True
        for _ in range(OFTEN + 1):
            warm.take(IMAGE, SPEC)
        await settle()
        assert maker.made == []
        maker.is_busy, maker.broken = False, True
        warm.take(IMAGE, SPEC)
        await settle()
        assert warm.take(IMAGE, SPEC) is None

    assert run(body).made == []
