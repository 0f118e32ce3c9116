"""What a tau2 domain is here: two databases, tools for two roles, and how they stay in step."""

import copy
import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal, NamedTuple

from gymsuite.errors import DefinitionError
from gymsuite.tools import ToolError

Role = Literal["assistant", "user"]
Function = Callable[..., object]
"""`def name(desk: Desk, argument: type, ...) -> JSON value`; raises `ToolError` for a mistake."""


@dataclass
class Desk:
    """The state of one conversation: the agent's database and the user's, as plain JSON."""

    db: dict[str, Any]
    user_db: dict[str, Any] = field(default_factory=dict)


class Side(NamedTuple):
    """One role's functions: the tools, and by name those that only set up or assert."""

    tools: tuple[Function, ...] = ()
    others: Mapping[str, Function] = {}


def _in_step(_: Desk) -> None:
    """Nothing has to follow from anything."""


@dataclass(frozen=True)
class Domain:
    """A tau2 domain. `complete` fills in defaults, `sync` makes each side follow the other."""

    name: str
    assistant: Side
    user: Side
    complete: Callable[[Desk], None] = _in_step
    sync: Callable[[Desk], None] = _in_step

    @cached_property
    def functions(self) -> Mapping[tuple[str, str], Function]:
        """All functions by role and name."""
        sides: Mapping[str, Side] = {"assistant": self.assistant, "user": self.user}
        return {
            (role, name): function
            for role, side in sides.items()
            for name, function in {**{t.__name__: t for t in side.tools}, **side.others}.items()
        }

    @property
    def tools(self) -> tuple[Function, ...]:
        """The tools of both roles: who works from a ticket has both."""
        return (*self.assistant.tools, *self.user.tools)

    def role_of(self, tool: str) -> Role:
        """Whose tool it is."""
        return "assistant" if ("assistant", tool) in self.functions else "user"

    def begin(self, db: Mapping[str, Any], user_db: Mapping[str, Any]) -> Desk:
        """A fresh state."""
        desk = Desk(copy.deepcopy(dict(db)), copy.deepcopy(dict(user_db)))
        self.complete(desk)
        self.sync(desk)
        return desk

    def call(self, desk: Desk, role: str, name: str, arguments: Mapping[str, Any]) -> object:
        """Run a function: all or nothing, and both sides in step afterwards.

        Raises `ToolError` for a mistake and `DefinitionError` for a function there is not.
        """
        function = self.functions.get((role, name))
        if function is None:
            raise DefinitionError(f"tau2 {self.name}: the {role} has no function {name!r}")
        before = copy.deepcopy((desk.db, desk.user_db))
        try:
            inspect.signature(function).bind(desk, **arguments)
            result = function(desk, **arguments)
            self.sync(desk)
        except TypeError as error:
            desk.db, desk.user_db = before
            raise ToolError(str(error)) from None
        except ToolError:
            desk.db, desk.user_db = before
            raise
        return result


def find(rows: Sequence[dict[str, Any]], key: str, value: object) -> dict[str, Any]:
    """The row with this value; raises `ToolError` where there is none."""
    for row in rows:
        if row.get(key) == value:
            return row
    raise ToolError(f"there is no {key} {value!r}")
