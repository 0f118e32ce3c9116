"""Python functions that look like a tool: for trainers that read signatures, not schemas."""

import inspect
import re
from collections.abc import Callable, Mapping
from typing import Any, Literal, Union

from gymsuite.errors import DefinitionError
from gymsuite.types import ToolSchema

_SECTIONS = re.compile(r"^(Args|Returns|Raises):\s*$", re.MULTILINE)
_PLAIN = {
    "string": str,
    "integer": int,
    "number": float,
    "boolean": bool,
    "null": None,
}

Call = Callable[[Any, str, Mapping[str, Any]], str]
"""Takes the instance, the tool's name and its arguments."""


def as_method(schema: ToolSchema, call: Call) -> Callable[..., str]:
    """A method with the tool's name, typed signature and Google docstring, that runs `call`.

    It has no return annotation: readers of signatures would show it to the model as part of the
    tool. Raises `DefinitionError` for a tool that no method can stand for.
    """
    properties: Mapping[str, Mapping[str, Any]] = schema.parameters.get("properties", {})
    definitions = schema.parameters.get("$defs", {})
    if "self" in properties:
        raise DefinitionError(f"tool {schema.name!r}: a method cannot have a parameter 'self'")
    hints = {name: _hint(part, definitions) for name, part in properties.items()}

    def method(self: Any, /, **arguments: Any) -> str:  # noqa: ANN401 - what trainers pass
        return call(self, schema.name, arguments)

    required = schema.parameters.get("required", ())
    parameters = [
        inspect.Parameter(
            name,
            inspect.Parameter.KEYWORD_ONLY,
            annotation=hints[name],
            default=inspect.Parameter.empty if name in required else part.get("default"),
        )
        for name, part in properties.items()
    ]
    instance = inspect.Parameter("self", inspect.Parameter.POSITIONAL_ONLY)
    method.__name__ = method.__qualname__ = schema.name
    method.__doc__ = _docstring(schema.description, properties)
    method.__annotations__ = hints
    method.__signature__ = inspect.Signature([instance, *parameters])  # type: ignore[attr-defined]  # read by inspect
    return method


def _docstring(description: str, properties: Mapping[str, Mapping[str, Any]]) -> str:
    """The description with one line for each parameter; an author's own sections are replaced."""
    text = _SECTIONS.split(description)[0].strip()
    if not properties:
        return text
    lines = [
        f"    {name}: {' '.join(str(part.get('description', f'The {name}.')).split())}"
        for name, part in properties.items()
    ]
    return "\n".join([text, "", "Args:", *lines])


def _hint(  # noqa: PLR0911 - a table
    schema: Mapping[str, Any], definitions: Mapping[str, Any]
) -> Any:  # noqa: ANN401 - a type
    """The type whose JSON schema this is, as far as types can say it."""
    if "$ref" in schema:
        return _hint(definitions[schema["$ref"].rpartition("/")[2]], definitions)
    if "const" in schema:
        return Literal[schema["const"]]
    if "enum" in schema:
        return Literal[tuple(schema["enum"])]
    if "anyOf" in schema:
        return Union[tuple(_hint(part, definitions) for part in schema["anyOf"])]  # noqa: UP007 - of a list
    match schema.get("type"):
        case "array" if "prefixItems" in schema:
            return tuple[tuple(_hint(part, definitions) for part in schema["prefixItems"])]  # type: ignore[misc]  # made at run time
        case "array":
            return list[_hint(schema.get("items", {}), definitions)]  # type: ignore[misc]  # made at run time
        case "object" if schema.get("additionalProperties"):
            return dict[str, _hint(schema["additionalProperties"], definitions)]  # type: ignore[misc]  # made at run time
        case "object":
            return dict
        case str() as kind:
            return _PLAIN[kind]
        case _:
            return Any
