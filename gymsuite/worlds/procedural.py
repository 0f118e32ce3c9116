"""A sequence of tasks that are made when they are asked for."""

import difflib
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import NamedTuple, Protocol, overload, runtime_checkable

from gymsuite.environment import Environment
from gymsuite.errors import UsageError
from gymsuite.types import Task

Make = Callable[[str, int], Task]
"""`make(split, index)`: a pure function; its task's id is `split-index`."""

_MOST_KEPT = 1000
"""A task is some 20 kB, and a trainer may ask for a million of them."""


@runtime_checkable
class OnDemand(Protocol):
    """Tasks that are made when they are asked for."""

    @property
    def places(self) -> "Sequence[Place]":
        """All of them, none of them made."""
        ...


class Place(NamedTuple):
    """Which task it is, known without making it."""

    position: int
    split: str
    id: str


@dataclass(frozen=True)
class Procedural(Sequence[Task]):
    """The first `per_split` tasks of each split; `sized` gives more of them, without end.

    What was made last is kept: a run walks over its tasks more than once.
    """

    make: Make
    splits: tuple[str, ...]
    per_split: int = 200

    @cached_property
    def _kept(self) -> Make:
        return lru_cache(maxsize=_MOST_KEPT)(self.make)

    def sized(self, per_split: int) -> "Procedural":
        """The same tasks, but so many of each split."""
        return Procedural(self.make, self.splits, per_split)

    def at(self, split: str, index: int) -> Task:
        """One task of a split, of any index. Raises `UsageError` for a split there is not."""
        if split not in self.splits or index < 0:
            raise UsageError(f"no task {split}-{index}; the splits are {', '.join(self.splits)}")
        return self._kept(split, index)

    @property
    def places(self) -> Sequence[Place]:
        """All of them, none of them made."""
        names = ((split, index) for split in self.splits for index in range(self.per_split))
        return [Place(at, split, f"{split}-{index}") for at, (split, index) in enumerate(names)]

    def __len__(self) -> int:
        return self.per_split * len(self.splits)

    @overload
    def __getitem__(self, at: int) -> Task: ...
    @overload
    def __getitem__(self, at: slice) -> tuple[Task, ...]: ...
    def __getitem__(self, at: int | slice) -> Task | tuple[Task, ...]:
        if isinstance(at, slice):
            return tuple(self[number] for number in range(*at.indices(len(self))))
        number = at + len(self) if at < 0 else at
        if not 0 <= number < len(self):
            raise IndexError(at)
        split, index = divmod(number, self.per_split)
        return self.at(self.splits[split], index)

    def __iter__(self) -> Iterator[Task]:
        return (self[number] for number in range(len(self)))


def places(tasks: Sequence[Task]) -> Sequence[Place]:
    """Where each task is, without making those that are made on demand."""
    if isinstance(tasks, OnDemand):
        return tasks.places
    return [Place(at, task.split, task.id) for at, task in enumerate(tasks)]


def find_task(environment: Environment, wanted: object) -> Task:
    """A task by its id, without making others. Raises `UsageError` with the nearest id."""
    positions = {place.id: place.position for place in places(environment.tasks)}
    if not isinstance(wanted, str) or wanted not in positions:
        raise no_task(environment.id, wanted, positions)
    return environment.tasks[positions[wanted]]


def no_task(where: str, wanted: object, ids: Collection[str]) -> UsageError:
    """The error for a task that is not there, with what would be right."""
    near = difflib.get_close_matches(str(wanted), ids, n=1, cutoff=0.5)
    hint = f"did you mean {near[0]!r}?" if near else f"an id is {next(iter(ids))!r}"
    return UsageError(f"{where} has no task {wanted!r}; {hint}")
