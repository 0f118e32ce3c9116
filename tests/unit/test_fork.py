import asyncio
import threading
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from gymsuite import (
    Context,
    DefinitionError,
    Environment,
    Episode,
    Limits,
    Message,
    OpenSandbox,
    Sandbox,
    Score,
    Submission,
    Task,
    ToolCall,
    UsageError,
    submit,
)

from .conftest import FakeProvider

RIGHT = ToolCall(id="1", name="edit", arguments={"path": "answer.txt", "old": "", "new": "42"})
WRONG = ToolCall(id="1", name="edit", arguments={"path": "answer.txt", "old": "", "new": "41"})
SUBMIT = ToolCall(id="2", name="submit")


def say(*calls: ToolCall) -> Message:
    return Message(role="assistant", tool_calls=calls)


@dataclass
class Counter:
    """A number that an environment keeps, and that counts how often it was closed."""

    closed: list[int]
    value: int = 0
    parts: list[int] = field(default_factory=list)

    def fork(self) -> "Counter":
        return Counter(self.closed, self.value)

    async def left(self) -> Mapping[str, Any]:
        return {"count": self.value}

    def close(self) -> None:
        self.closed.append(self.value)


@asynccontextmanager
async def begun(environment: Environment, provider: FakeProvider) -> AsyncIterator[Episode]:
    async with Episode(environment, provider.open) as episode:
        await episode.reset(environment.tasks[0], 0)
        yield episode


def test_forks_go_their_own_way_from_what_they_share(
    environment: Environment, provider: FakeProvider
) -> None:
    async def main() -> list[float]:
        look = ToolCall(name="bash", arguments={"command": "echo x"})
        async with begun(environment, provider) as parent:
            await parent.step(say(look))
            right, wrong = await parent.fork(2)
            async with right, wrong:
                steps = [
                    await right.step(say(RIGHT, SUBMIT)),
                    await wrong.step(say(WRONG, SUBMIT)),
                    await parent.step(say(SUBMIT)),
                ]
        return [step.reward for step in steps]

    assert asyncio.run(main()) == [1.0, 0.0, 0.0]


def test_a_fork_is_not_prepared_again(environment: Environment, provider: FakeProvider) -> None:
    prepared = []

    async def prepare(task: Task, sandbox: Sandbox) -> None:
        prepared.append(task.id)

    async def main() -> None:
        async with begun(replace(environment, prepare=prepare), provider) as parent:
            await parent.step(say(RIGHT))
            (child,) = await parent.fork(1)
            async with child:
                step = await child.step(say(SUBMIT))
        assert step.reward == 1.0

    asyncio.run(main())
    assert prepared == ["write-42"]


def test_a_group_starts_from_one_preparation(
    environment: Environment, provider: FakeProvider
) -> None:
    prepared = []

    async def prepare(task: Task, sandbox: Sandbox) -> None:
        prepared.append(task.id)
        await sandbox.write("prepared.txt", b"once")

    async def main() -> list[float]:
        async with begun(replace(environment, prepare=prepare), provider) as first:
            group = await first.fork(3)
            rewards = []
            for episode in group:
                async with episode:
                    rewards.append((await episode.step(say(RIGHT, SUBMIT))).reward)
        return rewards

    assert asyncio.run(main()) == [1.0] * 3
    assert prepared == ["write-42"]
    agents = [sandbox for sandbox in provider.opened if "note.txt" in sandbox.files]
    assert [sandbox.files["prepared.txt"] for sandbox in agents] == [b"once"] * 4


def test_a_fork_that_needs_no_sandbox_opens_none(
    environment: Environment, provider: FakeProvider
) -> None:
    task = environment.tasks[0].model_copy(update={"files": {}})

    async def main() -> None:
        bare = replace(environment, tasks=(task,), collect=None)
        async with begun(bare, provider) as parent:
            (child,) = await parent.fork(1)
            async with child:
                await child.step(say(SUBMIT))

    asyncio.run(main())
    assert len(provider.opened) == 1  # the verifier's


