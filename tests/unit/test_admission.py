import asyncio
import math
import time
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from gymsuite import SandboxError, SandboxSpec
from gymsuite.deadline import Deadline
from gymsuite.sandbox.admission import Admission
from gymsuite.sandbox.capacity import Machine
from gymsuite.sandbox.turns import Holder, lane

GIB = 1 << 30
SPEC = SandboxSpec(image="fake", memory_bytes=GIB, cpus=1)


@dataclass
class FakeMachine:
    """A machine of 8 GiB and 2 processors, whose state a test sets."""

    available: float = 8 * GIB
    idle: Callable[[], float] = lambda: 0.0

    @property
    def machine(self) -> Machine:
        return Machine(
            memory_bytes=8 * GIB,
            processors=2,
            available_bytes=lambda: self.available,
            idle_seconds=self.idle,
        )


def room_for(sandboxes: int, fake: FakeMachine | None = None) -> Admission:
    """Admission of so many sandboxes of `SPEC` at once."""
    return Admission(processors=sandboxes / 32, machine=(fake or FakeMachine()).machine)


@dataclass
class Crowd:
    """Counts who is inside, and in which order they came."""

    inside: int = 0
    most: int = 0

    def __post_init__(self) -> None:
        self.order: list[str] = []

    @asynccontextmanager
    async def enter(self, admission: Admission, name: str = "") -> AsyncIterator[None]:
        async with admission.turn(SPEC):
            self.order.append(name)
            self.inside += 1
            self.most = max(self.most, self.inside)
            try:
                yield
            finally:
                self.inside -= 1

    async def visit(self, admission: Admission, name: str = "", seconds: float = 0.001) -> None:
        async with self.enter(admission, name):
            await asyncio.sleep(seconds)


def test_a_thousand_at_once_all_have_their_turn_and_no_more_than_fit() -> None:
    async def run() -> tuple[Crowd, Admission]:
        admission, crowd = room_for(8), Crowd()
        await asyncio.gather(*(crowd.visit(admission) for _ in range(1000)))
        return crowd, admission

    crowd, admission = asyncio.run(run())
    assert (len(crowd.order), crowd.most, crowd.inside) == (1000, 8, 0)
    counters = admission.counters
    assert (counters.admitted, counters.running, counters.queued) == (1000, 0, 0)
    assert counters.queue_seconds > 0


def test_whoever_waits_is_visible() -> None:
    async def run() -> None:
        admission, crowd = room_for(1), Crowd()
        async with crowd.enter(admission):
            waiting = [asyncio.create_task(crowd.visit(admission)) for _ in range(3)]
            await asyncio.sleep(0.02)
            counters = admission.counters
            assert (counters.running, counters.queued) == (1, 3)
            assert counters.longest_seconds >= 0.01
        await asyncio.gather(*waiting)
        assert admission.counters.queued == 0

    asyncio.run(run())


def test_runs_take_turns_whatever_their_length() -> None:
    async def run() -> list[str]:
        admission, crowd = room_for(1), Crowd()

        async def many(name: str, count: int) -> None:
            with lane(name):
                await asyncio.gather(*(crowd.visit(admission, name) for _ in range(count)))

        async with crowd.enter(admission):
            long = asyncio.create_task(many("long", 20))
            await asyncio.sleep(0.01)
            short = asyncio.create_task(many("short", 3))
            await asyncio.sleep(0.01)
        await asyncio.gather(long, short)
        return crowd.order[1:]

    order = asyncio.run(run())
    assert order[:6] == ["long", "short"] * 3
    assert order[6:] == ["long"] * 17


def test_within_a_run_the_first_to_come_is_the_first_to_be_let_in() -> None:
    async def run() -> list[str]:
        admission, crowd = room_for(1), Crowd()
        await asyncio.gather(*(crowd.visit(admission, f"{i}") for i in range(10)))
        return crowd.order

    assert asyncio.run(run()) == [f"{i}" for i in range(10)]


def test_an_episode_that_has_begun_goes_before_one_that_has_not() -> None:
    async def run() -> list[str]:
        admission, crowd = room_for(1), Crowd()
        begun = Holder()
        with begun.here():
            await crowd.visit(admission, "its agent")
        async with crowd.enter(admission, "another"):
            tasks = [asyncio.create_task(crowd.visit(admission, "fresh"))]
            await asyncio.sleep(0.01)
            with begun.here():
                tasks.append(asyncio.create_task(crowd.visit(admission, "its verifier")))
            await asyncio.sleep(0.01)
        await asyncio.gather(*tasks)
        return crowd.order

    assert asyncio.run(run()) == ["its agent", "another", "its verifier", "fresh"]


def test_whoever_holds_a_sandbox_is_let_in_with_a_second_one() -> None:
    async def run() -> None:
        admission, crowd = room_for(2), Crowd()

        async def verify() -> None:
            async with crowd.enter(admission), crowd.enter(admission):
                await asyncio.sleep(0.001)

        await asyncio.gather(*(verify() for _ in range(20)))
        assert crowd.most <= 4

    asyncio.run(asyncio.wait_for(run(), 30))


