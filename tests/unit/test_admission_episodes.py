import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace

import pytest

from gymsuite import (
    Context,
    Environment,
    Episode,
    Limits,
    Message,
    OpenSandbox,
    Rollout,
    Sandbox,
    SandboxSpec,
    Score,
    Submission,
    Task,
    ToolCall,
)
from gymsuite.rollout import rollout
from gymsuite.sandbox.admission import Admission
from gymsuite.sandbox.capacity import Machine
from gymsuite.types import Action, Observation

from .conftest import FakeProvider, FakeSandbox

SPEC = SandboxSpec(image="fake")
WRITE = ToolCall(id="1", name="edit", arguments={"path": "answer.txt", "old": "", "new": "42"})
SUBMIT = ToolCall(id="2", name="submit")


def room_for(sandboxes: int) -> Admission:
    return Admission(
        processors=sandboxes / 32,
        machine=Machine(8 << 30, 2, lambda: 8 << 30, lambda: 0.0),
    )


@dataclass
class Crowd:
    """Opens fake sandboxes, and counts how many are open."""

    most: int = 0
    open_now: list[FakeSandbox] = field(default_factory=list)

    @asynccontextmanager
    async def open(self, spec: SandboxSpec) -> AsyncIterator[Sandbox]:
        sandbox = FakeSandbox()
        self.open_now.append(sandbox)
        self.most = max(self.most, len(self.open_now))
        await asyncio.sleep(0)
        try:
            yield sandbox
        finally:
            self.open_now.remove(sandbox)


class Writer:
    """Writes the answer, then submits."""

    def __init__(self, task: Task) -> None:
        self._calls = iter((WRITE, SUBMIT))

    async def act(self, observation: Observation) -> Action:
        return Message(role="assistant", tool_calls=(next(self._calls),))


def test_a_thousand_concurrent_episodes_all_score(environment: Environment) -> None:
    async def run() -> tuple[list[Rollout], Crowd]:
        crowd = Crowd()
        open_sandbox = room_for(10).gate(crowd.open)
        task = environment.tasks[0]
        return await asyncio.gather(
            *(rollout(environment, task, Writer, open_sandbox, seed=i) for i in range(1000))
        ), crowd

    rollouts, crowd = asyncio.run(run())
    assert {r.score.reward for r in rollouts if r.score} == {1.0}
    assert not any(r.failure for r in rollouts)
    assert crowd.most == 10
    assert sum(r.usage.queue_seconds > 0 for r in rollouts) >= 900


@asynccontextmanager
async def full_for(admission: Admission, seconds: float) -> AsyncIterator[None]:
    """Let someone else have the only place for a while."""

    async def hold(entered: asyncio.Event) -> None:
        async with admission.turn(SPEC):
            entered.set()
            await asyncio.sleep(seconds)

    entered = asyncio.Event()
    task = asyncio.create_task(hold(entered))
    await entered.wait()
    yield
    await task


def test_waiting_to_start_is_nobodys_time(environment: Environment, provider: FakeProvider) -> None:
    hurried = replace(environment, limits=Limits(episode_seconds=0.2, reset_seconds=0.2))

    async def run() -> Rollout:
        admission = room_for(1)
        async with full_for(admission, 0.5):
            return await rollout(hurried, hurried.tasks[0], Writer, admission.gate(provider.open))

    record = asyncio.run(run())
    assert record.failure is None
    assert (record.score and record.score.reward, record.truncation) == (1.0, "")
    usage = record.usage
    assert usage.queue_seconds >= 0.4
    stages = (usage.reset_seconds, usage.tool_seconds, usage.model_seconds, usage.verify_seconds)
    assert sum(stages) < 0.4
    assert usage.wall_seconds >= 0.4


