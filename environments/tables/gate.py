"""What the task gate tries on the questions."""

from collections.abc import Sequence

from gymsuite.types import Task, ToolCall
from gymsuite.worlds.gate import Gate

from .desk import WORLD


def _refusals(_: Task) -> Sequence[Sequence[ToolCall]]:
    """Answers without a look."""
    values: tuple[object, ...] = (0, "unknown", [])
    return [[ToolCall(name="give_answer", arguments={"value": value})] for value in values]


def _irrelevant(_: Task) -> Sequence[ToolCall]:
    """A view that nobody asked for."""
    return [ToolCall(name="create_view", arguments={"name": "scratch", "sql": "SELECT 1 AS one"})]


GATE = Gate(WORLD, _refusals, _irrelevant)