def test_an_episode_forks_before_it_has_a_sandbox(
    environment: Environment, provider: FakeProvider
) -> None:
    async def main() -> float:
        async with begun(environment, provider) as parent:
            (child,) = await parent.fork(1)
            async with child:
                return (await child.step(say(RIGHT, SUBMIT))).reward

    assert asyncio.run(main()) == 1.0
    assert provider.opened[0].files["note.txt"] == b"hello"


def test_a_fork_of_a_fork_keeps_what_both_did(
    environment: Environment, provider: FakeProvider
) -> None:
    async def main() -> float:
        async with begun(environment, provider) as parent:
            await parent.step(say(RIGHT))
            (child,) = await parent.fork(1)
            async with child:
                (grandchild,) = await child.fork(1)
                async with grandchild:
                    return (await grandchild.step(say(SUBMIT))).reward

    assert asyncio.run(main()) == 1.0


def test_state_and_dice_are_copied_and_every_copy_is_closed(
    environment: Environment, provider: FakeProvider
) -> None:
    closed: list[int] = []

    async def count(context: Context) -> str:
        """Count one up."""
        counter = context.state.setdefault("counter", Counter(closed))
        counter.value += 1
        context.state.setdefault("seen", []).append(counter.value)
        return f"{context.rng.random()} {context.state['seen']}"

    async def verify(task: Task, submission: Submission, open_sandbox: OpenSandbox) -> Score:
        return Score(reward=submission.state["count"], passed=True)

    counting = replace(
        environment, tools=(count, submit), verifier=verify, limits=Limits(max_steps=9)
    )
    one = ToolCall(id="1", name="count")

    async def main() -> tuple[list[str], list[float]]:
        async with begun(counting, provider) as parent:
            await parent.step(say(one))
            (child,) = await parent.fork(1)
            async with child:
                said = [
                    (await episode.step(say(one))).observation.messages[0].text
                    for episode in (parent, child)
                ]
                await child.step(say(one))
                ends = [(await episode.step(say(SUBMIT))).reward for episode in (parent, child)]
        return said, ends

    said, ends = asyncio.run(main())
    assert said[0] == said[1]
    assert said[0].endswith("[1, 2]")
    assert ends == [2.0, 3.0]
    assert {2, 3} <= set(closed)


def test_state_that_cannot_be_copied_is_its_authors_fault(
    environment: Environment, provider: FakeProvider
) -> None:
    async def keep(context: Context) -> str:
        """Keep what cannot be copied."""
        context.state["lock"] = threading.Lock()
        return "kept"

    async def main() -> None:
        stubborn = replace(environment, tools=(keep, submit))
        async with begun(stubborn, provider) as parent:
            await parent.step(say(ToolCall(name="keep")))
            with pytest.raises(
                DefinitionError, match=r"fork\(\) of test/write-v1 raised TypeError"
            ):
                await parent.fork(2)

    asyncio.run(main())


def test_the_steps_of_the_parent_count_for_its_forks(
    environment: Environment, provider: FakeProvider
) -> None:
    look = ToolCall(name="bash", arguments={"command": "echo x"})

    async def main() -> bool:
        async with begun(environment, provider) as parent:
            await parent.step(say(look))
            await parent.step(say(look))
            (child,) = await parent.fork(1)
            async with child:
                return (await child.step(say(look))).truncated

    assert asyncio.run(main())


def test_what_is_not_live_cannot_fork(environment: Environment, provider: FakeProvider) -> None:
    async def main() -> None:
        episode = Episode(environment, provider.open)
        with pytest.raises(UsageError, match="reset"):
            await episode.fork(1)
        async with begun(environment, provider) as over:
            await over.step(say(SUBMIT))
            with pytest.raises(UsageError, match="over"):
                await over.fork(1)

    asyncio.run(main())
