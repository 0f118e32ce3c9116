"""What a task expects of the world, and what an episode left of it."""

from collections.abc import Mapping
from typing import Any, Literal

from gymsuite.types import Model
from gymsuite.worlds.schema import Cell
from gymsuite.worlds.state import Change


class Fact(Model):
    """Something that the agent has to say: an amount, a date, a number or a word."""

    kind: Literal["cents", "word"]
    value: str | int


class Mine(Model):
    """A change that spoils everything: of this table, kind and row, to these values.

    Values are compared as their columns say; of addresses, one in common is enough.
    """

    table: str
    op: Literal["insert", "update", "delete"] | None = None
    id: str | None = None
    where: Mapping[str, Cell] = {}


class Entity(Model):
    """Something that the prompt describes: exactly one row of the world answers to it."""

    table: str
    where: Mapping[str, Cell]


class Ending(Model):
    """One right end: exactly these changes, and these facts said."""

    changes: tuple[Change, ...]
    tell: tuple[Fact, ...] = ()


class Gold(Model):
    """What is right: one of the `accepted` ends (the first is the solution's), on informed grounds.

    `reads` are what must have been looked at, as `table:id` or as a world notes it: of each group
    one is enough.
    """

    accepted: tuple[Ending, ...]
    reads: tuple[tuple[str, ...], ...] = ()
    mines: tuple[Mine, ...] = ()


class Left(Model):
    """What an episode left of its world: all that the reward depends on."""

    changes: tuple[Change, ...] = ()
    reads: tuple[str, ...] = ()
    said: tuple[str, ...] = ()
    answer: Any = None
    calls: int = 0
    invalid_calls: int = 0
    now: str = ""
