import asyncio
import time

import pytest

from gymsuite.deadline import Deadline, queueing


def test_a_deadline_ends_its_block() -> None:
    async def late() -> Deadline:
        deadline = Deadline(0.02)
        with pytest.raises(TimeoutError):
            async with deadline:
                await asyncio.sleep(60)
        return deadline

    assert asyncio.run(late()).expired()


def test_a_deadline_of_nothing_ends_at_the_first_wait() -> None:
    async def late() -> None:
        async with Deadline(0.0):
            await asyncio.sleep(60)

    with pytest.raises(TimeoutError):
        asyncio.run(late())


def test_time_in_a_queue_does_not_count() -> None:
    async def waits() -> Deadline:
        async with Deadline(0.1) as deadline:
            with queueing():
                await asyncio.sleep(0.3)
        return deadline

    deadline = asyncio.run(waits())
    assert not deadline.expired()
    assert deadline.queue_seconds >= 0.3
    assert deadline.seconds < 0.1


def test_what_is_left_after_a_queue_is_what_was_left_before_it() -> None:
    async def waits() -> None:
        async with Deadline(0.3):
            with queueing():
                await asyncio.sleep(0.2)
            await asyncio.sleep(60)

    begun = time.monotonic()
    with pytest.raises(TimeoutError):
        asyncio.run(waits())
    assert time.monotonic() - begun >= 0.5


def test_a_queue_stops_the_clocks_of_all_blocks_around_it() -> None:
    async def waits() -> tuple[Deadline, Deadline]:
        async with Deadline(0.1) as outer, Deadline(0.1) as inner:
            with queueing():
                await asyncio.sleep(0.3)
        return outer, inner

    outer, inner = asyncio.run(waits())
    assert min(outer.queue_seconds, inner.queue_seconds) >= 0.3


def test_waits_of_gathered_tasks_stop_the_clock_of_whoever_gathers_them() -> None:
    async def wait(seconds: float) -> None:
        with queueing():
            await asyncio.sleep(seconds)

    async def gathers() -> Deadline:
        async with Deadline(0.1) as deadline:
            await asyncio.gather(wait(0.2), wait(0.3))
        return deadline

    deadline = asyncio.run(gathers())
    assert 0.3 <= deadline.queue_seconds < 0.5


def test_a_clock_stopped_by_hand_is_no_queue() -> None:
    async def starts() -> Deadline:
        async with Deadline(0.1) as deadline:
            with deadline.stopped():
                await asyncio.sleep(0.2)
                with queueing():
                    await asyncio.sleep(0.1)
        return deadline

    deadline = asyncio.run(starts())
    assert deadline.stopped_seconds >= 0.3
    assert 0.1 <= deadline.queue_seconds < 0.2


def test_a_wait_that_outlives_its_block_does_no_harm() -> None:
    async def outlives() -> Deadline:
        async def wait() -> None:
            with queueing():
                await asyncio.sleep(0.05)

        async with Deadline(5) as deadline:
            task = asyncio.create_task(wait())
            await asyncio.sleep(0.01)
        await task
        return deadline

    assert asyncio.run(outlives()).queue_seconds < 0.05


def test_a_stopwatch_ends_nothing() -> None:
    async def runs() -> Deadline:
        async with Deadline(None) as watch:
            await asyncio.sleep(0.02)
        await asyncio.sleep(0.05)
        return watch

    watch = asyncio.run(runs())
    assert 0.02 <= watch.seconds < 0.05


def test_cancellation_is_not_a_timeout() -> None:
    async def cancelled() -> None:
        async def wait() -> None:
            async with Deadline(60):
                with queueing():
                    await asyncio.sleep(60)

        task = asyncio.create_task(wait())
        await asyncio.sleep(0.01)
        task.cancel()
        await task

    with pytest.raises(asyncio.CancelledError):
        asyncio.run(cancelled())
