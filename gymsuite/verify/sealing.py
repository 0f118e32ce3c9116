"""Takes the expected values out of tests, so that code under test cannot see or compare them.

`assert f(2) == 4` becomes `_observed(0, f(2))`: the sandbox reports what it saw, and what would be
right stays outside. See docs/design/verification.md.
"""

import ast
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass

from gymsuite.verify.source import Edit, Function, Located, Source

OBSERVE = "_gymsuite_observed"
COMPARE = "_gymsuite_compared"

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
class Site:
    """One place that compares a value with a constant; `number` counts them through the file."""

    number: int
    statement: ast.stmt
    actual: ast.expr
    expected: ast.expr
    identity: bool
    function: Function | None


@dataclass(frozen=True)
class _Table:
    """Rows of constants that a loop or a parametrisation reads its names from."""

    names: tuple[str, ...]
    rows: tuple[ast.expr, ...]

    def column(self, name: str) -> list[ast.expr]:
        at = self.names.index(name)
        if len(self.names) == 1:
            return list(self.rows)
        return [row.elts[at] for row in self.rows if isinstance(row, ast.Tuple | ast.List)]


def sites(source: Source) -> tuple[Site, ...]:
    """All places that could be sealed, in source order."""
    found = []
    for function, statement in _statements(source.tree):
        constants = _constants(function) if function else {}
        for actual, expected, identity in _comparison(statement):
            if _closed(expected, constants) and not _closed(actual, constants):
                found.append((statement, actual, expected, identity, function))
                break
    found.sort(key=lambda site: (site[0].lineno, site[0].col_offset))
    return tuple(Site(number, *site) for number, site in enumerate(found))


def sealed(source: Source, leave: Collection[int]) -> bytes:
    """The file with every site sealed, those in `leave` excepted.

    A site also stays as it is when its expected value would be left behind under a name.
    """
    chosen = [site for site in sites(source) if site.number not in leave]
    while exposed := _exposed(chosen):
        chosen = [site for site in chosen if site.number not in exposed]
    edits = [_call(source, site, OBSERVE, _written(source, site.actual)) for site in chosen]
    return source.edited([*edits, *_hidden_constants(source, chosen)])


def probed(source: Source) -> bytes:
    """The file with every site comparing as before and telling whether it could be sealed.

    Lines keep their numbers.
    """
    return source.edited(
        _call(
            source,
            site,
            COMPARE,
            b"%s, %s" % (_written(source, site.actual), _written(source, site.expected)),
        )
        for site in sites(source)
    )


def _call(source: Source, site: Site, name: str, values: bytes) -> Edit:
    start, end = source.start(site.statement), source.end(site.statement)
    lines = source.data.count(b"\n", start, end) - values.count(b"\n")
    parts = (name.encode(), site.number, values, site.identity, b"\n" * max(0, lines))
    return Edit(start, end, b"%s(%d, %s, %r%s)" % parts)


def _written(source: Source, node: Located) -> bytes:
    return b"(" + source.text(node) + b")"


def _statements(tree: ast.Module) -> Iterator[tuple[Function | None, ast.stmt]]:
    """Every statement with the innermost function around it."""
    stack: list[tuple[Function | None, ast.AST]] = [(None, tree)]
    while stack:
        function, node = stack.pop()
        if isinstance(node, ast.stmt):
            yield function, node
        inner = node if isinstance(node, Function) else function
        stack += [(inner, child) for child in ast.iter_child_nodes(node)]


def _comparison(statement: ast.stmt) -> Iterator[tuple[ast.expr, ast.expr, bool]]:
    """Pairs of (actual, expected, by identity) that a statement may mean."""
    match statement:
        case ast.Assert(test=ast.Compare(left=left, ops=[ast.Eq()], comparators=[right])):
            yield left, right, False
            yield right, left, False
        case ast.Assert(
            test=ast.Compare(left=left, ops=[ast.Is()], comparators=[ast.Constant() as right])
        ):
            yield left, right, True
        case ast.Expr(
            value=ast.Call(
                func=ast.Attribute(attr="assertEqual") | ast.Name(id="assert_equal"),
                args=[left, right, *_],
            )
        ):
            yield left, right, False
            yield right, left, False


