"""The chat-completions wire format, both ways. Pure functions; `chat` does the talking."""

import base64
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from pydantic import BaseModel, Field
from pydantic_core import from_json, to_json

from gymsuite.types import ImagePart, Message, TextPart, TokenUsage, ToolCall, ToolSchema

_EXCERPT = 120
_LONGEST_ERROR = 500


def encode_message(message: Message, *, reasoning_field: str = "") -> dict[str, Any]:
    """Our message as the wire has it; `reasoning_field` names where reasoning is sent back."""
    wire: dict[str, Any] = {"role": message.role}
    if isinstance(message.content, str):
        wire["content"] = message.content
    else:
        wire["content"] = [_encode_part(part) for part in message.content]
    if message.tool_calls:
        wire["tool_calls"] = [_encode_call(call) for call in message.tool_calls]
        wire["content"] = wire["content"] or None
    if message.tool_call_id is not None:
        wire["tool_call_id"] = message.tool_call_id
    if reasoning_field and message.reasoning:
        wire[reasoning_field] = message.reasoning
    return wire


def encode_tools(tools: Sequence[ToolSchema]) -> list[dict[str, Any]]:
    """Our tool schemas as the wire has them."""
    return [{"type": "function", "function": tool.model_dump()} for tool in tools]


def _encode_part(part: TextPart | ImagePart) -> dict[str, Any]:
    if isinstance(part, TextPart):
        return {"type": "text", "text": part.text}
    url = f"data:{part.media_type};base64,{base64.b64encode(part.data).decode()}"
    return {"type": "image_url", "image_url": {"url": url}}


def _encode_call(call: ToolCall) -> dict[str, Any]:
    # Unreadable arguments go back as {}: several servers parse them again, and answer 500.
    arguments = to_json_text(call.arguments)
    function = {"name": call.name, "arguments": arguments}
    return {"id": call.id, "type": "function", "function": function}


def to_json_text(value: object) -> str:
    """Compact JSON text of a value."""
    return to_json(value).decode()


class _Function(BaseModel):
    name: str | None = None
    arguments: Any = None


class _Call(BaseModel):
    id: str | None = None
    function: _Function = _Function()


class _Reply(BaseModel):
    content: str | list[Any] | None = None
    refusal: str | None = None
    reasoning: Any = None
    reasoning_content: Any = None
    tool_calls: list[_Call] | None = None


class _Choice(BaseModel):
    message: _Reply
    finish_reason: str | None = None


class _Cached(BaseModel):
    cached_tokens: int | None = None


class _Reasoned(BaseModel):
    reasoning_tokens: int | None = None


class _Usage(BaseModel):
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    prompt_tokens_details: _Cached | None = None
    completion_tokens_details: _Reasoned | None = None


class _Completion(BaseModel):
    id: str | None = None
    model: str | None = None
    choices: list[_Choice] = Field(min_length=1)
    usage: _Usage | None = None


def decode_completion(body: bytes) -> Message:
    """The first choice of a response as our message; raises `ValueError` if it is none.

    Tool calls that cannot be read keep their place, with `error` set. `extra` holds the response's
    `id`, `model` and `finish_reason`.
    """
    completion = _Completion.model_validate_json(body)
    choice = completion.choices[0]
    reply = choice.message
    reasoning = reply.reasoning_content or reply.reasoning
    return Message(
        role="assistant",
        content=_decode_content(reply),
        reasoning=reasoning if isinstance(reasoning, str) else "",
        tool_calls=tuple(
            _decode_call(call, f"{completion.id or 'call'}-{number}")
            for number, call in enumerate(reply.tool_calls or ())
        ),
        usage=_decode_usage(completion.usage),
        extra={
            "id": completion.id,
            "model": completion.model,
            "finish_reason": choice.finish_reason,
        },
    )


def _decode_content(reply: _Reply) -> str:
    if isinstance(reply.content, list):
        parts = (part for part in reply.content if isinstance(part, dict))
        return "".join(part["text"] for part in parts if isinstance(part.get("text"), str))
    return reply.content or reply.refusal or ""


def _decode_usage(usage: _Usage | None) -> TokenUsage | None:
    if usage is None:
        return None
    cached, reasoned = usage.prompt_tokens_details, usage.completion_tokens_details
    return TokenUsage(
        input_tokens=usage.prompt_tokens or 0,
        cached_tokens=(cached and cached.cached_tokens) or 0,
        output_tokens=usage.completion_tokens or 0,
        reasoning_tokens=(reasoned and reasoned.reasoning_tokens) or 0,
    )


def _decode_call(call: _Call, spare_id: str) -> ToolCall:
    name = call.function.name or ""
    identity = call.id or spare_id
    if not name:
        return ToolCall(id=identity, name="", error="the call does not name a tool")
    try:
        return ToolCall(id=identity, name=name, arguments=_arguments(call.function.arguments))
    except ValueError as error:
        return ToolCall(id=identity, name=name, error=str(error))


def _arguments(raw: object) -> Mapping[str, Any]:
    """Read arguments that may be JSON text, JSON text of JSON text, or an object already."""
    if raw is None or raw == "":
        return {}
    value = raw
    for _ in range(2):
        if isinstance(value, str):
            value = _parse(value)
    if not isinstance(value, dict):
        problem = f"they must be a JSON object, not {_json_type(value)}: {_excerpt(raw)}"
        raise ValueError(problem)  # noqa: TRY004 - wrong data, not a caller's wrong type
    return value


def _parse(text: str) -> object:
    try:
        return from_json(text, allow_inf_nan=False)
    except ValueError as error:
        raise ValueError(f"they are not JSON ({error}): {_excerpt(text)}") from error


def _json_type(value: object) -> str:
    names = {list: "an array", str: "a string", bool: "a boolean", type(None): "null"}
    return names.get(type(value), "a number")


def _excerpt(raw: object) -> str:
    text = raw if isinstance(raw, str) else to_json_text(raw)
    return text if len(text) <= _EXCERPT else f"{text[:_EXCERPT]}…"


class ErrorBody(NamedTuple):
    """What a server says of an error; each part is "" where it says nothing."""

    message: str
    code: str


def decode_error(body: bytes) -> ErrorBody:
    """Find the message and the code in the shapes of error bodies that servers send."""
    try:
        said = from_json(body)
    except ValueError:
        return ErrorBody(_one_line(body.decode(errors="replace")), "")
    outer = said if isinstance(said, dict) else {"message": said}
    error = outer.get("error") or outer
    if not isinstance(error, dict):
        return ErrorBody(_one_line(error), "")
    message = error.get("message") or error.get("detail") or error
    codes = (error.get("code"), error.get("type"))
    return ErrorBody(_one_line(message), " ".join(str(code) for code in codes if code))


def _one_line(said: object) -> str:
    text = said if isinstance(said, str) else to_json_text(said)
    line = "".join(letter if letter.isprintable() else " " for letter in " ".join(text.split()))
    return line if len(line) <= _LONGEST_ERROR else f"{line[:_LONGEST_ERROR]}…"
