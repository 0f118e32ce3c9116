"""Tasks of tau2 as they are on disk."""

from collections.abc import Mapping
from typing import Any, Literal

from pydantic import Field

from gymsuite.formats.rows import Row, RowId

Basis = Literal["DB", "ENV_ASSERTION", "ACTION", "COMMUNICATE", "NL_ASSERTION"]


class Action(Row):
    """A call of the gold solution."""

    requestor: str = "assistant"
    name: str
    arguments: Mapping[str, Any] = {}
    compare_args: tuple[str, ...] | None = None


class FunctionCall(Row):
    """A call of either side's functions, to set up a task or to assert how it ended."""

    env_type: str
    func_name: str
    arguments: Mapping[str, Any] = {}
    assert_value: bool = True


class Criteria(Row):
    """How a task is judged."""

    actions: tuple[Action, ...] | None = None
    env_assertions: tuple[FunctionCall, ...] | None = None
    communicate_info: tuple[str, ...] | None = None
    reward_basis: tuple[Basis, ...] = ("DB", "COMMUNICATE")


class HistoryCall(Row):
    """A call in the history."""

    name: str
    arguments: Mapping[str, Any] = {}
    requestor: str = "assistant"


class HistoryMessage(Row):
    """A message before the task begins."""

    role: str
    content: str | None = None
    tool_calls: tuple[HistoryCall, ...] | None = None


class InitialState(Row):
    """What differs from the domain's databases at the start."""

    initialization_data: Mapping[str, Any] | None = None
    initialization_actions: tuple[FunctionCall, ...] | None = None
    message_history: tuple[HistoryMessage, ...] | None = None


class Tau2Task(Row):
    """One task."""

    id: RowId
    ticket: str | None = None
    user_scenario: Mapping[str, Any] = {}
    initial_state: InitialState | None = None
    evaluation_criteria: Criteria = Field(default_factory=Criteria)
