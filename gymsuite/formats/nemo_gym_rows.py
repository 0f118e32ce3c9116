"""NeMo Gym's rows as they are on disk, and their input (OpenAI's Responses API) as one prompt."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field

from gymsuite.formats.rows import Row, RowId


class Part(Row):
    """A part of a message; only text is read."""

    text: str = ""


class Turn(Row):
    """An item: a message, or a call of a tool or its output, from before the task begins."""

    type: str = "message"
    role: str = "user"
    content: str | tuple[Part, ...] | None = None
    name: str = ""
    arguments: str = ""
    output: str | tuple[Part, ...] = ""


def _speaking(turns: tuple[Turn, ...]) -> tuple[Turn, ...]:
    if not any(turn.name or _text(turn.content) or _text(turn.output) for turn in turns):
        raise ValueError("nothing is said in it; a message has a `content`")
    return turns


class FunctionTool(Row):
    """A tool of a row."""

    name: str
    description: str = ""
    parameters: Mapping[str, Any] = {}


class Request(Row):
    """What NeMo Gym sends to the model; how it samples is the agent's business."""

    input: Annotated[tuple[Turn, ...], AfterValidator(_speaking)]
    tools: tuple[FunctionTool, ...] = ()


class MessageAction(Row):
    """Something is to be said rather than called."""

    type: Literal["message"]
    content: str = ""


class Call(Row):
    """A call; its arguments are JSON in a string."""

    type: Literal["function_call"] = "function_call"
    name: str
    arguments: str


class CallBatch(Row):
    """Calls of one step, in any order."""

    type: Literal["function_call_batch"]
    calls: tuple[Call, ...] = Field(min_length=1)


class ToolUseRow(Row):
    """One row: it has a `ground_truth` or an `expected_action`."""

    responses_create_params: Request
    id: RowId | int | None = None
    ground_truth: tuple[Call, ...] | None = None
    expected_action: (
        Annotated[MessageAction | Call | CallBatch, Field(discriminator="type")] | None
    ) = None
    category: str | tuple[str, ...] = ""
    environment_name: str = ""


def told(turns: Sequence[Turn]) -> str:
    """The items one after another. Where there is only an order and a question, no role is named.

    Reasoning from before is left out: it was not said to anyone.
    """
    shown = [turn for turn in turns if turn.type != "reasoning"]
    plain = all(t.type == "message" and t.role in ("system", "developer", "user") for t in shown)
    return "\n\n".join(_text(turn.content) if plain else _line(turn) for turn in shown)


def _line(turn: Turn) -> str:
    if turn.type == "function_call":
        return f"[call] {turn.name}({turn.arguments})"
    if turn.type == "function_call_output":
        return f"[result] {_text(turn.output)}"
    return f"[{turn.role}] {_text(turn.content)}"


def _text(content: str | tuple[Part, ...] | None) -> str:
    if content is None or isinstance(content, str):
        return content or ""
    return "\n".join(part.text for part in content)
