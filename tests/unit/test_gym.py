import asyncio
import functools
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager

import gymnasium
import pytest
from gymnasium.utils.env_checker import check_env
from gymnasium.vector import AutoresetMode, SyncVectorEnv

from gymsuite import (
    Environment,
    Message,
    Registry,
    Sandbox,
    SandboxError,
    SandboxSpec,
    ToolCall,
    UsageError,
)
from gymsuite.gym import ActionSpace, GymEnv, ObservationSpace
from gymsuite.types import Observation

from .conftest import FakeProvider

WRITE = ToolCall(id="1", name="edit", arguments={"path": "answer.txt", "old": "", "new": "42"})
SUBMIT = ToolCall(id="2", name="submit")


@pytest.fixture
def env(environment: Environment, provider: FakeProvider) -> Iterator[GymEnv]:
    env = GymEnv(environment, open_sandbox=provider.open, render_mode="ansi")
    yield env
    env.close()


def say(*calls: ToolCall) -> Message:
    return Message(role="assistant", tool_calls=calls)


def test_it_is_a_gymnasium_environment(env: GymEnv) -> None:
    check_env(env, skip_render_check=True)


def test_an_episode_through_gymnasium(env: GymEnv) -> None:
    observation, info = env.reset(seed=1)
    assert info["task"] == "write-42"
    assert observation in env.observation_space
    assert env.step(say(WRITE))[1:4] == (0.0, False, False)
    assert env.step(say(SUBMIT))[1:4] == (1.0, True, False)
    transcript = env.render()
    assert transcript is not None
    assert "[user] Write the answer." in transcript
    assert "submit({})" in transcript


@pytest.mark.parametrize("text", ["", "two\nlines", "naïve 東京 \N{ROCKET}", "x" * 100_000])
def test_any_text_is_in_the_spaces(env: GymEnv, text: str) -> None:
    assert Message(role="assistant", content=text) in env.action_space
    assert Observation((Message(role="user", content=text),)) in env.observation_space
    assert Message(role="user", content=text) not in env.action_space
    assert text not in env.observation_space


def test_samples_are_seeded(env: GymEnv) -> None:
    def draw(seed: int) -> list[Message]:
        env.action_space.seed(seed)
        return [env.action_space.sample() for _ in range(5)]

    assert draw(3) == draw(3)
    assert draw(3) != draw(4)


def test_spaces_are_equal_when_their_tools_are(environment: Environment) -> None:
    tools = environment.toolbox.schemas
    assert ActionSpace(tools) == ActionSpace(tools)
    assert ActionSpace(tools) != ActionSpace(tools[:1])
    assert ObservationSpace() == ObservationSpace()


def test_vector_environments_work(environment: Environment, provider: FakeProvider) -> None:
    make = functools.partial(GymEnv, environment, open_sandbox=provider.open)
    vector = SyncVectorEnv([make] * 3, autoreset_mode=AutoresetMode.DISABLED)
    try:
        observations, _ = vector.reset(seed=[1, 2, 3])
        assert len(observations) == 3
        _, rewards, terminated, *_ = vector.step((say(WRITE, SUBMIT),) * 3)
        assert rewards.tolist() == [1.0, 1.0, 1.0]
        assert terminated.all()
    finally:
        vector.close()


def test_a_failure_raises_out_of_step(environment: Environment) -> None:
    @asynccontextmanager
    async def broken(spec: SandboxSpec) -> AsyncIterator[Sandbox]:
        raise SandboxError("no image")
        yield

    env = GymEnv(environment, open_sandbox=broken)
    env.reset(seed=0)
    with pytest.raises(SandboxError, match="no image"):
        env.step(say(WRITE))
    env.close()


def test_the_task_is_chosen_by_option_or_by_seed(env: GymEnv) -> None:
    assert env.reset(options={"task": "write-42"})[1]["task"] == "write-42"
    assert env.reset(options={"task": 0})[1]["task"] == "write-42"
    for bad, says in (({"task": "nope"}, "no task 'nope'"), ({"level": 1}, "no option 'level'")):
        with pytest.raises(UsageError, match=says):
            env.reset(options=bad)


def test_misuse_is_told(environment: Environment, provider: FakeProvider) -> None:
    env = GymEnv(environment, open_sandbox=provider.open)
    with pytest.raises(UsageError, match="reset"):
        env.step(say(SUBMIT))
    env.reset(seed=0)
    with pytest.raises(UsageError, match="of an assistant, not 'submit'"):
        env.step("submit")  # type: ignore[arg-type]
    env.close()
    env.close()
    with pytest.raises(UsageError, match="'ansi'"):
        GymEnv(environment, render_mode="human")


def test_close_and_reset_release_the_sandboxes(env: GymEnv, provider: FakeProvider) -> None:
    for _ in range(2):
        env.reset(seed=0)
        env.step(say(WRITE))
    env.close()
    assert [s.closed for s in provider.opened] == [True, True]


def test_a_sandbox_that_cannot_be_closed_keeps_no_thread(environment: Environment) -> None:
    @asynccontextmanager
    async def open_sticky(spec: SandboxSpec) -> AsyncIterator[Sandbox]:
        async with FakeProvider().open(spec) as sandbox:
            yield sandbox
        raise SandboxError("stuck")

    before = threading.active_count()
    env = GymEnv(environment, open_sandbox=open_sticky)
    env.reset(seed=0)
    env.step(say(WRITE))
    with pytest.raises(SandboxError, match="stuck"):
        env.close()
    assert threading.active_count() == before
    env.close()


def test_it_works_below_a_running_loop(env: GymEnv, provider: FakeProvider) -> None:
    async def cell_of_a_notebook() -> None:
        env.reset(seed=0)
        env.step(say(WRITE))
        env.close()

    asyncio.run(cell_of_a_notebook())
    assert [s.closed for s in provider.opened] == [True]


def test_registered_ids_are_made_by_gymnasium() -> None:
    for name in Registry.default().specs:
        assert name in gymnasium.registry