def test_a_verifier_that_waits_for_its_turn_is_not_late(
    environment: Environment, provider: FakeProvider
) -> None:
    hurried = replace(environment, limits=Limits(verify_seconds=0.2))

    async def run() -> Score:
        admission = room_for(1)
        async with full_for(admission, 0.5):
            return await hurried.verify(
                hurried.tasks[0],
                Submission(files={"answer.txt": b"42"}),
                admission.gate(provider.open),
            )

    assert asyncio.run(run()).passed


def test_an_agent_that_opens_a_sandbox_of_its_own_is_not_late(
    environment: Environment, provider: FakeProvider
) -> None:
    hurried = replace(environment, limits=Limits(episode_seconds=0.2))

    async def run() -> Rollout:
        admission = room_for(1)
        open_sandbox = admission.gate(provider.open)

        class Oracle(Writer):
            async def act(self, observation: Observation) -> Action:
                async with open_sandbox(SPEC):
                    return await super().act(observation)

        async with full_for(admission, 0.5):
            return await rollout(hurried, hurried.tasks[0], Oracle, open_sandbox)

    record = asyncio.run(run())
    assert record.truncation == ""
    assert record.score is not None
    assert record.usage.queue_seconds >= 0.4


def test_what_a_verifier_gathers_is_let_in_together(
    environment: Environment, provider: FakeProvider
) -> None:
    async def verify(task: Task, submission: Submission, open_sandbox: OpenSandbox) -> Score:
        all_open = asyncio.Barrier(3)

        async def use() -> None:
            async with open_sandbox(SPEC):
                await all_open.wait()

        await asyncio.gather(*(use() for _ in range(3)))
        return Score(reward=1.0, passed=True)

    judged = replace(environment, verifier=verify)

    async def run() -> list[Score]:
        open_sandbox = room_for(2).gate(provider.open)
        verifying = (judged.verify(judged.tasks[0], Submission(), open_sandbox) for _ in range(10))
        return await asyncio.wait_for(asyncio.gather(*verifying), 20)

    assert len(asyncio.run(run())) == 10


def test_forks_are_let_in_while_what_they_were_forked_from_is_open(
    environment: Environment, provider: FakeProvider
) -> None:
    async def run() -> int:
        open_sandbox = room_for(1).gate(provider.open)
        async with Episode(environment, open_sandbox) as episode:
            await episode.reset(environment.tasks[0], 0)
            forks = await episode.fork(3)  # before there is a sandbox to freeze
            say = Message(role="assistant", tool_calls=(WRITE,))
            await episode.step(say)
            for fork in forks:
                async with fork:
                    await fork.step(say)
        return len(provider.opened)

    assert asyncio.run(asyncio.wait_for(run(), 20)) == 4


def test_a_tool_that_is_slow_after_a_wait_is_still_ended(
    environment: Environment, provider: FakeProvider
) -> None:
    async def hang(context: Context) -> str:
        await context.sandbox.read("note.txt")
        await asyncio.sleep(3600)
        return "never"

    slow = replace(
        environment, tools=(*environment.tools, hang), limits=Limits(episode_seconds=0.2)
    )

    async def run() -> str:
        admission = room_for(1)
        async with (
            full_for(admission, 0.3),
            Episode(slow, admission.gate(provider.open)) as episode,
        ):
            await episode.reset(slow.tasks[0], 0)
            call = ToolCall(id="3", name="hang")
            await episode.step(Message(role="assistant", tool_calls=(call,)))
            return episode.truncation

    assert asyncio.run(asyncio.wait_for(run(), 20)) == "episode_seconds"


@pytest.mark.parametrize("closes", [True, False])
def test_an_episode_that_is_thrown_away_gives_its_place_back(
    environment: Environment, provider: FakeProvider, *, closes: bool
) -> None:
    async def run() -> int:
        admission = room_for(1)
        async with Episode(environment, admission.gate(provider.open)) as episode:
            await episode.reset(environment.tasks[0], 0)
            calls = (WRITE, SUBMIT) if closes else (WRITE,)
            await episode.step(Message(role="assistant", tool_calls=calls))
        return admission.counters.running

    assert asyncio.run(run()) == 0
