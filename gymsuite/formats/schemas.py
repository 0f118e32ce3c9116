"""Whether arguments fit a foreign JSON schema: the part of the standard that tools make use of."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

_KINDS: Mapping[str, tuple[type, ...]] = {
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "array": (list,),
    "object": (dict,),
    "null": (type(None),),
}


def complaint(schema: Mapping[str, Any], value: object, where: str = "") -> str:
    """Say what is wrong with a value, or "". What the schema says in other words is not looked at.

    Types are strict: neither is `"5"` a number nor `true`.
    """
    named = where or "arguments"
    if "anyOf" in schema:
        problems = [complaint(option, value, where) for option in schema["anyOf"]]
        return problems[0] if problems and all(problems) else ""
    if "enum" in schema and value not in schema["enum"]:
        return f"{named}: it would be one of {', '.join(map(repr, schema['enum']))}"
    kinds = schema.get("type", ())
    kinds = [kinds] if isinstance(kinds, str) else kinds
    if kinds and not any(_is(value, kind) for kind in kinds):
        return f"{named}: it would be of the type {' or '.join(kinds)}"
    if isinstance(value, dict):
        return _in_object(schema, value, where)
    if isinstance(value, list) and isinstance(schema.get("items"), Mapping):
        return _first(complaint(schema["items"], v, f"{named}[{n}]") for n, v in enumerate(value))
    return ""


def _in_object(schema: Mapping[str, Any], value: Mapping[str, Any], where: str) -> str:
    properties: Mapping[str, Any] = schema.get("properties", {})
    required: Sequence[str] = schema.get("required", ())
    prefix = f"{where}." if where else ""
    if missing := [name for name in required if name not in value]:
        return f"{prefix}{missing[0]}: it is missing"
    unknown = [name for name in value if name not in properties]
    if unknown and schema.get("additionalProperties") is False:
        return f"{prefix}{unknown[0]}: there is no such argument"
    return _first(
        complaint(properties[name], part, f"{prefix}{name}")
        for name, part in value.items()
        if isinstance(properties.get(name), Mapping)
    )


def _is(value: object, kind: str) -> bool:
    if isinstance(value, bool):
        return kind == "boolean"
    return isinstance(value, _KINDS.get(kind, (object,)))


def _first(problems: Iterable[str]) -> str:
    return next((problem for problem in problems if problem), "")
