"""Plans of calls, and what they leave of a world."""

from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from gymsuite.tools import ToolError
from gymsuite.types import ToolCall
from gymsuite.worlds.gold import Ending, Fact
from gymsuite.worlds.server import World, perform
from gymsuite.worlds.state import State


def call(tool: str, **arguments: Any) -> ToolCall:  # noqa: ANN401 - whatever the tool takes
    """A tool call."""
    return ToolCall(name=tool, arguments=arguments)


def ending(world: World, state: State, plan: Sequence[ToolCall], tell: Sequence[Fact]) -> Ending:
    """The end to which a plan brings a state, which is closed; the facts are told on the way."""
    try:
        for step in plan:
            with suppress(ToolError):  # an attempt that fails is part of the plan
                perform(world, state, step.name, step.arguments)
        return Ending(changes=state.changes(), tell=tuple(tell))
    finally:
        state.close()