def test_a_verifier_that_opens_two_side_by_side_cannot_block_another() -> None:
    async def run() -> None:
        admission, crowd = room_for(2), Crowd()

        async def verify() -> None:
            with Holder().here():
                async with AsyncExitStack() as stack:
                    both = (crowd.enter(admission) for _ in range(2))
                    await asyncio.gather(*(stack.enter_async_context(one) for one in both))

        await asyncio.gather(*(verify() for _ in range(20)))
        assert len(crowd.order) == 40

    asyncio.run(asyncio.wait_for(run(), 30))


def test_a_caller_whose_sandbox_is_gone_waits_as_everyone_does() -> None:
    async def run() -> int:
        admission, crowd = room_for(2), Crowd()
        await crowd.visit(admission)
        await asyncio.gather(*(crowd.visit(admission) for _ in range(10)))
        return crowd.most

    assert asyncio.run(run()) == 2


def test_a_cancelled_wait_leaves_the_queue() -> None:
    async def run() -> None:
        admission, crowd = room_for(1), Crowd()
        async with crowd.enter(admission):
            waiting = [asyncio.create_task(crowd.visit(admission, f"{i}")) for i in range(3)]
            await asyncio.sleep(0.01)
            waiting[0].cancel()
            await asyncio.sleep(0.01)
            assert admission.counters.queued == 2
        await asyncio.gather(*waiting[1:])
        assert crowd.order[1:] == ["1", "2"]
        assert admission.counters.running == 0

    asyncio.run(run())


def test_a_place_given_to_someone_who_is_cancelled_just_then_is_not_lost() -> None:
    async def run() -> None:
        admission, crowd = room_for(1), Crowd()
        async with crowd.enter(admission):
            task = asyncio.create_task(crowd.visit(admission))
            await asyncio.sleep(0.01)
        task.cancel()  # after it was let in, and before it could know
        with pytest.raises(asyncio.CancelledError):
            await task
        assert admission.counters.running == 0
        await crowd.visit(admission, "next")
        assert crowd.order[-1] == "next"

    asyncio.run(run())


def test_what_ends_with_an_error_gives_its_place_back() -> None:
    async def run() -> int:
        admission, crowd = room_for(1), Crowd()

        async def fail() -> None:
            async with crowd.enter(admission):
                raise SandboxError("no image")

        results = await asyncio.gather(*(fail() for _ in range(5)), return_exceptions=True)
        assert all(isinstance(result, SandboxError) for result in results)
        return admission.counters.running

    assert asyncio.run(run()) == 0


def test_a_sandbox_larger_than_the_machine_is_an_error_at_once() -> None:
    async def run(admission: Admission, spec: SandboxSpec) -> None:
        async with admission.turn(spec):
            pass

    huge = SPEC.model_copy(update={"memory_bytes": 9 * GIB})
    with pytest.raises(SandboxError, match=r"9,216 MiB .* has 8,192 MiB") as caught:
        asyncio.run(run(Admission(machine=FakeMachine().machine), huge))
    assert not caught.value.retryable
    with pytest.raises(SandboxError, match=r"counts 128 MiB .* given 64 MiB"):
        asyncio.run(run(Admission(memory_bytes=64 << 20, machine=FakeMachine().machine), SPEC))


def test_the_default_limit_of_memory_is_no_need_for_so_much() -> None:
    small = FakeMachine().machine
    small = Machine(GIB, 1, lambda: GIB, small.idle_seconds)

    async def run(spec: SandboxSpec) -> int:
        admission = Admission(machine=small)
        async with admission.turn(spec):
            return admission.counters.running

    assert asyncio.run(run(SandboxSpec(image="fake"))) == 1
    with pytest.raises(SandboxError, match="take a larger machine"):
        asyncio.run(run(SandboxSpec(image="fake", memory_bytes=2 * GIB)))


def test_more_processors_than_the_machine_has_count_as_all_of_them() -> None:
    async def run() -> int:
        admission = Admission(machine=FakeMachine().machine)
        async with admission.turn(SPEC.model_copy(update={"cpus": 64})):
            return admission.counters.running

    assert asyncio.run(run()) == 1


def test_declared_memory_counts_by_an_eighth() -> None:
    async def run() -> int:
        admission = Admission(memory_bytes=GIB, processors=1000, machine=FakeMachine().machine)
        crowd = Crowd()
        await asyncio.gather(*(crowd.visit(admission) for _ in range(50)))
        return crowd.most

    assert asyncio.run(run()) == 8


