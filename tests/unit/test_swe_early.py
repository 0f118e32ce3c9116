"""A second look may begin beside the first one."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from gymsuite import SandboxError
from gymsuite.swe.early import Look, Processors, Second
from gymsuite.verify.judging import Verdict

FINE = Verdict(1, 1, "", "")


class Watched:
    """A look that can be held up, fails if it is told to, and notes how often it was begun."""

    def __init__(self, error: Exception | None = None) -> None:
        self.begun = self.ended = 0
        self.go_on = asyncio.Event()
        self.error = error

    async def look(self) -> Verdict:
        self.begun += 1
        try:
            await self.go_on.wait()
            if self.error is not None:
                raise self.error
            return FINE
        finally:
            self.ended += 1


def with_watched(
    body: Callable[[Watched], Awaitable[None]], error: Exception | None = None
) -> Watched:
    async def main() -> Watched:
        watched = Watched(error)
        await body(watched)
        return watched

    return asyncio.run(main())


@pytest.mark.parametrize(("count", "begun"), [(1, 0), (2, 1)])
def test_a_look_begins_early_only_where_a_processor_has_nothing_to_do(
    count: int, begun: int
) -> None:
    async def body(watched: Watched) -> None:
        processors = Processors(count)
        with processors.busy():
            async with Second(processors) as second:
                second.begin(watched.look)
                await asyncio.sleep(0)
                assert (watched.begun, processors.idle) == (begun, False)
                watched.go_on.set()
                assert await second.result(watched.look) == FINE

    assert with_watched(body).begun == 1


def test_a_look_that_is_not_wanted_ends_at_once_and_frees_its_processor() -> None:
    async def body(watched: Watched) -> None:
        processors = Processors(1)
        async with Second(processors) as second:
            second.begin(watched.look)
            await asyncio.sleep(0)
            assert not processors.idle
        assert processors.idle

    watched = with_watched(body)
    assert (watched.begun, watched.ended) == (1, 1)


@pytest.mark.parametrize("wanted", [False, True])
def test_the_trouble_of_a_look_matters_only_to_who_asked_for_it(*, wanted: bool) -> None:
    async def body(watched: Watched) -> None:
        watched.go_on.set()
        async with Second(Processors(1)) as second:
            second.begin(watched.look)
            await asyncio.sleep(0)
            if wanted:
                await second.result(never)

    never: Look = Watched().look
    if wanted:
        with pytest.raises(SandboxError, match="gone"):
            with_watched(body, SandboxError("gone"))
    else:
        assert with_watched(body, SandboxError("gone")).ended == 1
