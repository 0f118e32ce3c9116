"""Random but valid actions, drawn from the tools' schemas."""

import random
from collections.abc import Mapping, Sequence
from typing import Any

from gymsuite.types import Action, Message, ToolCall, ToolSchema

_WORDS = ("alpha", "beta", "gamma", "delta", "42", "0", "true", "a b", "x.txt", "")
_MOST_ITEMS = 2


def sample_action(tools: Sequence[ToolSchema], rng: random.Random) -> Action:
    """An assistant message that calls one of the tools, or says a word where there are none."""
    if not tools:
        return Message(role="assistant", content=rng.choice(_WORDS))
    tool = rng.choice(tools)
    properties: Mapping[str, Any] = tool.parameters.get("properties", {})
    required = tool.parameters.get("required", ())
    arguments = {
        name: _value(schema, rng)
        for name, schema in properties.items()
        if name in required or rng.random() < 0.5  # noqa: PLR2004 - a coin
    }
    call = ToolCall(id=f"call_{rng.randrange(16**8):08x}", name=tool.name, arguments=arguments)
    return Message(role="assistant", tool_calls=(call,))


def _value(schema: Mapping[str, Any], rng: random.Random) -> object:  # noqa: PLR0911 - a table
    if "enum" in schema:
        return rng.choice(schema["enum"])
    if "const" in schema:
        return schema["const"]
    if "anyOf" in schema:
        return _value(rng.choice(schema["anyOf"]), rng)
    match schema.get("type"):
        case "integer":
            return rng.randint(schema.get("minimum", -10), schema.get("maximum", 10))
        case "number":
            return round(rng.uniform(schema.get("minimum", -10), schema.get("maximum", 10)), 3)
        case "boolean":
            return rng.random() < 0.5  # noqa: PLR2004 - a coin
        case "null":
            return None
        case "array":
            items = schema.get("items", {})
            return [_value(items, rng) for _ in range(rng.randint(0, _MOST_ITEMS))]
        case "object":
            return {name: _value(s, rng) for name, s in schema.get("properties", {}).items()}
        case _:
            return rng.choice(_WORDS)
