import asyncio
import dataclasses
import gc
import inspect
import typing
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from multiprocessing import get_context
from typing import Annotated, Any, Literal

import pytest
from pydantic import BaseModel, Field

from gymsuite import (
    Context,
    DefinitionError,
    Environment,
    InfrastructureError,
    Sandbox,
    SandboxDead,
    SandboxError,
    SandboxSpec,
    Tool,
    UsageError,
    submit,
)
from gymsuite.adapters.trl import environment_class, rows

from .conftest import FakeProvider

ROW = {"prompt": [{"role": "user", "content": "Go."}], "task_id": "write-42", "seed": 0}


@pytest.fixture
def factory(environment: Environment, provider: FakeProvider) -> type:
    return environment_class(environment, open_sandbox=provider.open)


@pytest.fixture
def instance(factory: type) -> Iterator[Any]:
    yield factory()
    gc.collect()


def with_tools(environment: Environment, *tools: Tool) -> Environment:
    return dataclasses.replace(environment, tools=tools)


def public_methods(made: type) -> set[str]:
    """What TRL takes for tools, but for its own two."""
    members = inspect.getmembers(made, predicate=inspect.isfunction)
    return {name for name, _ in members if not name.startswith("_")} - {"reset", "get_reward"}


def test_the_public_methods_are_the_tools_and_nothing_else(factory: type) -> None:
    assert public_methods(factory) == {"bash", "edit", "submit"}
    assert all(name.startswith("_") for name in vars(factory()))


def test_the_class_is_named_after_the_environment(factory: type) -> None:
    assert factory.__name__ == "TestWriteV1"


def test_an_episode_that_is_submitted(instance: Any, provider: FakeProvider) -> None:
    assert instance.reset(**ROW) is None
    assert instance.edit(path="answer.txt", old="", new="42") == "created answer.txt"
    assert instance.submit() == "submitted"
    assert instance.get_reward() == 1.0
    assert instance.get_reward() == 1.0
    assert len(provider.opened) == 2
    assert all(sandbox.closed for sandbox in provider.opened)


def test_an_episode_that_the_trainer_ends_is_scored(instance: Any, provider: FakeProvider) -> None:
    instance.reset(**ROW)
    instance.edit(path="answer.txt", old="", new="42")
    assert instance.get_reward() == 1.0
    assert all(sandbox.closed for sandbox in provider.opened)


def test_doing_nothing_is_reward_zero(instance: Any) -> None:
    instance.reset(**ROW)
    assert instance.get_reward() == 0.0


def test_the_tools_say_when_the_episode_is_over(instance: Any) -> None:
    assert "the episode is over" in instance.bash(command="echo hi")
    instance.reset(**ROW)
    instance.submit()
    assert "the episode is over" in instance.bash(command="echo hi")
    assert instance.get_reward() == 0.0


def test_a_limit_ends_the_episode(instance: Any) -> None:
    instance.reset(**ROW)
    for _ in range(3):
        assert "[exit code 0]" in instance.bash(command="echo hi")
    assert "the episode is over" in instance.bash(command="echo hi")
    assert instance.get_reward() == 0.0


def test_an_agents_mistake_is_a_reply(instance: Any) -> None:
    instance.reset(**ROW)
    assert "bad arguments for 'bash'" in instance.bash(cmd="echo hi")
    assert "bad arguments for 'bash'" in instance.bash(self="echo hi")
    assert "Field required" in instance.edit(path="x")
    assert instance.get_reward() == 0.0


def test_an_instance_is_used_again(instance: Any, provider: FakeProvider) -> None:
    instance.reset(**ROW)
    instance.edit(path="answer.txt", old="", new="42")
    instance.get_reward()
    instance.reset(**ROW)
    assert instance.get_reward() == 0.0
    assert all(sandbox.closed for sandbox in provider.opened)


def test_reset_closes_what_was_left_open(instance: Any, provider: FakeProvider) -> None:
    instance.reset(**ROW)
    instance.bash(command="echo hi")
    assert not provider.opened[0].closed
    instance.reset(**ROW)
    assert provider.opened[0].closed


def test_a_dropped_class_closes_what_was_left_open(
    environment: Environment, provider: FakeProvider
) -> None:
    made: Any = environment_class(environment, open_sandbox=provider.open)
    instance = made()
    instance.reset(**ROW)
    instance.bash(command="echo hi")
    del made, instance
    gc.collect()
    assert provider.opened[0].closed


