"""A world behind one small door: calls go in, replies come out, and at the end what is left."""

import inspect
import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Any, NamedTuple, Protocol, Self, get_type_hints

from pydantic import Strict

from gymsuite.errors import DefinitionError
from gymsuite.tools import Context, Tool, ToolError
from gymsuite.types import Task
from gymsuite.worlds.schema import Schema
from gymsuite.worlds.state import State
from gymsuite.worlds.text import Text

SECONDS_PER_CALL = 60
"""How much virtual time one call takes."""

WorldTool = Callable[..., object]
"""`def name(state: State, argument: type, ...) -> JSON value`; its docstring describes it.

One that waits for something is an `async def`.
"""


class Ended(NamedTuple):
    """What a world's tool returns to end the episode."""

    text: str


class Reply(NamedTuple):
    """What a call gave, and whether it ended the episode."""

    text: str
    ended: bool = False


class WorldServer(Protocol):
    """Where a world runs, of which its tools know no more than this."""

    async def call(self, tool: str, arguments: Mapping[str, Any]) -> Reply:
        """Run a tool on the state; raises `ToolError` for a mistake of the agent."""
        ...

    async def left(self) -> Mapping[str, Any]:
        """What the verifier will see, as a `Left`."""
        ...

    def fork(self) -> Self:
        """A second world with the same content and its own future."""
        ...

    def close(self) -> None:
        """Let go of the state; may be called again."""
        ...


@dataclass(frozen=True)
class World:
    """Tables, the tools that look and those that write, and how a task's state begins.

    A tool through which the agent talks to a user counts among `lookups`.
    """

    schema: Schema
    lookups: tuple[WorldTool, ...]
    writes: tuple[WorldTool, ...]
    start: Callable[[Task], State]

    @property
    def tools(self) -> tuple[WorldTool, ...]:
        """All of them."""
        return (*self.lookups, *self.writes)

    @cached_property
    def tool(self) -> Mapping[str, WorldTool]:
        """The tools by name."""
        return {tool.__name__: tool for tool in self.tools}


class LocalServer:
    """A world in this process."""

    def __init__(self, world: World, state: State) -> None:
        self.state = state
        self._world = world

    async def call(self, tool: str, arguments: Mapping[str, Any]) -> Reply:
        """Run a tool; see `attend`."""
        return await attend(self._world, self.state, tool, arguments)

    async def left(self) -> Mapping[str, Any]:
        """The diff, the reads and the words, as plain data."""
        return left_of(self.state)

    def fork(self) -> "LocalServer":
        """A copy of the state behind a door of its own."""
        return LocalServer(self._world, self.state.fork())

    def close(self) -> None:
        """Let go of the state."""
        self.state.close()


async def attend(world: World, state: State, tool: str, arguments: Mapping[str, Any]) -> Reply:
    """Run a tool in a transaction of its own: an error leaves the state as it was.

    Raises `ToolError` for a mistake of the agent. Every call takes virtual time.
    """
    state.advance(SECONDS_PER_CALL)
    state.count("calls")
    try:
        with state.transaction():
            result = world.tool[tool](state, **arguments)
            if inspect.isawaitable(result):
                result = await result
    except ToolError:
        state.count("invalid_calls")
        raise
    if isinstance(result, Ended):
        return Reply(result.text, ended=True)
    return Reply(result if isinstance(result, str) else json.dumps(result, ensure_ascii=False))


def perform(world: World, state: State, tool: str, arguments: Mapping[str, Any]) -> Reply:
    """As `attend`, for a tool that waits for nothing; `DefinitionError` for one that does."""
    running = attend(world, state, tool, arguments)
    try:
        running.send(None)
    except StopIteration as end:
        reply: Reply = end.value
        return reply
    running.close()
    raise DefinitionError(f"tool {tool!r} waits for something; await `attend` instead")


def left_of(state: State) -> dict[str, Any]:
    """What the verifier will see of a state, as plain data."""
    return {
        "changes": [change.model_dump(mode="json") for change in state.changes()],
        "reads": list(state.reads),
        "said": list(state.said),
        "answer": json.loads(state.get("answer", "null")),
        "calls": int(state.get("calls", "0")),
        "invalid_calls": int(state.get("invalid_calls", "0")),
        "now": state.now,
    }


OpenWorld = Callable[[Context], Awaitable[WorldServer]]
"""Gives this episode's world, and starts it on the first call."""


def in_process(world: World) -> OpenWorld:
    """Worlds that live in this process, one for each episode."""

    async def open_world(context: Context) -> WorldServer:
        server: LocalServer | None = context.state.get("world")
        if server is None:
            server = LocalServer(world, world.start(context.task))
            context.state["world"] = server
        return server

    return open_world


def toolset(tools: Sequence[WorldTool], open_world: OpenWorld) -> tuple[Tool, ...]:
    """The tools of a world as an environment's tools."""
    return tuple(_tool(tool, open_world) for tool in tools)


def _tool(tool: WorldTool, open_world: OpenWorld) -> Tool:
    async def run(context: Context, arguments: Mapping[str, object]) -> str:
        server = await open_world(context)
        reply = await server.call(tool.__name__, arguments)
        context.submitted = context.submitted or reply.ended
        return reply.text

    return as_tool(tool, run)


def as_tool(
    tool: WorldTool, run: Callable[[Context, Mapping[str, object]], Awaitable[str]]
) -> Tool:
    """An environment's tool with the name, description and arguments of a function over a state."""

    async def call(context: Context, **arguments: object) -> str:
        return await run(context, arguments)

    first = inspect.Parameter(
        "context", inspect.Parameter.POSITIONAL_OR_KEYWORD, annotation=Context
    )
    call.__name__ = call.__qualname__ = tool.__name__
    call.__doc__ = tool.__doc__
    call.__signature__ = inspect.Signature([first, *parameters(tool)])  # type: ignore[attr-defined]
    return call


def parameters(tool: WorldTool) -> list[inspect.Parameter]:
    """A tool's parameters without the state: numbers strict, words free of what cannot be kept."""
    hints = get_type_hints(tool, include_extras=True)
    return [
        parameter.replace(annotation=_strict(hints[name]))
        for name, parameter in list(inspect.signature(tool).parameters.items())[1:]
    ]


def _strict(annotation: Any) -> Any:  # noqa: ANN401 - a type expression
    if annotation in (int, bool):
        return Annotated[annotation, Strict()]
    return Text if annotation is str else annotation