def test_while_memory_is_short_nobody_is_let_in_but_the_first() -> None:
    async def run(fake: FakeMachine, better: Callable[[], None]) -> tuple[int, int]:
        admission, crowd = room_for(8, fake), Crowd()
        tasks = [asyncio.create_task(crowd.visit(admission, seconds=0.4)) for _ in range(4)]
        await asyncio.sleep(0.05)
        short = crowd.inside
        better()
        await asyncio.gather(*tasks)
        return short, crowd.most

    short = FakeMachine(available=0.1 * GIB)
    assert asyncio.run(run(short, lambda: setattr(short, "available", 8 * GIB))) == (1, 4)


def test_a_sandbox_that_thrashes_at_its_own_limit_holds_nobody_up(tmp_path: Path) -> None:
    (tmp_path / "proc/pressure").mkdir(parents=True)
    (tmp_path / "proc/meminfo").write_text(f"MemAvailable: {64 << 20} kB\n")
    (tmp_path / "proc/pressure/memory").write_text("some avg10=99.0\nfull avg10=90.0 total=1\n")
    admission, crowd = Admission(machine=Machine.this(tmp_path), processors=1), Crowd()

    async def run() -> None:
        async with asyncio.TaskGroup() as tasks:
            for _ in range(4):
                tasks.create_task(crowd.visit(admission, seconds=0.1))

    asyncio.run(run())
    assert crowd.most == 4


def test_those_let_in_a_moment_ago_count_before_they_use_their_memory() -> None:
    async def run() -> int:
        # 512 MiB are kept in reserve, so that there is room for three of 128 MiB.
        fake = FakeMachine(available=0.5 * GIB + 3.5 * (128 << 20))
        admission, crowd = room_for(64, fake), Crowd()
        await asyncio.gather(*(crowd.visit(admission, seconds=0.05) for _ in range(20)))
        return crowd.most

    assert asyncio.run(run()) == 3


def lockstep(admission: Admission, episodes: int) -> float:
    """Open so many sandboxes, none of which is closed before the last is open."""

    async def run() -> None:
        async with AsyncExitStack() as stack:

            async def open_one() -> None:
                with Holder().here():
                    await stack.enter_async_context(admission.turn(SPEC))

            await asyncio.gather(*(open_one() for _ in range(episodes)))

    begun = time.monotonic()
    asyncio.run(asyncio.wait_for(run(), 30))
    return time.monotonic() - begun


def test_episodes_that_wait_for_each_other_go_on_where_the_processors_are_idle() -> None:
    fake = FakeMachine(idle=lambda: 2 * time.monotonic())
    admission = Admission(processors=2 / 32, patience_seconds=0.5, machine=fake.machine)
    assert lockstep(admission, 6) >= 0.5
    assert admission.counters.admitted == 6


def test_episodes_that_wait_for_each_other_go_on_where_the_processors_are_busy_too() -> None:
    fake = FakeMachine(idle=lambda: 0.0)
    admission = Admission(processors=2 / 32, patience_seconds=0.1, machine=fake.machine)
    assert lockstep(admission, 4) >= 0.6


def test_a_budget_can_be_strict() -> None:
    fake = FakeMachine(idle=lambda: 2 * time.monotonic())
    admission = Admission(processors=2 / 32, patience_seconds=math.inf, machine=fake.machine)

    async def run() -> int:
        crowd = Crowd()
        await asyncio.gather(*(crowd.visit(admission, seconds=0.3) for _ in range(4)))
        return crowd.most

    assert asyncio.run(run()) == 2


def test_a_wait_stops_the_clock_of_its_caller() -> None:
    async def run() -> Deadline:
        admission, crowd = room_for(1), Crowd()
        task = asyncio.create_task(crowd.visit(admission, seconds=0.3))
        await asyncio.sleep(0.01)
        async with Deadline(0.1) as deadline:
            await crowd.visit(admission)
        await task
        return deadline

    deadline = asyncio.run(run())
    assert deadline.queue_seconds >= 0.2
    assert deadline.seconds < 0.1


def test_without_limits_everyone_is_let_in() -> None:
    async def run() -> int:
        admission, crowd = Admission.unlimited(), Crowd()
        await asyncio.gather(*(crowd.visit(admission) for _ in range(500)))
        return crowd.most

    assert asyncio.run(run()) == 500


def test_an_admission_outlives_its_event_loop() -> None:
    admission, crowd = room_for(1), Crowd()

    async def interrupted() -> None:
        async with crowd.enter(admission):
            tasks = [asyncio.create_task(crowd.visit(admission)) for _ in range(3)]
            await asyncio.sleep(0.01)
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks)

    async def again() -> None:
        await asyncio.gather(*(crowd.visit(admission) for _ in range(5)))

    asyncio.run(interrupted())
    asyncio.run(again())
    assert admission.counters.admitted == 6


def test_this_machine_says_what_it_has() -> None:
    machine = Machine.this()
    assert 0 < machine.available_bytes() <= machine.memory_bytes
    assert machine.processors > 0
    assert machine.idle_seconds() > 0
