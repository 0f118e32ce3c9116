"""Turns the failures of hidden tests into what a user of the library would have seen."""

import ast
import builtins
import json
import re
from collections.abc import Collection, Mapping
from typing import NamedTuple, TypeVar

from gymsuite.verify.pytest_run import Outcome
from gymsuite.verify.sealing import sites
from gymsuite.verify.source import Source

UNNAMED = "___"
Node = TypeVar("Node", bound=ast.stmt)
_LONGEST = 240
_NAMED = re.compile(r"<(function \w+ |class |module |built-in )")
_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+|<[^>]*object>")


class Symptom(NamedTuple):
    """What was done, what came of it, and what should have, or "" where that is not known.

    `raised` says that `wrong` is an error.
    """

    done: str
    wrong: str
    right: str
    raised: bool = False

    @property
    def size(self) -> int:
        """How much there is to read."""
        return len(self.done) + len(self.wrong) + len(self.right)


def symptom(source: Source, result: Outcome, unspoken: Collection[str]) -> Symptom | None:
    """Describe one failure of a probed test file; None where it cannot be told briefly.

    Calls of what is `unspoken` are shown without their name.
    """
    if not result.failure.get("line"):
        return None
    found = _Failure(source, result, unspoken).told()
    if found is None or not found.done:
        return None
    text = f"{found.done} {found.wrong} {found.right}"
    longest = max(len(found.done), len(found.wrong), len(found.right))
    if longest > _LONGEST or "`" in text or _ADDRESS.search(text):
        return None
    return None if any(spoken(text, word) for word in unspoken) else found


def spoken(text: str, word: str) -> bool:
    """Whether a text names something, as a word of its own in any case of letters."""
    return re.search(rf"(?<![\w]){re.escape(word)}(?![\w])", text, re.IGNORECASE) is not None


class _Failure:
    """One failure: the statement it happened in, and the values that were seen there."""

    def __init__(self, source: Source, result: Outcome, unspoken: Collection[str]) -> None:
        self.source = source
        self.unspoken = unspoken
        self.line: int = result.failure["line"]
        self.kind: str = result.failure["type"]
        self.message: str = result.failure["message"].strip().split("\n")[0]
        self.names: Mapping[str, str] = result.failure["names"]
        self.values = result.values
        self.statement = self._innermost(ast.stmt)

    def told(self) -> Symptom | None:  # noqa: PLR0911 - one for each way to fail
        """Put it into words, by what kind of statement failed and how."""
        site = next((s for s in sites(self.source) if s.statement is self.statement), None)
        if self.kind == "Failed" and "DID NOT RAISE" in self.message:
            return self._quiet()
        if self.kind == "AssertionError":
            if site is None:
                return self._untrue()
            number, actual, expected = json.loads(self.values.split("\n")[-1] or "[-1, 0, 0]")
            done = self._shown(site.actual)
            return Symptom(done, actual, expected) if number == site.number else None
        raised = f"{self.kind}: {self.message}" if self.message else self.kind
        if site is not None:
            return Symptom(self._shown(site.actual), raised, self._shown(site.expected), True)
        match self.statement:
            case ast.Assert(test=ast.Compare(left=value, ops=[ast.Eq()], comparators=[right])):
                return Symptom(self._shown(value), raised, self._shown(right, alone=True), True)
            case ast.Assert(test=value) | ast.Assign(value=value) | ast.Expr(value=value):
                return Symptom(self._shown(value), raised, "", True)
        return None

    def _quiet(self) -> Symptom | None:
        match self.statement:
            case ast.With(
                items=[ast.withitem(context_expr=ast.Call(args=[error, *_]))],
                body=[ast.Expr(value=value) | ast.Assign(value=value)],
            ):
                return Symptom(self._shown(value), "no error", ast.unparse(error))
        return None

    def _untrue(self) -> Symptom | None:
        match self.statement:
            case ast.Assert(test=ast.UnaryOp(op=ast.Not(), operand=value)):
                return Symptom(self._shown(value), "true", "false")
            case ast.Assert(test=value):
                return Symptom(self._shown(value), "not true", "true")
        return None

    def _innermost(self, kind: type[Node]) -> Node | None:
        nodes = (node for node in ast.walk(self.source.tree) if isinstance(node, kind))
        around = [node for node in nodes if node.lineno <= self.line <= (node.end_lineno or 0)]
        return max(around, key=lambda node: node.lineno, default=None)

    def _shown(self, node: ast.expr, *, alone: bool = False) -> str:
        """An expression with the values of its variables; "" if it does not speak for itself.

        A value may stand `alone`, without a call.
        """
        shown = _Shown(self.names, self.unspoken, self._assigned())
        tree = shown.visit(ast.parse(ast.unparse(node), mode="eval").body)
        calls = [_called(call) for call in ast.walk(tree) if isinstance(call, ast.Call)]
        told = alone or any(name and not hasattr(builtins, name) for name in calls)
        if shown.unclear or not told:
            return ""
        return ast.unparse(tree)

    def _assigned(self) -> dict[str, ast.expr]:
        """What the variables of the test were last assigned before it failed."""
        function = self._innermost(ast.FunctionDef)
        found = {}
        for node in ast.walk(function) if function else ():
            match node:
                case ast.Assign(targets=[ast.Name(id=name)], value=value) if (
                    node.lineno < self.line
                ):
                    found[name] = value
        return found


def _called(call: ast.Call) -> str:
    match call.func:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name
    return ""


class _Shown(ast.NodeTransformer):
    def __init__(
        self,
        names: Mapping[str, str],
        unspoken: Collection[str],
        assigned: Mapping[str, ast.expr],
    ) -> None:
        self.names = names
        self.unspoken = {word.lower() for word in unspoken}
        self.assigned = dict(assigned)
        self.unclear: list[str] = []

    def visit_Name(self, node: ast.Name) -> ast.expr:
        value = self.assigned.pop(node.id, None)
        if isinstance(value, ast.Call):
            shown: ast.expr = self.visit(ast.parse(ast.unparse(value), mode="eval").body)
            return shown
        if node.id not in self.names or _NAMED.match(self.names[node.id]):
            return self._named(node)
        try:
            literal = ast.parse(self.names[node.id], mode="eval").body
            ast.literal_eval(literal)
        except (SyntaxError, ValueError):
            self.unclear.append(node.id)
            return node
        return literal

    def _named(self, node: ast.Name) -> ast.expr:
        return ast.Name(UNNAMED) if node.id.lower() in self.unspoken else node

    def visit_Call(self, node: ast.Call) -> ast.expr:
        self.generic_visit(node)
        args: list[ast.expr] = []
        for arg in node.args:
            spread = arg.value if isinstance(arg, ast.Starred) else None
            args += spread.elts if isinstance(spread, ast.List | ast.Tuple) else [arg]
        return ast.Call(node.func, args, node.keywords)

    def visit_JoinedStr(self, node: ast.JoinedStr) -> ast.expr:
        self.unclear.append("an f-string")
        return node

    def visit_Attribute(self, node: ast.Attribute) -> ast.expr:
        self.generic_visit(node)
        if node.attr.lower() not in self.unspoken:
            return node
        if isinstance(node.value, ast.Name):
            return ast.Name(UNNAMED)
        return ast.Attribute(node.value, UNNAMED)
