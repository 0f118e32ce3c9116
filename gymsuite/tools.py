"""What an agent can do in an episode. A tool is one async function with a typed signature."""

import inspect
import random
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, Self, runtime_checkable

from pydantic import BaseModel, ConfigDict, ValidationError, create_model

from gymsuite.complaints import complaints
from gymsuite.errors import (
    DefinitionError,
    GymsuiteError,
    ModelError,
    PathRefused,
    Truncated,
    describe,
)
from gymsuite.sandbox.protocol import Sandbox
from gymsuite.types import Limits, Message, Task, ToolCall, ToolSchema

_HINT_BYTES = 1 << 20
"""In a larger file no near miss is looked for: an agent chose its size, and it costs as much."""

Tool = Callable[..., Awaitable[str]]
"""`async def name(context: Context, argument: type, ...) -> str`; its docstring describes it."""


class ToolError(Exception):
    """Raised by a tool for a mistake of the agent; its text becomes the observation."""


@runtime_checkable
class Stateful(Protocol):
    """A value of `Context.state` that is more than plain data: a world, a log, a conversation."""

    def fork(self) -> Self:
        """A second one with the same content and its own future."""
        ...

    async def left(self) -> Mapping[str, Any]:
        """What the verifier will see of it; asked once, at the end."""
        ...

    def close(self) -> None:
        """Let go of what it holds; may be called again."""
        ...


@dataclass
class Context:
    """What a tool may touch: this episode's sandbox and state, and nothing of the verifier's.

    `state` is the environment's own, from reset to collect: plain data, which is copied when the
    episode forks, or `Stateful` values, whose `left` becomes the submission's `state`.
    `seconds_left` is what remains of the episode.
    """

    task: Task
    sandbox: Sandbox
    limits: Limits
    rng: random.Random
    seconds_left: Callable[[], float]
    state: dict[str, Any] = field(default_factory=dict)
    answer: str = ""
    submitted: bool = False

    @property
    def command_timeout(self) -> float:
        """How many seconds one command may take now."""
        return max(0.1, min(self.limits.command_seconds, self.seconds_left()))


async def bash(context: Context, command: str) -> str:
    """Run a bash command in the sandbox and return its output and exit code.

    Each call starts a new shell in the working directory.
    """
    if "\0" in command:
        raise ToolError("a command cannot contain a NUL character")
    timeout = context.command_timeout
    result = await context.sandbox.exec(
        ["bash", "-c", "exec 2>&1\n" + command],
        timeout=timeout,
        max_output=context.limits.output_bytes,
    )
    text = result.output
    if result.truncated:
        text += "\n[output was longer: only its head and its tail are shown]"
    if result.timed_out:
        return f"{text}\n[killed: it ran longer than {timeout:.0f} seconds]"
    return f"{text}\n[exit code {result.exit_code}]"


async def edit(context: Context, path: str, old: str, new: str) -> str:
    """Replace the one place in a file where `old` occurs exactly, or create a file.

    To create a file, give an empty `old` and a `path` that does not exist yet. `old` must match
    byte for byte, white space included, and must occur once.
    """
    if not path or "\0" in path:
        raise ToolError("path is empty or has a NUL character; give the file to edit")
    data = await context.sandbox.read(path)
    if data is None:
        if old:
            raise ToolError(f"no file {path!r}; to create it, give an empty `old`")
        await context.sandbox.write(path, new.encode())
        return f"created {path}"
    if not old:
        raise ToolError(f"{path!r} exists; give the text to replace in `old`")
    wanted, replacement = old.encode(), new.encode()
    count = data.count(wanted)
    if count != 1:
        raise ToolError(_why_not_once(path, data, wanted, count))
    at = data.index(wanted)
    await context.sandbox.write(path, data.replace(wanted, replacement))
    line = data.count(b"\n", 0, at) + 1
    wanted_lines = wanted.count(b"\n") + 1
    return f"replaced {wanted_lines} line(s) of {path} from line {line}"


def _why_not_once(path: str, data: bytes, wanted: bytes, count: int) -> str:
    if count > 1:
        return f"`old` occurs {count} times in {path!r}; add lines around it to make it unique"
    if len(data) + len(wanted) > _HINT_BYTES:
        return f"`old` does not occur in {path!r}"
    if b"\r\n" in data and data.replace(b"\r\n", b"\n").count(wanted):
        return f"`old` is not in {path!r} as given: the file's lines end in \\r\\n"
    squeezed = b" ".join(wanted.split())
    if squeezed and squeezed in b" ".join(data.split()):
        return f"`old` is in {path!r} but for its white space; copy it exactly, with indentation"
    first = wanted.strip().splitlines()[0].strip() if wanted.strip() else b""
    lines = [str(n) for n, line in enumerate(data.splitlines(), 1) if first and first in line]
    near = f"; its first line is in line {', '.join(lines[:5])}" if lines else ""
    return f"`old` does not occur in {path!r}{near}"


