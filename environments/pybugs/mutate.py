"""Puts a bug into a library: a pure function of the pinned source and the bug's data."""

import ast
import hashlib
from collections.abc import Mapping, Sequence

from gymsuite.errors import DefinitionError
from gymsuite.types import Model
from gymsuite.verify.source import Edit, Function, Source

from .operators import OPERATORS
from .scope import Edits, scope_of

REMOVED_BODY = "removed_body"
_LEFT = b"raise NotImplementedError"


class Bug(Model):
    """One fault as data: the `site`-th place in a function where an operator applies.

    `file` is relative to the library's root, `function` is a qualified name, and `digest` is the
    SHA-256 of the pinned file.
    """

    file: str
    function: str
    operator: str
    site: int = 0
    digest: str = ""


def sites(source: Source, function: Function, operator: str) -> tuple[Edits, ...]:
    """The edits that an operator could make in a function, in a fixed order."""
    if operator == REMOVED_BODY:
        return (_without_body(source, function),)
    if operator not in OPERATORS:
        raise DefinitionError(
            f"no operator {operator!r}; there are: {', '.join([*OPERATORS, REMOVED_BODY])}"
        )
    return tuple(edits for edits in OPERATORS[operator](scope_of(source, function)) if edits)


def mutate(files: Mapping[str, bytes], bugs: Sequence[Bug]) -> dict[str, bytes]:
    """Return the changed files. Raises `DefinitionError` when a bug does not fit its file."""
    changed = {}
    for file in dict.fromkeys(bug.file for bug in bugs):
        source = Source(files[file])
        here = [bug for bug in bugs if bug.file == file]
        changed[file] = source.edited(edit for bug in here for edit in _edits(source, bug))
        try:
            compile(changed[file], file, "exec", dont_inherit=True)
        except SyntaxError as error:
            raise DefinitionError(f"{file} cannot be compiled with the bug: {error}") from error
    return changed


def digest(data: bytes) -> str:
    """The SHA-256 by which a bug knows its file."""
    return hashlib.sha256(data).hexdigest()


def statements(function: Function) -> int:
    """How many statements a function has, its docstring left out."""
    nodes = (node for part in function.body for node in ast.walk(part))
    return sum(isinstance(node, ast.stmt) for node in nodes) - _has_docstring(function)


def _edits(source: Source, bug: Bug) -> Edits:
    here = digest(source.data)
    if bug.digest not in ("", here):
        raise DefinitionError(
            f"{bug.file} is not the pinned file: its SHA-256 is {here}, not {bug.digest}"
        )
    choices = sites(source, source.function(bug.function), bug.operator)
    if not 0 <= bug.site < len(choices):
        raise DefinitionError(
            f"{bug.file}: {bug.operator} has {len(choices)} sites in {bug.function}, "
            f"there is no site {bug.site}"
        )
    return choices[bug.site]


def _without_body(source: Source, function: Function) -> Edits:
    body = function.body[_has_docstring(function) :]
    if not body or body[0].lineno == function.lineno:
        return ()
    return (Edit(source.start(body[0]), source.end(body[-1]), _LEFT),)


def _has_docstring(function: Function) -> bool:
    first = function.body[0]
    return (
        isinstance(first, ast.Expr)
        and isinstance(first.value, ast.Constant)
        and isinstance(first.value.value, str)
    )
