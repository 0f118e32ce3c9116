"""Reads the part of the Dockerfile language that `sandboxes/` is written in.

Small enough to be built without a daemon, and all of it valid for Docker too. What is left out is
an error that says so: an instruction that is silently ignored would make another image.
"""

import difflib
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from gymsuite.errors import DefinitionError
from gymsuite.sandbox import instructions
from gymsuite.sandbox.instructions import INSTEAD, NAMES
from gymsuite.sandbox.recipe import Arg, Arguments, Recipe, Step, error_at
from gymsuite.sandbox.words import expand

_CONTINUED = re.compile(r"\\[ \t]*$")
_ESCAPE = re.compile(r"#\s*escape\s*=\s*(\S+)", re.IGNORECASE)


class _Instruction(NamedTuple):
    line: int
    keyword: str
    rest: str


def parse(path: Path, arguments: Arguments) -> Recipe:
    """Read a Dockerfile; `arguments` override the defaults of its ARGs.

    Raises `DefinitionError` with the file and the line.
    """
    try:
        text = path.read_text("utf-8").removeprefix("\ufeff")
    except (OSError, UnicodeDecodeError) as error:
        raise DefinitionError(f"{path}: cannot be read: {error}") from error
    if (path.parent / ".dockerignore").exists():
        raise DefinitionError(
            f"{path.parent}/.dockerignore is not supported; name the files in COPY, or keep the"
            " others out of the folder"
        )
    reading = _Reading(path, arguments)
    for instruction in _instructions(path, text):
        try:
            reading.take(instruction)
        except ValueError as error:
            raise error_at(path, instruction.line, str(error)) from error
    return reading.recipe()


class _Reading:
    """What was read so far: ARGs before FROM are for FROM, and for ARGs that name them again."""

    def __init__(self, path: Path, arguments: Arguments) -> None:
        self._path = path
        self._arguments = arguments
        self._values: dict[str, str] = {}
        self._declared: set[str] = set()
        self._base: tuple[int, str] | None = None
        self._steps: list[Step] = []

    def take(self, instruction: _Instruction) -> None:
        line, keyword, rest = instruction
        _check(keyword)
        if keyword == "FROM":
            if self._base is not None:
                raise ValueError(
                    "a second FROM; an image here has one stage. Give the other a folder of its"
                    " own, and start FROM it by that folder's name"
                )
            self._base = line, instructions.base_name(rest, self._values)
        elif keyword == "ARG":
            self._argument(instructions.argument(line, rest, self._arguments))
        elif self._base is None:
            raise ValueError(f"{keyword} comes before FROM; the first step is FROM")
        elif (step := instructions.step(line, keyword, rest)) is not None:
            self._steps.append(step)

    def recipe(self) -> Recipe:
        if self._base is None:
            message = "no FROM; an image starts with FROM host, FROM debian or FROM ${BASE}"
            raise error_at(self._path, 1, message)
        line, base = self._base
        return Recipe(self._path, base, line, tuple(self._steps), frozenset(self._declared))

    def _argument(self, arg: Arg) -> None:
        self._declared.add(arg.name)
        if self._base is None:
            default = expand(arg.default or "", self._values)
            self._values[arg.name] = default if arg.given is None else arg.given
        elif arg.given is None and arg.default is None:
            again = self._values.get(arg.name)
            self._steps.append(Arg(arg.line, arg.name, again, None))
        else:
            self._steps.append(arg)


def _check(keyword: str) -> None:
    if keyword in INSTEAD:
        raise ValueError(f"{keyword} is not supported; {INSTEAD[keyword]}")
    if keyword not in NAMES:
        close = difflib.get_close_matches(keyword, NAMES, n=1)
        hint = f"did you mean {close[0]}?" if close else f"there are: {', '.join(NAMES)}"
        raise ValueError(f"{keyword} is not supported; {hint}")


def _instructions(path: Path, text: str) -> Iterator[_Instruction]:
    pending: list[str] = []
    first = 0
    for number, raw in enumerate(text.splitlines(), start=1):
        if not raw.strip() or raw.lstrip().startswith("#"):
            escape = _ESCAPE.match(raw)
            if number == 1 and escape and escape[1] != "\\":
                raise error_at(path, 1, "another escape than the backslash is not supported")
            continue
        first = first or number
        continued = _CONTINUED.search(raw)
        pending.append(raw[: continued.start()] if continued else raw)
        if not continued:
            yield _instruction(first, "".join(pending))
            pending, first = [], 0
    if pending:
        message = "the file ends in a line continuation; remove the last backslash"
        raise error_at(path, first, message)


def _instruction(line: int, text: str) -> _Instruction:
    words = text.strip().split(maxsplit=1)
    return _Instruction(line, words[0].upper() if words else "", words[1] if words[1:] else "")