async def submit(context: Context, answer: str = "") -> str:
    """End the episode and hand in the state of the sandbox, or an answer if one is asked for."""
    context.answer, context.submitted = answer, True
    return "submitted"


@dataclass(frozen=True)
class SchemaTool:
    """A `Tool` that came with a schema of its own, such as one of a foreign server.

    The schema is what models see; the arguments go to `run` as they are given, and it checks them.
    """

    schema: ToolSchema
    run: Callable[[Context, Mapping[str, Any]], Awaitable[str]]

    @property
    def __name__(self) -> str:
        return self.schema.name

    async def __call__(self, context: Context, /, **arguments: object) -> str:
        """See `Tool`."""
        return await self.run(context, arguments)


class _Anything(BaseModel):
    model_config = ConfigDict(extra="allow")


@dataclass(frozen=True)
class Toolbox:
    """An environment's tools by name, with the schemas that models see."""

    tools: Mapping[str, Tool]
    arguments: Mapping[str, type[BaseModel]]
    schemas: tuple[ToolSchema, ...]

    @staticmethod
    def of(tools: Sequence[Tool]) -> "Toolbox":
        """Read the signatures; raises `DefinitionError` for one that has no schema."""
        arguments = {tool.__name__: _arguments(tool) for tool in tools}
        if len(arguments) != len(tools):
            raise DefinitionError(f"two tools share a name among {[t.__name__ for t in tools]}")
        schemas = tuple(
            tool.schema
            if isinstance(tool, SchemaTool)
            else ToolSchema(
                name=tool.__name__,
                description=inspect.getdoc(tool) or "",
                parameters=_schema(arguments[tool.__name__]),
            )
            for tool in tools
        )
        return Toolbox({tool.__name__: tool for tool in tools}, arguments, schemas)

    async def call(self, call: ToolCall, context: Context) -> Message:
        """Run one call. The agent's mistakes come back to it as the tool's reply.

        So does the refusal of a path: a tool touches those that the agent chose or made.

        Raises `InfrastructureError` when the world broke and `DefinitionError` when the tool did.
        """
        return Message(role="tool", tool_call_id=call.id, content=await self._reply(call, context))

    async def _reply(self, call: ToolCall, context: Context) -> str:
        if context.submitted:
            return "error: the episode is over; this call was not run"
        if call.error:
            return f"error: the arguments of {call.name!r} could not be read: {call.error}"
        tool = self.tools.get(call.name)
        if tool is None:
            return f"error: no tool {call.name!r}; there are: {', '.join(self.tools)}"
        try:
            arguments = self.arguments[call.name].model_validate(dict(call.arguments))
        except ValidationError as error:
            return f"error: bad arguments for {call.name!r}: {complaints(error, 'arguments')}"
        try:
            reply = await tool(context, **dict(arguments))
        except (ToolError, PathRefused) as error:
            return f"error: {error}"
        except Truncated as error:  # a limit of a model that is not the agent's
            raise ModelError(f"tool {call.name!r}: {error}") from error
        except GymsuiteError:
            raise
        except (Exception, SystemExit) as error:
            raise DefinitionError(
                f"tool {call.name!r} raised {describe(error)}; "
                "a mistake of the agent is a ToolError"
            ) from error
        if not isinstance(reply, str):
            raise DefinitionError(f"tool {call.name!r} returned {type(reply).__name__}, not str")
        return reply


def _arguments(tool: Tool) -> type[BaseModel]:
    if isinstance(tool, SchemaTool):
        return _Anything
    where = f"tool {getattr(tool, '__name__', tool)!r}"
    if not inspect.iscoroutinefunction(tool):
        raise DefinitionError(f"{where} is not an `async def` function")
    parameters = list(inspect.signature(tool, eval_str=True).parameters.values())
    if not parameters:
        raise DefinitionError(f"{where} takes no context; its first parameter is the Context")
    fields: dict[str, Any] = {}
    for parameter in parameters[1:]:
        if parameter.annotation is parameter.empty:
            raise DefinitionError(f"{where}: parameter {parameter.name!r} has no type")
        default = ... if parameter.default is parameter.empty else parameter.default
        fields[parameter.name] = (parameter.annotation, default)
    return create_model(
        f"{tool.__name__}_arguments", __config__=ConfigDict(extra="forbid"), **fields
    )


def _schema(model: type[BaseModel]) -> dict[str, Any]:
    schema = model.model_json_schema()
    schema.pop("title", None)
    for field_schema in schema.get("properties", {}).values():
        field_schema.pop("title", None)
    return schema
