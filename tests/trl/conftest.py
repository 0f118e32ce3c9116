"""A tiny policy that has been taught to call the tools of coding/warmup-v1, once per session."""

import os

# Two threads that wait for each other by spinning are slower than one, on a busy machine by far.
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("TRL_EXPERIMENTAL_SILENCE", "1")

import pytest
import torch

from gymsuite import Environment, Registry
from gymsuite.adapters.trl import environment_class, rows

from .tiny_policy import Lessons, TinyPolicy, taught_policy

TASKS = ("numbers-evens", "numbers-multiples-of-4")  # each other's answer gets partial credit
LESSON_STEPS = 90


@pytest.fixture(scope="session")
def environment() -> Environment:
    return Registry.default().load("coding/warmup-v1")


@pytest.fixture(scope="session")
def lessons(environment: Environment) -> Lessons:
    chosen = [row for row in rows(environment) if row["task_id"] in TASKS]
    tasks = {task.id: task for task in environment.tasks}
    instance = environment_class(environment)()
    names = sorted(environment.toolbox.tools)  # in the order that TRL shows them
    return Lessons(
        rows=chosen,
        tasks=[tasks[row["task_id"]] for row in chosen],
        tools=[getattr(instance, name) for name in names],
    )


@pytest.fixture(scope="session")
def policy(lessons: Lessons) -> TinyPolicy:
    torch.set_num_threads(1)
    return taught_policy(lessons, steps=LESSON_STEPS)
