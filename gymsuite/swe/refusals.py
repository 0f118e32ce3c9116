"""Tests that must fail because nothing is raised: whoever raises what is asked for is found out.

A test by `pytest.raises` compares no value, so none can be taken out of it, and code under test can
read there what to raise. Beside such tests stand others that nobody can tell from them: the body of
a test that passes, put below the same words.
"""

import ast
import secrets
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import NamedTuple

_ENDINGS = ("again", "once_more", "directly", "in_full", "as_well", "strictly", "by_itself", "too")


class Twins(NamedTuple):
    """A test file with twins in it; `names` maps each to the test that it is the twin of."""

    data: bytes
    names: Mapping[str, str]


class _Function(NamedTuple):
    """A test function: its name with its class, as the runner has it, and its lines from 0."""

    name: str
    first: int
    body: int
    end: int


def candidates(data: bytes) -> tuple[str, ...]:
    """The tests whose bodies can be put below `pytest.raises`; none if the file has no such words.

    Raises `SyntaxError`.
    """
    tree = ast.parse(data)
    return tuple(function.name for function in _functions(tree)) if _words(tree) else ()


def plant(data: bytes, tests: Collection[str], most: int) -> Twins:
    """Put twins of some of these tests behind them; names and choice are new each time."""
    tree = ast.parse(data)
    words = _words(tree)
    functions = [each for each in _functions(tree) if each.name in tests and words]
    chosen = secrets.SystemRandom().sample(functions, min(most, len(functions)))
    lines = data.decode(errors="surrogateescape").split("\n")
    taken = {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
    names: dict[str, str] = {}
    for function in sorted(chosen, key=lambda each: each.end, reverse=True):
        kind, colons, plain = function.name.rpartition("::")
        name = _new_name(plain, taken)
        taken.add(name)
        twin = _twin(lines[function.first : function.end], function, secrets.choice(words))
        twin[0] = twin[0].replace(f"def {plain}", f"def {name}", 1)
        lines[function.end : function.end] = ["", *twin, ""]
        names[f"{kind}{colons}{name}"] = function.name
    text = "\n".join(lines).encode(errors="surrogateescape")
    return Twins(text, names) if _is_python(text) else Twins(data, {})


def _twin(lines: Sequence[str], function: _Function, words: str) -> list[str]:
    """The same function with its body below the words."""
    head, body = lines[: function.body - function.first], lines[function.body - function.first :]
    indent = body[0][: len(body[0]) - len(body[0].lstrip())]
    # A line that continues another one may stand further to the left.
    inner = [f"{indent}    {line.removeprefix(indent)}" if line.strip() else line for line in body]
    return [*head, f"{indent}with {words}:", *inner]


def _new_name(plain: str, taken: Collection[str]) -> str:
    free = [name for end in _ENDINGS if (name := f"{plain}_{end}") not in taken]
    return secrets.choice(free) if free else f"{plain}_{secrets.token_hex(4)}"


def _functions(tree: ast.Module) -> Iterator[_Function]:
    """Tests without decorators that expect nothing to be raised; their bodies begin a line."""
    for prefix, node in _tests(tree):
        if node.decorator_list or _words(node):
            continue
        first, body = node.lineno - 1, _first_line(node.body[0]) - 1
        if first < body and node.end_lineno:
            yield _Function(f"{prefix}{node.name}", first, body, node.end_lineno)


def _tests(tree: ast.Module) -> Iterator[tuple[str, ast.FunctionDef]]:
    for node in tree.body:
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test"):
            yield "", node
        elif isinstance(node, ast.ClassDef) and node.name.startswith("Test"):
            for inner in node.body:
                if isinstance(inner, ast.FunctionDef) and inner.name.startswith("test"):
                    yield f"{node.name}::", inner


def _first_line(statement: ast.stmt) -> int:
    decorators: list[ast.expr] = getattr(statement, "decorator_list", [])
    return min([statement.lineno, *(each.lineno for each in decorators)])


def _words(tree: ast.AST) -> list[str]:
    """Every `pytest.raises(...)` that some `with` has, as it is written there."""
    calls = [
        item.context_expr
        for node in ast.walk(tree)
        if isinstance(node, ast.With)
        for item in node.items
    ]
    return [ast.unparse(call) for call in calls if _is_raises(call)]


def _is_raises(node: ast.expr) -> bool:
    """Whether it is such a call, and means the same anywhere in its file."""
    if not isinstance(node, ast.Call):
        return False
    name = getattr(node.func, "attr", getattr(node.func, "id", ""))
    names = [each.id for each in ast.walk(node) if isinstance(each, ast.Name)]
    return name == "raises" and all(
        each in {"pytest", "raises"} or each[0].isupper() for each in names
    )


def _is_python(data: bytes) -> bool:
    try:
        ast.parse(data)
    except SyntaxError:
        return False
    return True
