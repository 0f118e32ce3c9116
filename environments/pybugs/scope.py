"""A function as operators see it: its nodes in order, and edits that fit where they stand."""

import ast
import re
from collections.abc import Iterator
from typing import NamedTuple

from gymsuite.verify.source import Edit, Function, Located, Source

Edits = tuple[Edit, ...]


class Scope(NamedTuple):
    """A function in its file, with its nodes in source order."""

    source: Source
    function: Function
    nodes: tuple[ast.AST, ...]

    def replace(self, node: Located, text: bytes) -> Edits:
        """Write `text` where the node is."""
        return (Edit(self.source.start(node), self.source.end(node), text),)

    def token(self, left: Located, right: Located, old: bytes, new: bytes) -> Edits:
        """Replace an operator that stands between two nodes, if it can be told for certain."""
        start, end = self.source.end(left), self.source.start(right)
        between = self.source.data[start:end]
        pattern = re.compile(rb"\s+".join(map(re.escape, old.split())))
        if b"#" in between or len(found := list(pattern.finditer(between))) != 1:
            return ()
        return (Edit(start + found[0].start(), start + found[0].end(), new),)

    def removed(self, block: list[ast.stmt], node: ast.stmt) -> Edits:
        """Take a statement out of its block; an empty block gets a `pass`."""
        lines = self.source.own_lines(node)
        if lines is None:
            return ()
        if len(block) == 1:
            return self.replace(node, b"pass")
        return (Edit(*lines, b""),)


def scope_of(source: Source, function: Function) -> Scope:
    """Look into a function; its decorators and annotations are none of its behaviour."""
    parts: list[ast.AST] = [function.args, *function.body]
    nodes = [node for part in parts for node in ast.walk(part)]
    located = [node for node in nodes if isinstance(node, Located)]
    located.sort(key=lambda node: (source.start(node), -source.end(node)))
    return Scope(source, function, tuple(located))


def blocks(nodes: tuple[ast.AST, ...], function: Function) -> Iterator[list[ast.stmt]]:
    """Every list of statements in a function."""
    for node in (function, *nodes):
        for name in ("body", "orelse", "finalbody"):
            block = getattr(node, name, None)
            if isinstance(block, list) and block:
                yield block


def arguments_of(function: Function) -> list[ast.arg]:
    """All parameters of a function."""
    arguments = function.args
    extra = [arguments.vararg, arguments.kwarg]
    return [
        *arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs, *filter(None, extra)
    ]  # fmt: skip


def called(node: ast.Call) -> str:
    """The last part of the name that a call is written with."""
    if isinstance(node.func, ast.Name):
        return node.func.id
    return node.func.attr if isinstance(node.func, ast.Attribute) else ""


def is_text(node: ast.expr) -> bool:
    """Whether an expression is text as written."""
    return isinstance(node, ast.JoinedStr) or (
        isinstance(node, ast.Constant) and isinstance(node.value, str | bytes)
    )
