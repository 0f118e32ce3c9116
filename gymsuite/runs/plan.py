"""Which rollouts a run consists of, in which order and with which seeds: decided before it."""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from gymsuite.environment import Environment
from gymsuite.errors import UsageError
from gymsuite.rollout import task_digest
from gymsuite.runs.log import Key
from gymsuite.types import Task
from gymsuite.worlds.procedural import places


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


def make_plan(
    environments: Sequence[Environment],
    *,
    count: int | None = None,
    repeats: int = 1,
    seed: int = 0,
    split: str | None = None,
) -> Plan:
    """Choose `count` tasks of each environment (None: all), of one split if it is named.

    The choice is the same for every seed and every run, a larger one contains a smaller one, and
    it is spread over the environment rather than its beginning. Raises `UsageError` if an
    environment has no task to choose.
    """
    names = [environment.id for environment in environments]
    if twice := {name for name in names if names.count(name) > 1}:
        raise UsageError(f"environment {min(twice)!r} is named twice; to repeat its tasks: -k")
    tasks = {e.id: _choose(e, count, split) for e in environments}
    return Plan(
        environments=environments,
        tasks=tasks,
        digests={(name, t.id): task_digest(t) for name, chosen in tasks.items() for t in chosen},
        repeats=repeats,
        seed=seed,
    )


def rollout_seed(seed: int, environment: str, task: str, repeat: int) -> int:
    """The seed of one rollout, the same on every machine; it fits into a signed 32-bit integer."""
    key = f"{seed}|{environment}|{task}|{repeat}"
    return int.from_bytes(hashlib.sha256(key.encode()).digest()[:4]) >> 1


def _choose(environment: Environment, count: int | None, split: str | None) -> Sequence[Task]:
    everything = places(environment.tasks)
    there = [place for place in everything if split in {None, place.split}]
    if not there:
        splits = sorted({place.split for place in everything})
        raise UsageError(
            f"{environment.id} has no task in split {split!r}; its splits: {', '.join(splits)}"
        )
    by_hash = sorted(
        there, key=lambda place: hashlib.sha256(f"{environment.id}|{place.id}".encode()).digest()
    )
    chosen = sorted(by_hash[:count])
    return [environment.tasks[place.position] for place in chosen]
