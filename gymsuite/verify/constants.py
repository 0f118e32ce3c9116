"""Finds what a test file says in constants: in place, under a name, or in a table of cases."""

import ast
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from gymsuite.verify.source import Function

_METHODS = {
    "join", "strip", "lstrip", "rstrip", "format", "replace", "encode", "upper", "lower", "split",
    "splitlines",
}  # fmt: skip
_MAKERS = {
    "set", "frozenset", "dict", "list", "tuple", "str", "int", "float", "complex", "bytes",
    "datetime", "date", "time", "timedelta", "Decimal", "Fraction", "dedent",
}  # fmt: skip
_MODULES = {"datetime", "textwrap", "decimal", "fractions"}


@dataclass(frozen=True)
class Scope:
    """A function's constants: the expressions behind each name that is bound to them once.

    A column of a table has one expression for each row. `reads` counts the names that are read.
    """

    constants: Mapping[str, Sequence[ast.expr]]
    reads: Counter[str]


EMPTY = Scope({}, Counter())


def scope_of(function: Function) -> Scope:
    """Look through a function, the functions in it included."""
    nodes = list(ast.walk(function))
    names = [node for node in nodes if isinstance(node, ast.Name)]
    stores = Counter(node.id for node in names if not isinstance(node.ctx, ast.Load))
    stores.update(node.arg for node in ast.walk(function.args) if isinstance(node, ast.arg))
    bound: dict[str, list[Sequence[ast.expr]]] = {}
    for name, values in (*_columns(function, nodes), *_assigned(nodes)):
        if all(is_closed(value, ()) for value in values):
            bound.setdefault(name, []).append(values)
    constants = {
        name: found[0] for name, found in bound.items() if len(found) == 1 and stores[name] == 1
    }
    return Scope(constants, Counter(names_in(function)))


def names_in(node: ast.AST) -> Iterator[str]:
    """The names that an expression or a statement reads."""
    for inner in ast.walk(node):
        if isinstance(inner, ast.Name) and isinstance(inner.ctx, ast.Load):
            yield inner.id


def is_closed(node: ast.expr, names: Collection[str]) -> bool:  # noqa: PLR0911 - one for each kind
    """Whether an expression means the same everywhere, `names` being known constants."""
    match node:
        case ast.Constant(value=value):
            return value is not ...
        case ast.Name(id=name):
            return name in names
        case ast.UnaryOp(operand=operand):
            return is_closed(operand, names)
        case ast.BinOp(left=left, right=right):
            return is_closed(left, names) and is_closed(right, names)
        case ast.Tuple(elts=parts) | ast.List(elts=parts) | ast.Set(elts=parts):
            return all(is_closed(part, names) for part in parts)
        case ast.Dict(keys=keys, values=values):
            return all(part is not None and is_closed(part, names) for part in [*keys, *values])
        case ast.Call(func=function, args=args, keywords=keywords):
            parts = [*args, *(keyword.value for keyword in keywords)]
            return _is_pure(function, names) and all(is_closed(part, names) for part in parts)
    return False


def _is_pure(function: ast.expr, names: Collection[str]) -> bool:
    match function:
        case ast.Name(id=name):
            return name in _MAKERS
        case ast.Attribute(value=ast.Name(id=module), attr=name) if module in _MODULES:
            return name in _MAKERS
        case ast.Attribute(value=value, attr=name):
            return name in _METHODS and is_closed(value, names)
    return False


def _assigned(nodes: Sequence[ast.AST]) -> Iterator[tuple[str, Sequence[ast.expr]]]:
    for node in nodes:
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                yield name, [value]


def _columns(
    function: Function, nodes: Sequence[ast.AST]
) -> Iterator[tuple[str, Sequence[ast.expr]]]:
    """The columns of the tables that a parametrisation or a loop reads its names from."""
    for decorator in function.decorator_list:
        match decorator:
            case ast.Call(
                func=ast.Attribute(attr="parametrize"),
                args=[names, ast.List(elts=rows) | ast.Tuple(elts=rows), *_],
            ):
                yield from _split(_argument_names(names), rows)
    for node in nodes:
        match node:
            case ast.For(
                target=ast.Tuple(elts=targets), iter=ast.List(elts=rows) | ast.Tuple(elts=rows)
            ):
                yield from _split([t.id for t in targets if isinstance(t, ast.Name)], rows)


def _split(
    names: Sequence[str], rows: Sequence[ast.expr]
) -> Iterator[tuple[str, Sequence[ast.expr]]]:
    if len(names) == 1:
        yield names[0], rows
        return
    cells = [row.elts for row in rows if isinstance(row, ast.Tuple | ast.List)]
    if len(cells) == len(rows) and all(len(row) == len(names) for row in cells):
        yield from ((name, [row[at] for row in cells]) for at, name in enumerate(names))


def _argument_names(node: ast.expr) -> Sequence[str]:
    match node:
        case ast.Constant(value=str() as text):
            return [name.strip() for name in text.split(",") if name.strip()]
        case ast.Tuple(elts=parts) | ast.List(elts=parts):
            return [str(part.value) for part in parts if isinstance(part, ast.Constant)]
    return []
