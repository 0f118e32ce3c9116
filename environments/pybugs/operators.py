"""The faults that people make, as edits of a function: each operator lists its sites."""

import ast
from collections.abc import Callable, Iterator, Mapping

from gymsuite.verify.source import Edit

from .scope import Edits, Scope, arguments_of, blocks, called, is_text

_BOUNDARIES: Mapping[type[ast.cmpop], tuple[bytes, bytes]] = {
    ast.Lt: (b"<", b"<="),
    ast.LtE: (b"<=", b"<"),
    ast.Gt: (b">", b">="),
    ast.GtE: (b">=", b">"),
}
_OPPOSITES: Mapping[type[ast.cmpop], tuple[bytes, bytes]] = {
    ast.Eq: (b"==", b"!="),
    ast.NotEq: (b"!=", b"=="),
    ast.Is: (b"is", b"is not"),
    ast.IsNot: (b"is not", b"is"),
    ast.In: (b"in", b"not in"),
    ast.NotIn: (b"not in", b"in"),
}
_ARITHMETIC: Mapping[type[ast.operator], tuple[bytes, bytes]] = {
    ast.Add: (b"+", b"-"),
    ast.Sub: (b"-", b"+"),
    ast.Mult: (b"*", b"+"),
    ast.FloorDiv: (b"//", b"/"),
    ast.Mod: (b"%", b"//"),
    ast.BitOr: (b"|", b"&"),
    ast.BitAnd: (b"&", b"|"),
}
_CONFUSED = {
    "min": b"max", "max": b"min", "any": b"all", "all": b"any",
    "startswith": b"endswith", "endswith": b"startswith", "lstrip": b"rstrip", "rstrip": b"lstrip",
    "find": b"rfind", "rfind": b"find", "split": b"rsplit", "rsplit": b"split",
    "ljust": b"rjust", "rjust": b"ljust", "upper": b"lower", "lower": b"upper",
    "append": b"extend", "extend": b"append", "keys": b"values", "values": b"keys",
    "floor": b"ceil", "ceil": b"floor", "popitem": b"pop", "add": b"discard",
    "partition": b"rpartition", "rpartition": b"partition", "match": b"search", "search": b"match",
}  # fmt: skip
_SMALL = 100
_CONVERSIONS = {"str", "int", "list", "tuple", "sorted", "reversed", "set", "abs", "float", "bool"}
_CLEANERS = {"strip", "lower", "upper", "lstrip", "rstrip", "copy", "title", "casefold"}


def _compare(scope: Scope, table: Mapping[type[ast.cmpop], tuple[bytes, bytes]]) -> Iterator[Edits]:
    for node in scope.nodes:
        if isinstance(node, ast.Compare) and len(node.ops) == 1 and type(node.ops[0]) in table:
            yield scope.token(node.left, node.comparators[0], *table[type(node.ops[0])])


def boundary(scope: Scope) -> Iterator[Edits]:
    """`<` where `<=` is right, and the like."""
    return _compare(scope, _BOUNDARIES)


def opposite(scope: Scope) -> Iterator[Edits]:
    """`==` where `!=` is right, and the like."""
    return _compare(scope, _OPPOSITES)


def and_or(scope: Scope) -> Iterator[Edits]:
    """`and` where `or` is right, or the other way."""
    for node in scope.nodes:
        if isinstance(node, ast.BoolOp):
            words = (b"and", b"or") if isinstance(node.op, ast.And) else (b"or", b"and")
            pairs = zip(node.values, node.values[1:], strict=False)
            edits = [scope.token(left, right, *words) for left, right in pairs]
            yield tuple(e for edit in edits for e in edit) if all(edits) else ()


def negated(scope: Scope) -> Iterator[Edits]:
    """A condition that is the wrong way round."""
    for node in scope.nodes:
        if isinstance(node, ast.If | ast.While | ast.IfExp):
            test = node.test
            if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
                yield scope.replace(test, b"(" + scope.source.text(test.operand) + b")")
            else:
                yield scope.replace(test, b"not (" + scope.source.text(test) + b")")


def arithmetic(scope: Scope) -> Iterator[Edits]:
    """A wrong arithmetic operator; text is left alone."""
    for node in scope.nodes:
        if isinstance(node, ast.BinOp) and type(node.op) in _ARITHMETIC:
            if not any(is_text(side) for side in (node.left, node.right)):
                yield scope.token(node.left, node.right, *_ARITHMETIC[type(node.op)])
        elif isinstance(node, ast.AugAssign) and isinstance(node.op, ast.Add | ast.Sub):
            signs = (b"+=", b"-=") if isinstance(node.op, ast.Add) else (b"-=", b"+=")
            if not is_text(node.value):
                yield scope.token(node.target, node.value, *signs)


def off_by_one(scope: Scope) -> Iterator[Edits]:
    """A small number that is one too large or one too small."""
    for node in scope.nodes:
        if isinstance(node, ast.Constant) and type(node.value) is int and 0 <= node.value <= _SMALL:
            yield scope.replace(node, str(node.value + 1).encode())
            if node.value > 0:
                yield scope.replace(node, str(node.value - 1).encode())
        elif isinstance(node, ast.Call) and node.args and called(node) == "range":
            yield scope.replace(node.args[-1], scope.source.text(node.args[-1]) + b" - 1")


def removed_guard(scope: Scope) -> Iterator[Edits]:
    """A special case at its beginning that a function no longer sees to."""
    for block in blocks(scope.nodes, scope.function):
        for node in block:
            if (
                isinstance(node, ast.If)
                and not node.orelse
                and isinstance(node.body[-1], ast.Return | ast.Raise | ast.Continue | ast.Break)
            ):
                yield scope.removed(block, node)


