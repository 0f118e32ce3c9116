"""Which rollouts a run consists of, in which order and with which seeds: decided before it."""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from gymsuite.environment import Environment
from gymsuite.errors import UsageError
from gymsuite.rollout import task_digest
from gymsuite.runs.log import Key
from gymsuite.types import Task
from gymsuite.worlds.procedural import OnDemand, no_task, places

_QUICKLY_MADE = 100


@dataclass(frozen=True, slots=True)
class Slot:
    """One rollout to make: a repeat of a task of an environment, with its seed."""

    environment: Environment
    task: Task
    digest: str
    repeat: int
    seed: int

    @property
    def key(self) -> Key:
        """What its attempts are stored under."""
        return Key(self.environment.id, self.task.id, self.repeat)


@dataclass(frozen=True)
class Plan:
    """The chosen tasks of each environment, each to be played `repeats` times."""

    environments: Sequence[Environment]
    tasks: Mapping[str, Sequence[Task]]
    digests: Mapping[tuple[str, str], str]
    repeats: int
    seed: int

    def __len__(self) -> int:
        return self.repeats * sum(map(len, self.tasks.values()))

    def __iter__(self) -> Iterator[Slot]:
        """Every task once before any of them twice: what is cut short is still representative."""
        for repeat in range(self.repeats):
            for environment in self.environments:
                for task in self.tasks[environment.id]:
                    digest = self.digests[environment.id, task.id]
                    seed = rollout_seed(self.seed, environment.id, task.id, repeat)
                    yield Slot(environment, task, digest, repeat, seed)

    def digest(self, environment: str) -> str:
        """A hash of the chosen tasks of one environment."""
        tasks = self.tasks[environment]
        text = "\n".join(f"{task.id} {self.digests[environment, task.id]}" for task in tasks)
        return hashlib.sha256(text.encode()).hexdigest()[:32]


@dataclass(frozen=True)
class Choice:
    """Which tasks of each environment: `count` of them (None: all), of one split, by their ids.

    It is the same for every seed and every run, a larger one contains a smaller one, and it is
    spread over the environment rather than its beginning.
    """

    count: int | None = None
    split: str | None = None
    names: tuple[str, ...] = ()


EVERYTHING = Choice()


def make_plan(
    environments: Sequence[Environment],
    choice: Choice = EVERYTHING,
    *,
    repeats: int = 1,
    seed: int = 0,
) -> Plan:
    """Choose tasks; raises `UsageError` for a name of none, or an environment without any."""
    names = [environment.id for environment in environments]
    if twice := {name for name in names if names.count(name) > 1}:
        raise UsageError(f"environment {min(twice)!r} is named twice; to repeat its tasks: -k")
    known = {place.id: None for e in environments for place in places(e.tasks)}
    if unknown := [name for name in choice.names if name not in known]:
        raise no_task(", ".join(names), unknown[0], known)
    tasks = {e.id: _choose(e, choice) for e in environments}
    return Plan(
        environments=environments,
        tasks=tasks,
        digests={(name, t.id): task_digest(t) for name, chosen in tasks.items() for t in chosen},
        repeats=repeats,
        seed=seed,
    )


def foreword(environments: Sequence[Environment], choice: Choice = EVERYTHING) -> Iterator[str]:
    """What to tell somebody before a plan is made, where that takes a while."""
    many = not choice.names and (choice.count is None or choice.count > _QUICKLY_MADE)
    for environment in environments:
        if many and isinstance(environment.tasks, OnDemand):
            yield f"{environment.id}: making its tasks"


def rollout_seed(seed: int, environment: str, task: str, repeat: int) -> int:
    """The seed of one rollout, the same on every machine; it fits into a signed 32-bit integer."""
    key = f"{seed}|{environment}|{task}|{repeat}"
    return int.from_bytes(hashlib.sha256(key.encode()).digest()[:4]) >> 1


def _choose(environment: Environment, choice: Choice) -> Sequence[Task]:
    everything = places(environment.tasks)
    named = [place for place in everything if not choice.names or place.id in choice.names]
    there = [place for place in named if choice.split in {None, place.split}]
    if not named:
        raise UsageError(f"{environment.id} has none of the tasks {', '.join(choice.names)}")
    if not there:
        splits = sorted({place.split for place in named})
        raise UsageError(
            f"{environment.id} has no task in split {choice.split!r}; its splits: "
            f"{', '.join(splits)}"
        )
    by_hash = sorted(
        there, key=lambda place: hashlib.sha256(f"{environment.id}|{place.id}".encode()).digest()
    )
    chosen = sorted(by_hash[: choice.count])
    return [environment.tasks[place.position] for place in chosen]
