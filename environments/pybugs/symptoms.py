"""Turns the failures of hidden tests into what a user of the library would have seen."""

import ast
import json
import re
from collections.abc import Collection, Mapping
from typing import Any, NamedTuple

from gymsuite.verify.pytest_run import Outcome
from gymsuite.verify.sealing import sites
from gymsuite.verify.source import Source

UNNAMED = "___"
UNCLEAR = ""
_LONGEST = 180
_ADDRESS = re.compile(r" at 0x[0-9a-f]+|<[^>]*object>")


class Symptom(NamedTuple):
    """What was done, and what came of it; `right` is "" where any sensible result would do."""

    done: str
    wrong: str
    right: str

    @property
    def size(self) -> int:
        """How much there is to read."""
        return len(self.done) + len(self.wrong) + len(self.right)


def symptom(source: Source, result: Outcome, unspoken: Collection[str]) -> Symptom | None:
    """Describe one failure of a probed test file; None where it cannot be told briefly.

    Calls of what is `unspoken` are shown without their name.
    """
    failure = result.failure
    if not failure or not failure.get("line"):
        return None
    found = _of(source, failure, result, unspoken)
    if (
        found is None
        or not found.done
        or max(map(len, found)) > _LONGEST
        or _ADDRESS.search(" ".join(found))
    ):
        return None
    text = " ".join(found)
    return None if any(spoken(text, word) for word in unspoken) else found


def spoken(text: str, word: str) -> bool:
    """Whether a text names something, as a word of its own in any case of letters."""
    return re.search(rf"(?<![\w]){re.escape(word)}(?![\w])", text, re.IGNORECASE) is not None


def _of(  # noqa: PLR0911 - one for each way to fail
    source: Source, failure: Mapping[str, Any], result: Outcome, unspoken: Collection[str]
) -> Symptom | None:
    statement = _statement(source, failure["line"])
    names = failure["names"]
    for site in sites(source):
        if site.statement is statement:
            done = _shown(site.actual, names, unspoken)
            number, actual, expected = _last(result.values)
            if failure["type"] == "AssertionError" and number == site.number:
                return Symptom(done, actual, expected)
            if failure["type"] != "AssertionError":
                right = _shown(site.expected, names, unspoken)
                return Symptom(done, _raised(failure), right)
    if failure["type"] == "Failed" and "DID NOT RAISE" in failure["message"]:
        return _quiet(statement, names, unspoken)
    if failure["type"] == "AssertionError" and isinstance(statement, ast.Assert):
        return _untrue(statement.test, names, unspoken)
    if failure["type"] != "AssertionError" and isinstance(statement, ast.Assert):
        return Symptom(_shown(statement.test, names, unspoken), _raised(failure), "")
    if isinstance(statement, ast.Assign | ast.Expr) and failure["type"] != "AssertionError":
        return Symptom(_shown(statement.value, names, unspoken), _raised(failure), "")
    return None


def _quiet(
    statement: ast.stmt | None, names: Mapping[str, str], unspoken: Collection[str]
) -> Symptom | None:
    match statement:
        case ast.With(items=[ast.withitem(context_expr=ast.Call(args=[error, *_]))], body=[one]):
            if isinstance(one, ast.Expr | ast.Assign):
                done = _shown(one.value, names, unspoken)
                return Symptom(done, "no error at all", ast.unparse(error))
    return None


def _untrue(test: ast.expr, names: Mapping[str, str], unspoken: Collection[str]) -> Symptom | None:
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        return Symptom(_shown(test.operand, names, unspoken), "true", "false")
    return Symptom(_shown(test, names, unspoken), "not true", "true")


def _raised(failure: Mapping[str, Any]) -> str:
    message = str(failure["message"]).strip().split("\n")[0]
    return f"{failure['type']}: {message}" if message else str(failure["type"])


def _last(values: str) -> tuple[int, str, str]:
    lines = values.split("\n") if values else []
    if not lines:
        return (-1, "", "")
    number, actual, expected = json.loads(lines[-1])
    return (int(number), str(actual), str(expected))


def _statement(source: Source, line: int) -> ast.stmt | None:
    """The innermost statement on a line."""
    nodes = (node for node in ast.walk(source.tree) if isinstance(node, ast.stmt))
    around = [node for node in nodes if node.lineno <= line <= (node.end_lineno or 0)]
    return max(around, key=lambda node: node.lineno, default=None)


def _shown(node: ast.expr, names: Mapping[str, str], unspoken: Collection[str]) -> str:
    """An expression with the values of its variables, and without the names not to be spoken."""
    tree = ast.parse(ast.unparse(node), mode="eval").body
    shown = _Shown(names, unspoken)
    text = ast.unparse(shown.visit(tree))
    return UNCLEAR if shown.unclear or "(" not in text else text


class _Shown(ast.NodeTransformer):
    def __init__(self, names: Mapping[str, str], unspoken: Collection[str]) -> None:
        self.names = names
        self.unclear: list[str] = []
        self.unspoken = {word.lower() for word in unspoken}

    def visit_Name(self, node: ast.Name) -> ast.expr:
        if node.id.lower() in self.unspoken:
            return ast.Name(UNNAMED)
        if node.id not in self.names:
            return node
        try:
            value = ast.parse(self.names[node.id], mode="eval").body
            ast.literal_eval(value)
        except (SyntaxError, ValueError):
            self.unclear.append(node.id)
            return node
        return value

    def visit_Call(self, node: ast.Call) -> ast.expr:
        self.generic_visit(node)
        args: list[ast.expr] = []
        for arg in node.args:
            spread = arg.value if isinstance(arg, ast.Starred) else None
            args += spread.elts if isinstance(spread, ast.List | ast.Tuple) else [arg]
        return ast.Call(node.func, args, node.keywords)

    def visit_Attribute(self, node: ast.Attribute) -> ast.expr:
        self.generic_visit(node)
        if node.attr.lower() not in self.unspoken:
            return node
        if isinstance(node.value, ast.Name):
            return ast.Name(UNNAMED)
        return ast.Attribute(node.value, UNNAMED)