def swapped_arguments(scope: Scope) -> Iterator[Edits]:
    """Two neighbouring arguments in the wrong order."""
    for node in scope.nodes:
        if isinstance(node, ast.Call) and not any(isinstance(a, ast.Starred) for a in node.args):
            for one, two in zip(node.args, node.args[1:], strict=False):
                texts = scope.source.text(one), scope.source.text(two)
                if texts[0] != texts[1]:
                    yield scope.replace(one, texts[1]) + scope.replace(two, texts[0])


def wrong_default(scope: Scope) -> Iterator[Edits]:
    """A parameter whose default is another value."""
    arguments = scope.function.args
    for default in [*arguments.defaults, *filter(None, arguments.kw_defaults)]:
        if isinstance(default, ast.Constant) and isinstance(default.value, bool | int):
            value = default.value
            yield scope.replace(
                default, repr(not value if isinstance(value, bool) else value + 1).encode()
            )


def removed_update(scope: Scope) -> Iterator[Edits]:
    """A step that is left out: a call for its effect, or an update of something that exists."""
    for block in blocks(scope.nodes, scope.function):
        for node in block:
            match node:
                case ast.Expr(value=ast.Call()) | ast.AugAssign():
                    yield scope.removed(block, node)
                case ast.Assign(targets=[ast.Attribute() | ast.Subscript()]):
                    yield scope.removed(block, node)


def repeated_assignment(scope: Scope) -> Iterator[Edits]:
    """An adjustment of a name that is left out, so that its earlier value stays."""
    known = {argument.arg for argument in arguments_of(scope.function)}
    for node in scope.nodes:
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            name = node.targets[0].id
            if name in known and any(
                isinstance(n, ast.Name) and n.id == name for n in ast.walk(node.value)
            ):
                for block in blocks(scope.nodes, scope.function):
                    if node in block:
                        yield scope.removed(block, node)
            known.add(name)


def dropped_else(scope: Scope) -> Iterator[Edits]:
    """The `else` of a condition or a loop that is gone."""
    for node in scope.nodes:
        if isinstance(node, ast.If | ast.For | ast.While) and node.orelse:
            if isinstance(node, ast.If) and isinstance(node.orelse[0], ast.If):
                continue
            start, end = scope.source.end(node.body[-1]), scope.source.end(node.orelse[-1])
            yield (Edit(start, end, b""),)


def dropped_raise(scope: Scope) -> Iterator[Edits]:
    """An error that is no longer reported."""
    for node in scope.nodes:
        if isinstance(node, ast.Raise) and scope.source.own_lines(node):
            yield scope.replace(node, b"pass")


def narrowed_handler(scope: Scope) -> Iterator[Edits]:
    """An exception that is no longer handled."""
    for node in scope.nodes:
        if isinstance(node, ast.ExceptHandler) and node.type is not None:
            if isinstance(node.type, ast.Tuple):
                for kept in node.type.elts:
                    yield scope.replace(node.type, scope.source.text(kept))
            else:
                other = (
                    b"KeyError" if scope.source.text(node.type) != b"KeyError" else b"IndexError"
                )
                yield scope.replace(node.type, other)


def wrong_variable(scope: Scope) -> Iterator[Edits]:
    """Another parameter of the same function, taken by mistake."""
    names = [a.arg for a in arguments_of(scope.function) if a.arg not in {"self", "cls"}]
    for node in scope.nodes:
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and node.id in names:
            yield from (scope.replace(node, n.encode()) for n in names if n != node.id)


def break_continue(scope: Scope) -> Iterator[Edits]:
    """`break` where `continue` is right, or the other way."""
    for node in scope.nodes:
        if isinstance(node, ast.Break | ast.Continue):
            yield scope.replace(node, b"continue" if isinstance(node, ast.Break) else b"break")


def flipped_truth(scope: Scope) -> Iterator[Edits]:
    """`True` where `False` is right, or the other way."""
    defaults = {*scope.function.args.defaults, *scope.function.args.kw_defaults}
    for node in scope.nodes:
        if isinstance(node, ast.Constant) and type(node.value) is bool and node not in defaults:
            yield scope.replace(node, repr(not node.value).encode())


def confused_name(scope: Scope) -> Iterator[Edits]:
    """A function's near twin: `min` for `max`, `lstrip` for `rstrip`."""
    for node in scope.nodes:
        if isinstance(node, ast.Call):
            name = called(node)
            if name in _CONFUSED:
                end = scope.source.end(node.func)
                yield (Edit(end - len(name), end, _CONFUSED[name]),)


def dropped_conversion(scope: Scope) -> Iterator[Edits]:
    """A value that is used as it comes, unconverted."""
    for node in scope.nodes:
        match node:
            case ast.Call(func=ast.Name(id=name), args=[only], keywords=[]) if name in _CONVERSIONS:
                yield scope.replace(node, scope.source.text(only))
            case ast.Call(func=ast.Attribute(value=value, attr=name), args=[], keywords=[]) if (
                name in _CLEANERS
            ):
                yield scope.replace(node, scope.source.text(value))


OPERATORS: Mapping[str, Callable[[Scope], Iterator[Edits]]] = {
    operator.__name__: operator
    for operator in (
        boundary, opposite, and_or, negated, arithmetic, off_by_one, removed_guard,
        swapped_arguments, wrong_default, removed_update, repeated_assignment, dropped_else,
        dropped_raise, narrowed_handler, wrong_variable, break_continue, flipped_truth,
        confused_name, dropped_conversion,
    )
}  # fmt: skip
"""What `mutate` knows, by the name that a task row uses."""
