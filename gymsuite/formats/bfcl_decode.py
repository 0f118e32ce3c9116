"""Calls as Python text, `[f(a=1), g(b="x")]`, read the way the Berkeley leaderboard reads them.

Nothing is evaluated. The reference's quirks stay: positional arguments are dropped, any unary
operator negates, a name is a string, a call among the arguments becomes text or a dict.
"""

import ast
import operator
from collections.abc import Callable, Mapping
from typing import Any

MOST_CHARACTERS = 20_000
_LARGEST = 1 << 64
_MOST_TIMES = 1024


class DecodeError(ValueError):
    """The text holds no calls in the expected form."""


def decode(text: str) -> list[dict[str, dict[str, Any]]]:
    """The calls in a reply; raises `DecodeError` where there are none to read."""
    if len(text) > MOST_CHARACTERS:
        raise DecodeError(f"more than {MOST_CHARACTERS} characters")
    try:
        return [_call(element) for element in _elements(text)]
    except RecursionError as error:
        raise DecodeError("nested too deeply") from error


def _elements(text: str) -> list[ast.expr]:
    text = text.strip("`\n ")
    text = text if text.startswith("[") else "[" + text
    text = text if text.endswith("]") else text + "]"
    try:
        body = ast.parse(text.strip().strip("'"), mode="eval").body
    except (SyntaxError, ValueError, MemoryError) as error:
        raise DecodeError(str(error)) from error
    elements: list[ast.expr] | None = getattr(body, "elts", None)
    if isinstance(body, ast.Call):
        return [body]
    if elements is None:
        raise DecodeError("no list of calls")
    return elements


def _call(node: ast.expr) -> dict[str, dict[str, Any]]:
    if not isinstance(node, ast.Call):
        raise DecodeError(f"{type(node).__name__} is no call")
    parts: list[str] = []
    function: ast.expr = node.func
    while isinstance(function, ast.Attribute):
        parts.append(function.attr)
        function = function.value
    if isinstance(function, ast.Name):
        parts.append(function.id)
    # a double-starred argument has no name: it is one that no function has
    arguments = {keyword.arg or "**": _value(keyword.value) for keyword in node.keywords}
    return {".".join(reversed(parts)): arguments}


def _value(node: ast.expr | None) -> Any:  # noqa: ANN401, PLR0911 - any literal, a table
    match node:
        case ast.Constant(value=value):
            return "..." if value is Ellipsis else value
        case ast.UnaryOp(operand=ast.Constant(value=(int() | float() | complex()) as value)):
            return -value
        case ast.List(elts=items):
            return [_value(item) for item in items]
        case ast.Tuple(elts=items):
            return tuple(_value(item) for item in items)
        case ast.Dict(keys=keys, values=values):
            pairs = zip(keys, values, strict=True)
            return {_key(key): _value(value) for key, value in pairs}
        case ast.Name(id=name):
            return name
        case ast.Call(keywords=keywords):
            return _call(node) if keywords else ast.unparse(node)
        case ast.Subscript():
            return ast.unparse(node)
        case ast.BinOp():
            return _sum(node)
    raise DecodeError(f"{type(node).__name__} is no value")


def _key(node: ast.expr | None) -> Any:  # noqa: ANN401 - any literal
    key = _value(node)
    try:
        hash(key)
    except TypeError as error:
        raise DecodeError("a key that cannot be one") from error
    return key


_OPERATIONS: Mapping[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: operator.pow,
}


def _sum(node: ast.expr) -> Any:  # noqa: ANN401 - a number or a string
    """Arithmetic on literals, which the reference evaluates; kept small."""
    match node:
        case ast.Constant(value=(int() | float() | str()) as value):
            return value
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return -_sum(operand)
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _OPERATIONS:
            one, other = _sum(left), _sum(right)
            both_add = isinstance(op, ast.Add) and isinstance(one, str) and isinstance(other, str)
            if isinstance(op, ast.Mult) and _repeats(one, other):
                return one * other
            numbers = not isinstance(one, str) and not isinstance(other, str)
            small = numbers and max(abs(one), abs(other)) < _LARGEST
            if isinstance(op, ast.Pow):
                small = small and abs(other) < _MOST_TIMES
            if both_add or small:
                try:
                    return _OPERATIONS[type(op)](one, other)
                except (ArithmeticError, TypeError) as error:
                    raise DecodeError(str(error)) from error
    raise DecodeError(f"{ast.unparse(node)[:40]!r} is no sum of literals")


def _repeats(one: object, other: object) -> bool:
    """A text times a small number."""
    times = [value for value in (one, other) if isinstance(value, int)]
    return (
        len(times) == 1
        and isinstance(one, str) != isinstance(other, str)
        and (abs(times[0]) < _MOST_TIMES)
    )