def _closed(node: ast.expr, names: Collection[str]) -> bool:  # noqa: PLR0911 - one for each kind of expression
    """Whether an expression means the same everywhere, `names` being known constants."""
    match node:
        case ast.Constant(value=value):
            return value is not ...
        case ast.Name(id=name):
            return name in names
        case ast.UnaryOp(operand=operand):
            return _closed(operand, names)
        case ast.BinOp(left=left, right=right):
            return _closed(left, names) and _closed(right, names)
        case ast.Tuple(elts=parts) | ast.List(elts=parts) | ast.Set(elts=parts):
            return all(_closed(part, names) for part in parts)
        case ast.Dict(keys=keys, values=values):
            return all(part is not None and _closed(part, names) for part in [*keys, *values])
        case ast.Call(func=function, args=args, keywords=keywords):
            parts = [*args, *(keyword.value for keyword in keywords)]
            return _pure(function, names) and all(_closed(part, names) for part in parts)
    return False


def _pure(function: ast.expr, names: Collection[str]) -> bool:
    match function:
        case ast.Name(id=name):
            return name in _MAKERS
        case ast.Attribute(value=ast.Name(id=module), attr=name) if module in _MODULES:
            return name in _MAKERS
        case ast.Attribute(value=value, attr=name):
            return name in _METHODS and _closed(value, names)
    return False


def _constants(function: Function) -> Mapping[str, list[ast.stmt | _Table]]:
    """Names that a function binds once, to a constant or to a column of constants."""
    bound: dict[str, list[ast.stmt | _Table]] = {}
    for table in _tables(function):
        for name in table.names:
            values = table.column(name)
            if len(values) == len(table.rows) and all(_closed(value, ()) for value in values):
                bound.setdefault(name, []).append(table)
    for node in ast.walk(function):
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=value) if _closed(value, ()):
                bound.setdefault(name, []).append(node)
    stores = [
        node.id
        for node in ast.walk(function)
        if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load)
    ]
    parameters = {
        argument.arg for argument in ast.walk(function.args) if isinstance(argument, ast.arg)
    }
    return {
        name: binders
        for name, binders in bound.items()
        if len(binders) == 1 and stores.count(name) + (name in parameters) == 1
    }


def _tables(function: Function) -> Iterator[_Table]:
    for decorator in function.decorator_list:
        match decorator:
            case ast.Call(
                func=ast.Attribute(attr="parametrize"),
                args=[names, ast.List() | ast.Tuple() as rows, *_],
            ):
                yield _Table(_argument_names(names), tuple(rows.elts))
    for node in ast.walk(function):
        match node:
            case ast.For(target=ast.Tuple(elts=targets), iter=ast.List() | ast.Tuple() as rows):
                if all(isinstance(target, ast.Name) for target in targets):
                    yield _Table(tuple(ast.unparse(target) for target in targets), tuple(rows.elts))


def _argument_names(node: ast.expr) -> tuple[str, ...]:
    match node:
        case ast.Constant(value=str() as text):
            return tuple(name.strip() for name in text.split(",") if name.strip())
        case ast.Tuple(elts=parts) | ast.List(elts=parts):
            return tuple(str(part.value) for part in parts if isinstance(part, ast.Constant))
    return ()


def _names_in(node: ast.AST) -> Iterator[str]:
    for inner in ast.walk(node):
        if isinstance(inner, ast.Name) and isinstance(inner.ctx, ast.Load):
            yield inner.id


def _by_function(chosen: Iterable[Site]) -> Mapping[Function, list[Site]]:
    groups: dict[Function, list[Site]] = {}
    for site in chosen:
        if site.function is not None:
            groups.setdefault(site.function, []).append(site)
    return groups


def _exposed(chosen: Iterable[Site]) -> set[int]:
    """Sites whose constants have names that something else reads, too."""
    exposed = set()
    for function, group in _by_function(chosen).items():
        constants = _constants(function)
        everywhere = list(_names_in(function))
        sealed_names = [name for site in group for name in _names_in(site.expected)]
        open_names = {
            name for name in constants if everywhere.count(name) > sealed_names.count(name)
        }
        exposed |= {
            site.number for site in group if open_names.intersection(_names_in(site.expected))
        }
    return exposed


def _hidden_constants(source: Source, chosen: Iterable[Site]) -> Iterator[Edit]:
    """Write None for the constants that only sealed sites read."""
    for function, group in _by_function(chosen).items():
        constants = _constants(function)
        read = {name for site in group for name in _names_in(site.expected)}
        for name in sorted(read & constants.keys()):
            for binder in constants[name]:
                values = binder.column(name) if isinstance(binder, _Table) else [binder.value]  # type: ignore[attr-defined]
                yield from (Edit(source.start(v), source.end(v), b"None") for v in values)
