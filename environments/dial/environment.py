"""Bring three needles to their marks with three knobs, one of which drags a second needle along."""

import itertools
import random
from typing import Literal

from gymsuite import (
    Action,
    Context,
    Message,
    OpenSandbox,
    Score,
    Submission,
    Task,
    ToolCall,
)

_MOST_TURNS = 16
_TASKS_PER_LEVEL = 40
_SPLITS = ("test", "val", "train", "train", "train")
_FOR_PROGRESS = 0.5
_FOR_ECONOMY = 0.5

Needles = tuple[int, int, int]

_KNOBS: dict[str, Needles] = {"left": (1, 0, 0), "middle": (0, 1, 0), "right": (0, 1, 1)}
_TURNS = {
    f"{knob}{'+' if way > 0 else '-'}": (way * moves[0], way * moves[1], way * moves[2])
    for knob, moves in _KNOBS.items()
    for way in (1, -1)
}


async def turn(
    context: Context, knob: Literal["left", "middle", "right"], way: Literal["up", "down"]
) -> str:
    """Turn a knob by one step, and read the needles."""
    context.answer = f"{context.answer} {knob}{'+' if way == 'up' else '-'}".strip()
    return _display(_replayed(context.task, context.answer))


async def lock(context: Context) -> str:
    """Lock the device as it is now, which ends the episode."""
    context.answer = context.answer or "locked"
    context.submitted = True
    return "locked"


async def respond(context: Context, action: Action) -> tuple[Message, ...] | None:  # noqa: ARG001 - the protocol's
    """End the episode on plain text, which must not be taken for a list of turns."""
    context.answer = context.answer or "locked"
    return None


async def verify(task: Task, submission: Submission, open_sandbox: OpenSandbox) -> Score:  # noqa: ARG001 - the protocol's
    """Replay the turns, and judge where the needles are and how many turns it took."""
    start, end = _start(task), _replayed(task, submission.answer)
    needed, used = _turns_to_go(start), len(_known_turns(submission.answer))
    passed = _turns_to_go(end) == 0
    if passed:
        reward = 1 + _FOR_ECONOMY * needed / used
    else:
        reward = _FOR_PROGRESS * max(0.0, 1 - _turns_to_go(end) / needed)
    return Score(
        reward=reward,
        passed=passed,
        metrics={"turns": used, "turns_needed": needed, "turns_to_go": _turns_to_go(end)},
        details=_display(end),
    )


def _start(task: Task) -> Needles:
    left, middle, right = task.metadata["needles"]
    return left, middle, right


def _replayed(task: Task, answer: str) -> Needles:
    left, middle, right = _start(task)
    for one in _known_turns(answer):
        moves = _TURNS[one]
        left, middle, right = left + moves[0], middle + moves[1], right + moves[2]
    return left, middle, right


def _known_turns(answer: str) -> list[str]:
    return [word for word in answer.split() if word in _TURNS][:_MOST_TURNS]


def _turns_to_go(needles: Needles) -> int:
    left, middle, right = needles
    return abs(left) + abs(right) + abs(middle - right)


def _display(needles: Needles) -> str:
    return "left {:+d}, middle {:+d}, right {:+d}".format(*needles)


def _shortest(needles: Needles) -> list[tuple[str, str]]:
    left, middle, right = needles
    distances = {"left": left, "right": right, "middle": middle - right}
    return [
        (knob, "down" if distance > 0 else "up")
        for knob, distance in distances.items()
        for _ in range(abs(distance))
    ]


def _task(needles: Needles, level: int, split: str) -> Task:
    turns = [
        ToolCall(name="turn", arguments={"knob": knob, "way": way})
        for knob, way in _shortest(needles)
    ]
    return Task(
        id="needles{:+d}{:+d}{:+d}".format(*needles),
        prompt=_PROMPT.format(_display(needles)),
        split=split,
        level=level,
        solution=(*turns, ToolCall(name="lock")),
        metadata={"needles": list(needles)},
    )


def _tasks() -> tuple[Task, ...]:
    """So many starting positions for each level: 1-2, 3-4 and 5-6 turns from the marks."""
    rng = random.Random("tools/dial-v1")
    positions = list(itertools.product(range(-3, 4), range(-3, 4), range(-3, 4)))
    made: list[Task] = []
    for level in (1, 2, 3):
        ways = (2 * level - 1, 2 * level)
        fitting = [needles for needles in positions if _turns_to_go(needles) in ways]
        chosen = rng.sample(fitting, min(_TASKS_PER_LEVEL, len(fitting)))
        made += [_task(n, level, _SPLITS[i % len(_SPLITS)]) for i, n in enumerate(chosen)]
    return tuple(made)


_PROMPT = """\
A device has three needles and three knobs. The needles show how far each is from its mark. The \
knobs left and middle move their own needle by one; the knob right moves its own needle and drags \
the middle one along, the same way. Bring all needles to their marks in as few turns as you can, \
then lock the device. Now they show: {}"""

tools = (turn, lock)
tasks = _tasks
