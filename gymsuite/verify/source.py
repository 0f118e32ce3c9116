"""Python source as bytes with positions, so that an edit leaves the rest byte-identical."""

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from gymsuite.errors import DefinitionError

Function = ast.FunctionDef | ast.AsyncFunctionDef
Located = ast.expr | ast.stmt | ast.excepthandler | ast.arg | ast.keyword


class Edit(NamedTuple):
    """Replace the bytes from `start` to `end` by `text`."""

    start: int
    end: int
    text: bytes


@dataclass(frozen=True)
class Source:
    """One file: its bytes, its tree, and where each node lies in the bytes."""

    data: bytes

    @cached_property
    def tree(self) -> ast.Module:
        """The parsed file; raises `SyntaxError`."""
        return ast.parse(self.data)

    @cached_property
    def _line_starts(self) -> list[int]:
        starts = [0]
        for line in self.data.splitlines(keepends=True):
            starts.append(starts[-1] + len(line))
        return starts

    def start(self, node: Located) -> int:
        """Offset of a node's first byte. The tree counts columns in UTF-8 bytes, as we do."""
        return self._line_starts[node.lineno - 1] + node.col_offset

    def end(self, node: Located) -> int:
        """Offset behind a node's last byte."""
        if node.end_lineno is None or node.end_col_offset is None:
            raise DefinitionError(f"line {node.lineno}: a node without an end")
        return self._line_starts[node.end_lineno - 1] + node.end_col_offset

    def text(self, node: Located) -> bytes:
        """A node as it is written."""
        return self.data[self.start(node) : self.end(node)]

    def lines(self, first: int, last: int) -> tuple[int, int]:
        """The range of whole lines, counted from one, line ends included."""
        return self._line_starts[first - 1], self._line_starts[last]

    def own_lines(self, node: ast.stmt) -> tuple[int, int] | None:
        """The lines of a statement, decorators included; None if it shares one with another."""
        decorators: list[ast.expr] = getattr(node, "decorator_list", [])
        first = min([node.lineno, *(d.lineno for d in decorators)])
        start, end = self.lines(first, node.end_lineno or node.lineno)
        before = self.data[start : self.start(decorators[0] if decorators else node)]
        after = self.data[self.end(node) : end].split(b"#")[0]
        return (start, end) if not before.strip(b" \t@") and not after.strip() else None

    def functions(self) -> Iterator[tuple[str, Function]]:
        """Every function by its qualified name, as in `Class.method`; nested ones are left out."""
        return _functions(self.tree.body, "")

    def function(self, name: str) -> Function:
        """The one function of that qualified name; raises `DefinitionError` for none or several."""
        found = [node for qualified, node in self.functions() if qualified == name]
        if len(found) != 1:
            raise DefinitionError(f"{len(found)} functions are called {name!r}, not one")
        return found[0]

    def edited(self, edits: Iterable[Edit]) -> bytes:
        """The bytes after all edits; raises `DefinitionError` if two overlap."""
        pieces, at = [], 0
        for edit in sorted(edits):
            if edit.start < at:
                raise DefinitionError(f"two edits overlap at byte {edit.start}")
            pieces += [self.data[at : edit.start], edit.text]
            at = edit.end
        return b"".join([*pieces, self.data[at:]])


def _functions(body: Iterable[ast.stmt], prefix: str) -> Iterator[tuple[str, Function]]:
    for node in body:
        if isinstance(node, Function):
            yield prefix + node.name, node
        elif isinstance(node, ast.ClassDef):
            yield from _functions(node.body, f"{prefix}{node.name}.")
        elif isinstance(node, ast.If | ast.Try):
            inner = [*node.body, *node.orelse]
            if isinstance(node, ast.Try):
                inner += [*node.finalbody, *(s for h in node.handlers for s in h.body)]
            yield from _functions(inner, prefix)
