"""Tasks that are made when they are asked for: who names one makes no other."""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest

from gymsuite import Environment, Task, UsageError
from gymsuite.adapters.trl import environment_class, rows
from gymsuite.gym import GymEnv
from gymsuite.runs.plan import Choice, make_plan
from gymsuite.worlds.procedural import Procedural, find_task

from .conftest import FakeProvider


@pytest.fixture
def made() -> list[str]:
    return []


@pytest.fixture
def endless(environment: Environment, made: list[str]) -> Environment:
    def make(split: str, index: int) -> Task:
        made.append(f"{split}-{index}")
        return environment.tasks[0].model_copy(update={"id": made[-1], "split": split})

    return replace(environment, tasks=Procedural(make, ("train", "val")))


@pytest.fixture
def env(endless: Environment, provider: FakeProvider) -> Iterator[GymEnv]:
    env = GymEnv(endless, open_sandbox=provider.open)
    yield env
    env.close()


def test_a_task_is_found_alone(endless: Environment, made: list[str]) -> None:
    assert find_task(endless, "val-7").id == "val-7"
    with pytest.raises(UsageError, match=r"no task 'val-777'; did you mean 'val-77'"):
        find_task(endless, "val-777")
    with pytest.raises(UsageError, match=r"no task \[\]; an id is 'train-0'"):
        find_task(endless, [])
    assert made == ["val-7"]


def test_a_plan_makes_what_it_names(endless: Environment, made: list[str]) -> None:
    make_plan([endless], Choice(names=("val-7", "train-3")))
    assert made == ["train-3", "val-7"]


@pytest.mark.parametrize("wanted", ["train-3", 3, np.int64(3)])
def test_gymnasium_makes_what_it_resets(env: GymEnv, made: list[str], wanted: object) -> None:
    assert env.reset(options={"task": wanted})[1]["task"] == "train-3"
    assert made == ["train-3"]


def test_a_trainer_makes_the_split_that_it_trains_on(
    endless: Environment, provider: FakeProvider, made: list[str]
) -> None:
    small = replace(endless, tasks=endless.tasks.sized(2))  # type: ignore[attr-defined]
    factory = environment_class(small, open_sandbox=provider.open)
    assert not made
    instance = factory()
    instance.reset(**rows(small, split="val")[1])
    assert instance.get_reward() == 0.0
    assert made == ["val-0", "val-1"]
