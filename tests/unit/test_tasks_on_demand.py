"""Tasks that are made when they are asked for: who names one makes no other."""

import asyncio
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from gymsuite import Environment, Registry, Task, UsageError
from gymsuite.adapters.trl import environment_class, rows
from gymsuite.cli.progress import Silent
from gymsuite.gym import GymEnv
from gymsuite.runs.evaluate import Request, evaluate
from gymsuite.runs.plan import Choice, make_plan
from gymsuite.runs.sandboxes import SandboxSource
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


def test_what_was_made_last_is_kept_and_not_everything(
    endless: Environment, made: list[str]
) -> None:
    assert isinstance(endless.tasks, Procedural)
    for index in (*range(2000), 1999, 1500):
        endless.tasks.at("train", index)
    assert len(made) == 2000
    endless.tasks.at("train", 0)
    assert len(made) == 2001


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


ENDLESS = """
from gymsuite import Score, Task
from gymsuite.worlds.procedural import Procedural

tasks = Procedural(lambda split, n: Task(id=f"{split}-{n}", prompt="p"), ("train",), 120)

async def verify(task, submission, open_sandbox):
    return Score(reward=0.0, passed=False)
"""


class Notes(Silent):
    """Keeps what it is told."""

    def __init__(self) -> None:
        super().__init__()
        self.notes: list[str] = []

    def note(self, text: str) -> None:
        self.notes.append(text)


@pytest.mark.parametrize(("count", "told"), [(None, ["test/e-v1: making its tasks"]), (3, [])])
def test_who_waits_for_many_tasks_is_told_so(
    tmp_path: Path, count: int | None, told: list[str]
) -> None:
    (tmp_path / "environment.py").write_text(ENDLESS)
    registry = tmp_path / "registry.yaml"
    registry.write_text("environments: {test/e-v1: {path: ., description: Endless.}}\n")
    request = Request(["test/e-v1"], "noop", tmp_path / "run", choice=Choice(count))
    watcher = Notes()
    nowhere = SandboxSource(None, (), tmp_path)
    report = asyncio.run(evaluate(request, Registry(registry), nowhere, watcher))
    assert report.total.scored == (count or 120)
    assert watcher.notes == told
