from collections.abc import Iterator
from typing import Annotated

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from gymnasium.vector import SyncVectorEnv
from pydantic import Field

from gymsuite import Context, Environment, Score, Task, UsageError, bash, submit
from gymsuite.gym import GymEnv
from gymsuite.numeric import NumericEnv


def dial() -> NumericEnv:
    return NumericEnv(gymnasium.make("gymsuite.gym:tools/dial-v1"), size=3, bound=6)


@pytest.fixture
def env() -> Iterator[NumericEnv]:
    env = dial()
    yield env
    env.close()


def index(env: NumericEnv, name: str, **arguments: object) -> np.int64:
    calls = [(call.name, dict(call.arguments)) for call in env.menu]
    return np.int64(calls.index((name, arguments)))


def test_it_is_a_gymnasium_environment(env: NumericEnv) -> None:
    check_env(env, skip_render_check=True)


def test_the_menu_is_every_call_that_the_schemas_allow(env: NumericEnv) -> None:
    assert len(env.menu) == 3 * 2 + 1
    assert env.action_space == gymnasium.spaces.Discrete(7)


def test_the_observation_is_what_the_reply_says(env: NumericEnv) -> None:
    start, _ = env.reset(seed=0, options={"task": "needles-1+0+0"})
    assert start.tolist() == [-1, 0, 0]
    numbers, reward, terminated, truncated, _ = env.step(index(env, "turn", knob="right", way="up"))
    assert numbers.tolist() == [-1, 1, 1]
    assert (reward, terminated, truncated) == (0.0, False, False)
    numbers, reward, terminated, _, _ = env.step(index(env, "lock"))
    assert numbers.tolist() == [-1, 1, 1]
    assert (reward, terminated) == (0.0, True)


def test_numbers_out_of_bounds_are_clipped(env: NumericEnv) -> None:
    env.reset(seed=0, options={"task": "needles-1+0+0"})
    up = index(env, "turn", knob="left", way="up")
    for _ in range(9):
        numbers, *_ = env.step(up)
    assert numbers.tolist() == [6, 0, 0]


def test_vector_environments_work() -> None:
    vector = SyncVectorEnv([dial, dial])
    numbers, _ = vector.reset(seed=1)
    assert numbers.shape == (2, 3)
    vector.step(np.array([0, 1]))
    vector.close()


async def fits(
    context: Context,
    n: Annotated[int, Field(ge=1, le=3)],
    *,
    loud: bool,
    only: Annotated[str, Field(json_schema_extra={"const": "x"})] = "x",
) -> str:
    """Say a number."""
    return f"{n} {loud}"


async def verify(task: Task, *_: object) -> Score:
    return Score(reward=0, passed=False)


def environment(*tools: object, prompt: str = "0") -> Environment:
    return Environment("test/numbers-v1", (Task(id="t", prompt=prompt),), verify, tools=tools)  # type: ignore[arg-type]  # any tools


def test_bounded_integers_booleans_and_constants_make_a_menu() -> None:
    env = NumericEnv(GymEnv(environment(fits)), size=1)
    found = [(call.arguments["n"], call.arguments["loud"]) for call in env.menu]
    assert found == [(1, False), (1, True), (2, False), (2, True), (3, False), (3, True)]


@pytest.mark.parametrize("tool", [bash, submit])
def test_a_tool_that_takes_any_text_has_no_menu(tool: object) -> None:
    with pytest.raises(UsageError, match="can be anything"):
        NumericEnv(GymEnv(environment(tool)), size=1)


def test_a_prompt_without_enough_numbers_is_the_callers_error() -> None:
    env = NumericEnv(GymEnv(environment(fits, prompt="one 1")), size=2)
    with pytest.raises(UsageError, match="fewer than 2 numbers"):
        env.reset(seed=0)
    env.close()


def test_a_foreign_environment_is_refused() -> None:
    foreign: gymnasium.Env[object, object] = gymnasium.make("CartPole-v1")
    with pytest.raises(UsageError, match="no environment of gymsuite"):
        NumericEnv(foreign, size=1)  # type: ignore[arg-type]  # the point