def test_a_worker_that_is_forked_off_ends_and_closes_nothing_of_its_parents(instance: Any) -> None:
    instance.reset(**ROW)
    worker = get_context("fork").Process(target=gc.collect)
    worker.start()
    worker.join(60)
    assert worker.exitcode == 0
    assert instance.edit(path="answer.txt", old="", new="42") == "created answer.txt"
    assert instance.get_reward() == 1.0


def test_a_dropped_class_waits_for_a_sandbox_that_closes_slowly(environment: Environment) -> None:
    closed: list[bool] = []

    @asynccontextmanager
    async def slow(spec: SandboxSpec) -> AsyncIterator[Sandbox]:
        async with FakeProvider().open(spec) as sandbox:
            yield sandbox
            await asyncio.sleep(0.1)
            closed.append(True)

    made: Any = environment_class(environment, open_sandbox=slow)
    instance = made()
    instance.reset(**ROW)
    instance.bash(command="echo hi")
    del instance
    del made
    gc.collect()
    assert closed == [True]


@pytest.mark.parametrize("prompt", [None, [], [{"role": "user", "content": ""}]])
def test_reset_returns_the_prompt_where_the_row_has_none(instance: Any, prompt: object) -> None:
    said = instance.reset(**{**ROW, "prompt": prompt})
    assert said == "You write files.\n\nWrite the answer."


def test_other_columns_are_left_alone(instance: Any) -> None:
    instance.reset(**ROW, difficulty="hard", images=None)
    assert instance.get_reward() == 0.0


@pytest.mark.parametrize(
    ("row", "complaint"),
    [
        ({"seed": 0}, "no 'task_id'"),
        ({"task_id": "write-42"}, "no 'seed'"),
        ({"task_id": "write-43", "seed": 0}, "no task 'write-43'.*'write-42'"),
        ({"task_id": 0, "seed": 0}, "no task 0"),
        ({"task_id": "write-42", "seed": "0"}, "a seed is an integer, not '0'"),
    ],
)
def test_a_row_that_cannot_be_used_is_the_callers_error(
    instance: Any, row: dict[str, object], complaint: str
) -> None:
    with pytest.raises(UsageError, match=complaint):
        instance.reset(**row)


def test_a_reward_before_any_reset_is_the_callers_error(instance: Any) -> None:
    with pytest.raises(UsageError, match="reset"):
        instance.get_reward()


class Broken:
    """Sandboxes that cannot be opened while `broken`."""

    def __init__(self) -> None:
        self.broken = True

    @asynccontextmanager
    async def open(self, spec: SandboxSpec) -> AsyncIterator[Sandbox]:
        if self.broken:
            raise SandboxError("no space left")
        async with FakeProvider().open(spec) as sandbox:
            yield sandbox


def test_a_broken_world_is_no_reward_and_no_exception(environment: Environment) -> None:
    world = Broken()
    instance: Any = environment_class(environment, open_sandbox=world.open)()
    instance.reset(**ROW)
    assert "the environment broke" in instance.bash(command="echo hi")
    assert "the episode is over" in instance.bash(command="echo hi")
    assert instance.get_reward() is None
    world.broken = False
    instance.reset(**ROW)
    assert instance.get_reward() == 0.0


def test_a_verifier_that_breaks_is_no_reward(environment: Environment) -> None:
    async def verify(*_: object) -> Any:
        raise SandboxDead("lost")

    broken = dataclasses.replace(environment, verifier=verify)
    instance: Any = environment_class(broken, open_sandbox=FakeProvider().open)()
    instance.reset(**ROW)
    assert instance.get_reward() is None
    instance.reset(**ROW)
    assert "the environment broke" in instance.submit()
    assert instance.get_reward() is None


def test_state_that_cannot_be_closed_stops_no_training(environment: Environment) -> None:
    class Stuck:
        """State that cannot be let go of."""

        def fork(self) -> "Stuck":
            return self

        async def left(self) -> dict[str, Any]:
            return {}

        def close(self) -> None:
            raise ZeroDivisionError

    async def keep(context: Context) -> str:
        """Keep something."""
        context.state["stuck"] = Stuck()
        return "kept"

    made = environment_class(with_tools(environment, keep), open_sandbox=FakeProvider().open)
    instance: Any = made()
    for _ in range(2):
        instance.reset(**ROW)
        assert instance.keep() == "kept"
    assert instance.get_reward() is None


def test_a_tool_that_breaks_its_definition_is_no_reward(environment: Environment) -> None:
    async def crash(context: Context) -> str:
        """Crash."""
        raise ZeroDivisionError

    broken = with_tools(environment, crash)
    instance: Any = environment_class(broken, open_sandbox=FakeProvider().open)()
    instance.reset(**ROW)
    instance.crash()
    assert instance.get_reward() is None


