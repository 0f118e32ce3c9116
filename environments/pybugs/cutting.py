"""Takes test functions out of a test file, so that the agent does not see them."""

import ast
from collections.abc import Collection, Iterable, Iterator

from gymsuite.errors import DefinitionError
from gymsuite.verify.source import Edit, Function, Source


def cut(data: bytes, tests: Collection[str]) -> bytes | None:
    """The file without these tests (`function` or `Class::function`), or None if none are left.

    An inherited test is taken out of the class that it is written in. Raises `DefinitionError` for
    a test that is not written in this file.
    """
    source = Source(data)
    doomed = {id(_written(source, test)) for test in tests}
    edits = []
    for block in _blocks(source.tree):
        here = [node for node in block if id(node) in doomed]
        for node in here:
            lines = source.own_lines(node)
            if lines is None:
                raise DefinitionError(f"line {node.lineno}: shares its line with something else")
            filler = node is here[0] and len(here) == len(block)
            edits.append(Edit(*lines, b" " * node.col_offset + b"pass\n" if filler else b""))
    rest = [node for node in _functions(source.tree) if id(node) not in doomed]
    return source.edited(edits) if any(node.name.startswith("test") for node in rest) else None


def _functions(tree: ast.Module) -> Iterator[Function]:
    return (node for node in ast.walk(tree) if isinstance(node, Function))


def _blocks(tree: ast.Module) -> Iterator[list[ast.stmt]]:
    for node in ast.walk(tree):
        for name in ("body", "orelse", "finalbody"):
            block = getattr(node, name, None)
            if isinstance(block, list) and block:
                yield block


def _written(source: Source, test: str) -> Function:
    *owners, name = test.split("::")
    if not owners:
        return source.function(name)
    found = _inherited(source.tree, owners[-1], name, set())
    if found is None:
        raise DefinitionError(f"no test {test!r} is written in this file")
    return found


def _inherited(tree: ast.Module, owner: str, name: str, seen: set[str]) -> Function | None:
    seen.add(owner)
    for node in _classes(tree.body, owner):
        own = [n for n in node.body if isinstance(n, Function) and n.name == name]
        if own:
            return own[-1]
        bases = [base.id for base in node.bases if isinstance(base, ast.Name)]
        for base in bases:
            if base not in seen and (found := _inherited(tree, base, name, seen)):
                return found
    return None


def _classes(body: Iterable[ast.stmt], qualified: str) -> list[ast.ClassDef]:
    first, _, rest = qualified.partition(".")
    found = [node for node in body if isinstance(node, ast.ClassDef) and node.name == first]
    return [inner for node in found for inner in _classes(node.body, rest)] if rest else found
