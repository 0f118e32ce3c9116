"""Make the tasks: chains of one, two or three steps, each a function of its own.

Everything is drawn from seeds, so every machine makes the same tasks.
"""

import functools
import itertools
import json
import random
import re
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from gymsuite import Task, ToolCall

from .pieces import DRAWS, MEANINGS, TYPES, Piece, load_pieces

_SEED = "coding/warmup-v1"
_CALLS = 22  # two of them are shown
_CHAINS = {2: 48, 3: 40}
_SPLITS = ("test", "val", "train", "train", "train", "train", "train")
_PROBES = 40
_DRAWS_PER_CALL = 40

SYSTEM_PROMPT = """\
Write the Python function that the user asks for. Hand in the whole file with write_solution, \
then call submit. Hidden tests call the function; the reward is the share of them that pass. \
Types count: 2.0 is not 2."""


@dataclass(frozen=True)
class _Function:
    """A chain of steps as a Python function."""

    pieces: tuple[Piece, ...]

    @property
    def name(self) -> str:
        return "_".join((self.kind, *(piece.name for piece in self.pieces)))

    @property
    def kind(self) -> str:
        return self.pieces[0].source

    @property
    def signature(self) -> str:
        target = self.pieces[-1].target
        return f"def {self.name}({self.kind}: {TYPES[self.kind]}) -> {TYPES[target]}:"

    @property
    def source(self) -> str:
        first, *others = (piece.code for piece in self.pieces)
        codes = [re.sub(r"\bx\b", self.kind, first), *others]
        head = "from datetime import date, timedelta\n\n\n" if self.kind == "day" else ""
        lines = [*(f"x = {code}" for code in codes[:-1]), f"return {codes[-1]}"]
        return head + "\n    ".join([self.signature, *lines]) + "\n"

    def compile(self) -> Callable[[object], object]:
        namespace: dict[str, Callable[[object], object]] = {}
        exec(self.source, namespace)  # noqa: S102 - made from pieces.toml, which is ours
        return namespace[self.name]

    def without_one_step(self) -> Iterator["_Function"]:
        """The shorter chains that still fit together."""
        for i in range(len(self.pieces)):
            rest = (*self.pieces[:i], *self.pieces[i + 1 :])
            if rest and rest[0].source == self.kind and _fits(rest):
                yield _Function(rest)


def make_tasks() -> tuple[Task, ...]:
    """All tasks, the easy ones first; no two are the same function."""
    rng = random.Random(_SEED)
    pieces = load_pieces()
    seen: set[str] = set()
    tasks: list[Task] = []
    for piece in pieces:
        if piece.source in DRAWS:
            tasks += _new_tasks(_Function((piece.with_some_k(rng),)), seen)
    for level, wanted in _CHAINS.items():
        found: list[Task] = []
        while len(found) < wanted:
            found += _new_tasks(_Function(_chain(pieces, level, rng)), seen)
        tasks += found
    return _with_splits(tasks, rng)


def _chain(pieces: tuple[Piece, ...], length: int, rng: random.Random) -> tuple[Piece, ...]:
    kind = rng.choice(list(DRAWS))
    chain: list[Piece] = []
    while len(chain) < length:
        following = [
            p for p in pieces if p.source == kind and p.name not in {c.name for c in chain}
        ]
        if not following:
            return _chain(pieces, length, rng)
        chain.append(rng.choice(following).with_some_k(rng))
        kind = chain[-1].target
    return tuple(chain)


def _fits(chain: tuple[Piece, ...]) -> bool:
    return all(a.target == b.source for a, b in itertools.pairwise(chain))


def _new_tasks(function: _Function, seen: set[str]) -> list[Task]:
    """One task, or none if the function is not new, has an idle step or has no fair tests."""
    behaviour = _behaviour(function)
    if behaviour in seen or behaviour in map(_behaviour, function.without_one_step()):
        return []
    calls = _fair_calls(function)
    if len(calls) < _CALLS:
        return []
    seen.add(behaviour)
    return [_task(function, calls)]


def _behaviour(function: _Function) -> str:
    """What the function does to values that are the same for all functions of its kind."""
    call = function.compile()
    return function.kind + json.dumps([call(probe) for probe in _probes(function.kind)])


@functools.cache
def _probes(kind: str) -> tuple[object, ...]:
    rng = random.Random(f"{_SEED}/{kind}")
    return tuple(DRAWS[kind](rng) for _ in range(_PROBES))


def _fair_calls(function: _Function) -> list[tuple[object, object]]:
    """Different arguments with their results, such that no constant and no echo passes many.

    A result occurs in a fifth of the calls at most, a truth value in half of them, and an argument
    that is its own result in a fifth.
    """
    rng = random.Random(f"{_SEED}/{function.name}")
    call = function.compile()
    most = _CALLS // 2 if function.pieces[-1].target == "flag" else _CALLS // 5
    calls: dict[str, tuple[object, object]] = {}
    results: Counter[str] = Counter()
    echoes = 0
    for _ in range(_CALLS * _DRAWS_PER_CALL):
        argument = DRAWS[function.kind](rng)
        result = call(argument)
        key, text = json.dumps(argument), json.dumps(result)
        if key in calls or results[text] >= most or (key == text and echoes >= most):
            continue
        calls[key] = (argument, result)
        results[text] += 1
        echoes += key == text
        if len(calls) == _CALLS:
            break
    return list(calls.values())


def _task(function: _Function, calls: list[tuple[object, object]]) -> Task:
    first, *others = calls
    second = next(call for call in others if call[1] != first[1])
    examples, hidden = (first, second), [call for call in others if call is not second]
    steps = "\n".join(f"{n}. {piece.phrase}" for n, piece in enumerate(function.pieces, 1))
    shown = "\n".join(f">>> {function.name}({a!r})\n{r!r}" for a, r in examples)
    kind = function.kind
    return Task(
        id=function.name.replace("_", "-"),
        prompt=f"{function.signature}\n\n`{kind}` is {MEANINGS[kind]}. Do this and return the "
        f"result:\n{steps}\n\n{shown}",
        level=len(function.pieces),
        hidden={
            "calls": [argument for argument, _ in hidden],
            "results": [result for _, result in hidden],
        },
        solution=(
            ToolCall(name="write_solution", arguments={"code": function.source}),
            ToolCall(name="submit"),
        ),
        metadata={
            "function": function.name,
            "examples": [[argument, result] for argument, result in examples],
        },
    )


def _with_splits(tasks: list[Task], rng: random.Random) -> tuple[Task, ...]:
    """Spread each level over the splits."""
    splits = [_SPLITS[i % len(_SPLITS)] for i in range(len(tasks))]
    for level in {task.level for task in tasks}:
        places = [i for i, task in enumerate(tasks) if task.level == level]
        mixed = [splits[i] for i in places]
        rng.shuffle(mixed)
        for i, split in zip(places, mixed, strict=True):
            splits[i] = split
    return tuple(
        task.model_copy(update={"split": split}) for task, split in zip(tasks, splits, strict=True)
    )