def test_a_machine_that_only_fails_ends_the_training(environment: Environment) -> None:
    instance: Any = environment_class(environment, open_sandbox=Broken().open)()

    def play() -> None:
        instance.reset(**ROW)
        instance.bash(command="echo hi")
        assert instance.get_reward() is None

    for _ in range(63):
        play()
    with pytest.raises(InfrastructureError, match="the last 64 rollouts failed.*no space left"):
        play()


def test_misuse_inside_a_tool_is_raised_again_for_the_reward(environment: Environment) -> None:
    @asynccontextmanager
    async def no_such_provider(spec: SandboxSpec) -> AsyncIterator[Sandbox]:
        raise UsageError("no provider 'podman'")
        yield

    instance: Any = environment_class(environment, open_sandbox=no_such_provider)()
    instance.reset(**ROW)
    with pytest.raises(UsageError, match="podman"):
        instance.bash(command="echo hi")
    with pytest.raises(UsageError, match="podman"):
        instance.get_reward()


async def reset(context: Context) -> str:
    """Start over."""
    return ""


async def get_reward(context: Context) -> str:
    """Peek."""
    return ""


async def _hidden(context: Context) -> str:
    """Invisible to TRL."""
    return ""


async def selfish(context: Context, self: str) -> str:
    """Has a parameter that methods cannot have."""
    return self


@pytest.mark.parametrize("tool", [reset, get_reward, _hidden, selfish])
def test_a_tool_that_trl_cannot_have_is_refused(environment: Environment, tool: Tool) -> None:
    with pytest.raises(DefinitionError, match=tool.__name__):
        environment_class(with_tools(environment, tool, submit))


async def close(context: Context) -> str:
    """Close the valve."""
    return "closed"


def test_a_tool_called_close_is_a_tool(environment: Environment) -> None:
    made: Any = environment_class(with_tools(environment, close, submit))
    instance = made()
    instance.reset(**ROW)
    assert instance.close() == "closed"


class Point(BaseModel):
    x: int
    y: int = 0


async def rich(
    context: Context,
    text: Annotated[str, Field(description="Some\n    text.")],
    *,
    mode: Literal["fast", "slow"],
    level: Literal[1],
    numbers: list[int],
    table: dict[str, float],
    point: Point,
    pair: tuple[int, str],
    anything: Any,
    ratio: float | None = None,
    force: bool = False,
) -> str:
    """Do a lot.

    At length.

    Args:
        text: Replaced.
    """
    return f"{point.x} {force}"


def test_a_method_has_the_tools_types_and_a_google_docstring(environment: Environment) -> None:
    made = environment_class(with_tools(environment, rich))
    method = made().rich
    assert typing.get_type_hints(method) == {
        "text": str,
        "mode": Literal["fast", "slow"],
        "level": Literal[1],
        "numbers": list[int],
        "table": dict[str, float],
        "point": dict,
        "pair": tuple[int, str],
        "anything": Any,
        "ratio": float | None,
        "force": bool,
    }
    parameters = inspect.signature(method).parameters
    assert list(parameters) == list(typing.get_type_hints(method))
    optional = {p.name: p.default for p in parameters.values() if p.default is not p.empty}
    assert optional == {"ratio": None, "force": False}
    assert (inspect.getdoc(method) or "").startswith(
        "Do a lot.\n\nAt length.\n\nArgs:\n    text: Some text.\n    mode: The mode."
    )


def test_nested_arguments_reach_the_tool(environment: Environment) -> None:
    instance: Any = environment_class(with_tools(environment, rich))()
    instance.reset(**ROW)
    reply = instance.rich(
        text="",
        mode="fast",
        level=1,
        numbers=[],
        table={},
        point={"x": 7},
        pair=[1, "a"],
        anything=None,
    )
    assert reply == "7 False"


def test_rows_hold_prompt_task_and_seed(environment: Environment) -> None:
    made = rows(environment, seeds=(3, 4))
    assert made[0] == {
        "prompt": [
            {"role": "system", "content": "You write files."},
            {"role": "user", "content": "Write the answer."},
        ],
        "task_id": "write-42",
        "seed": 3,
    }
    assert [row["seed"] for row in made] == [3, 4]


def test_rows_of_an_unknown_split_are_the_callers_error(environment: Environment) -> None:
    with pytest.raises(UsageError, match="no split 'test'; there is: train"):
        rows(environment, split="test")
