import asyncio
import hashlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from gymsuite import (
    Action,
    Environment,
    Episode,
    Message,
    Registry,
    Sandbox,
    SandboxSpec,
    Step,
    Submission,
    Task,
    ToolCall,
)


@pytest.fixture(scope="module")
def dial() -> Environment:
    return Registry.default().load("tools/dial-v1")


@asynccontextmanager
async def no_sandbox(spec: SandboxSpec) -> AsyncIterator[Sandbox]:
    raise AssertionError("a device needs no sandbox")
    yield


def act(*calls: ToolCall) -> Action:
    return Message(role="assistant", tool_calls=calls)


def turn(knob: str, way: str) -> Action:
    return act(ToolCall(name="turn", arguments={"knob": knob, "way": way}))


LOCK = act(ToolCall(name="lock"))


def task_at(dial: Environment, *needles: int) -> Task:
    return next(task for task in dial.tasks if task.metadata["needles"] == list(needles))


def play(dial: Environment, task: Task, *actions: Action) -> list[Step]:
    async def run() -> list[Step]:
        async with Episode(dial, no_sandbox) as episode:
            await episode.reset(task, 0)
            return [await episode.step(action) for action in actions]

    return asyncio.run(run())


def test_every_solution_is_the_shortest_way(dial: Environment) -> None:
    for task in dial.tasks:
        last = play(dial, task, *(act(call) for call in task.solution))[-1]
        assert (last.reward, last.info["passed"]) == (1.5, True), task.id


def test_doing_nothing_is_zero(dial: Environment) -> None:
    for task in dial.tasks:
        assert play(dial, task, LOCK)[-1].reward == 0.0
        assert play(dial, task, Message(role="assistant", content="fine"))[-1].reward == 0.0


def test_levels_are_farther_and_farther_from_the_marks(dial: Environment) -> None:
    turns = {(task.level, len(task.solution) - 1) for task in dial.tasks}
    assert turns == {(1, 1), (1, 2), (2, 3), (2, 4), (3, 5), (3, 6)}
    assert {task.split for task in dial.tasks} == {"train", "val", "test"}


def test_the_right_knob_drags_the_middle_needle(dial: Environment) -> None:
    task = task_at(dial, -1, 0, 0)
    (step,) = play(dial, task, turn("right", "up"))
    assert step.observation.messages[0].text == "left -1, middle +1, right +1"


def test_a_detour_costs_economy_but_not_the_pass(dial: Environment) -> None:
    task = task_at(dial, -1, 0, 0)
    ways = ["down", "up", "up", "up", "down"]
    steps = play(dial, task, *(turn("left", way) for way in ways), LOCK)
    assert steps[-1].info["passed"]
    assert steps[-1].reward == 1 + 0.5 / 5


def test_half_the_way_is_partial_credit(dial: Environment) -> None:
    task = next(task for task in dial.tasks if len(task.solution) == 5)
    first = [act(call) for call in task.solution[:2]]
    step = play(dial, task, *first, LOCK)[-1]
    assert (step.reward, step.info["passed"]) == (0.25, False)


def test_going_away_from_the_marks_is_not_below_zero(dial: Environment) -> None:
    assert play(dial, task_at(dial, -1, 0, 0), turn("left", "down"), LOCK)[-1].reward == 0.0


def test_the_limit_scores_where_the_needles_are(dial: Environment) -> None:
    task = task_at(dial, -1, 0, 0)
    ways = ["up", "down"] * 8 + ["up"]
    step = play(dial, task, *(turn("left", way) for way in ways))[-1]
    assert step.truncated
    assert not step.info["passed"]  # the 17th turn is one too many


def test_turns_that_were_only_spoken_of_do_not_count(dial: Environment) -> None:
    task = task_at(dial, -1, 0, 0)
    (step,) = play(dial, task, Message(role="assistant", content="left+"))
    assert step.reward == 0.0


def test_a_submission_of_nonsense_is_zero(dial: Environment) -> None:
    score = asyncio.run(dial.verify(dial.tasks[0], Submission(answer="up up"), no_sandbox))
    assert (score.reward, score.passed) == (0.0, False)


def test_every_machine_makes_the_same_tasks(dial: Environment) -> None:
    everything = "\n".join(task.model_dump_json() for task in dial.tasks)
    assert hashlib.sha256(everything.encode()).hexdigest()[:16] == "1a9711260bb6d89d"
