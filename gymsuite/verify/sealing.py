"""Takes the expected values out of tests, so that code under test cannot see or compare them.

`assert f(2) == 4` becomes `_observed(0, f(2))`: the sandbox reports what it saw, and what would be
right stays outside. See docs/design/verification.md.
"""

import ast
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass

from gymsuite.verify.constants import EMPTY, Scope, is_closed, names_in, scope_of
from gymsuite.verify.source import Edit, Function, Located, Source

OBSERVE = "_gymsuite_observed"
COMPARE = "_gymsuite_compared"


@dataclass(frozen=True)
class Site:
    """One place that compares a value with a constant; `number` counts them through the file.

    `scope` is the function around it, as far as constants go.
    """

    number: int
    statement: ast.stmt
    actual: ast.expr
    expected: ast.expr
    identity: bool
    scope: Scope


def sites(source: Source) -> tuple[Site, ...]:
    """All places that could be sealed, in source order."""
    found = []
    scopes: dict[Function, Scope] = {}
    for function, statement in _statements(source.tree):
        for actual, expected, identity in _comparison(statement):
            if function is not None and function not in scopes:
                scopes[function] = scope_of(function)
            scope = scopes[function] if function is not None else EMPTY
            if is_closed(expected, scope.constants) and not is_closed(actual, scope.constants):
                found.append((statement, actual, expected, identity, scope))
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


def _groups(chosen: Iterable[Site]) -> Iterator[tuple[Scope, list[Site]]]:
    """The sites of each function."""
    groups: dict[int, list[Site]] = {}
    for site in chosen:
        groups.setdefault(id(site.scope), []).append(site)
    return ((group[0].scope, group) for group in groups.values())


def _exposed(chosen: Iterable[Site]) -> set[int]:
    """Sites whose constants have names that something else reads, too."""
    exposed: set[int] = set()
    for scope, group in _groups(chosen):
        sealed_names = [name for site in group for name in names_in(site.expected)]
        left = {name for name in scope.constants if scope.reads[name] > sealed_names.count(name)}
        exposed |= {site.number for site in group if left.intersection(names_in(site.expected))}
    return exposed


def _hidden_constants(source: Source, chosen: Iterable[Site]) -> Iterator[Edit]:
    """Write None for the constants that only sealed sites read."""
    for scope, group in _groups(chosen):
        read = {name for site in group for name in names_in(site.expected)}
        for name in sorted(read & scope.constants.keys()):
            for value in scope.constants[name]:
                yield Edit(source.start(value), source.end(value), b"None")
