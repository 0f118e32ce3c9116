"""Reads the part of the Dockerfile language that `sandboxes/` is written in.

Small enough to be built without a daemon, and all of it valid for Docker too. What is left out is
an error that says so: an instruction that is silently ignored would make another image.
"""

import json
import re
import shlex
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from gymsuite.errors import DefinitionError

SUPPORTED = "ARG (before FROM), FROM, COPY, RUN, ENV, WORKDIR"

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_VARIABLE = re.compile(r"\$(?:\{(\w+)\}|(\w+)|(.?))", re.DOTALL)
_CONTINUED = re.compile(r"\\[ \t]*$")
_HEREDOC = re.compile(r"(?:^|\s)\d*<<-?[ \t]*['\"]?[A-Za-z_]")
_WILDCARD = re.compile(r"[*?\[]")


@dataclass(frozen=True)
class Copy:
    """Copies files from the image's folder."""

    line: int
    sources: tuple[str, ...]
    target: str


@dataclass(frozen=True)
class Run:
    """Runs a shell command in the image made so far."""

    line: int
    command: str


@dataclass(frozen=True)
class Env:
    """Sets environment variables. The values may refer to earlier ones."""

    line: int
    variables: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Workdir:
    """Sets, and makes, the directory that commands start in."""

    line: int
    path: str


Step = Copy | Run | Env | Workdir


@dataclass(frozen=True)
class Recipe:
    """A parsed Dockerfile. `base` is what FROM names, with the arguments filled in."""

    path: Path
    base: str
    base_line: int
    steps: tuple[Step, ...]

    def error(self, line: int, text: str) -> DefinitionError:
        """Make the error that points at a line of this file."""
        return _error(self.path, line, text)


class _Instruction(NamedTuple):
    line: int
    keyword: str
    rest: str


def parse(path: Path, arguments: Mapping[str, str]) -> Recipe:
    """Read a Dockerfile; `arguments` override the defaults of its ARGs.

    Raises `DefinitionError` with the file and the line.
    """
    try:
        text = path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise DefinitionError(f"{path}: cannot be read: {error}") from error
    values: dict[str, str] = {}
    base: tuple[int, str] | None = None
    steps: list[Step] = []
    for instruction in _instructions(path, text):
        line, keyword, rest = instruction
        if keyword == "FROM":
            if base is not None:
                raise _error(path, line, "a second FROM; an image here has one stage")
            base = line, _from(path, line, rest, values)
        elif keyword == "ARG":
            if base is not None:
                raise _error(path, line, "ARG is supported before FROM only; use ENV after it")
            name, value = _argument(path, line, rest)
            values[name] = arguments.get(name, value)
        elif base is None:
            raise _error(path, line, f"{keyword} comes before FROM; the first step is FROM")
        else:
            steps.append(_step(path, instruction))
    if base is None:
        raise _error(
            path, 1, "no FROM; an image starts with FROM host, FROM debian or FROM ${BASE}"
        )
    return Recipe(path, base[1], base[0], tuple(steps))


def expand(text: str, variables: Mapping[str, str]) -> str:
    """Put variables in place of `$NAME` and `${NAME}`; raises ValueError for what it cannot."""

    def value(match: re.Match[str]) -> str:
        name = match[1] or match[2]
        if name is None:
            raise ValueError(f"'{match[0]}': only $NAME and ${{NAME}} are supported")
        if name not in variables:
            known = ", ".join(sorted(variables))
            raise ValueError(f"${name} is not set here; what is set: {known}")
        return variables[name]

    return _VARIABLE.sub(value, text)


def _instructions(path: Path, text: str) -> Iterator[_Instruction]:
    pending: list[str] = []
    first = 0
    for number, raw in enumerate(text.splitlines(), start=1):
        if not raw.strip() or raw.lstrip().startswith("#"):
            continue
        first = first or number
        continued = _CONTINUED.search(raw)
        pending.append(raw[: continued.start()] if continued else raw)
        if not continued:
            yield _instruction(first, "".join(pending))
            pending, first = [], 0
    if pending:
        raise _error(path, first, "the file ends in a line continuation; remove the last backslash")


def _instruction(line: int, text: str) -> _Instruction:
    words = text.strip().split(maxsplit=1)
    return _Instruction(line, words[0].upper(), words[1] if len(words) > 1 else "")


def _step(path: Path, instruction: _Instruction) -> Step:
    line, keyword, rest = instruction
    parsers: Mapping[str, Callable[[Path, int, str], Step]]
    parsers = {"COPY": _copy, "RUN": _run, "ENV": _env, "WORKDIR": _workdir}
    parser = parsers.get(keyword)
    if parser is None:
        raise _error(path, line, f"{keyword} is not supported; what is: {SUPPORTED}")
    if not rest:
        raise _error(path, line, f"{keyword} needs an argument")
    if _HEREDOC.search(rest):
        raise _error(path, line, "here-documents are not supported; COPY a file instead")
    if rest.startswith("--"):
        option = rest.split(maxsplit=1)[0].partition("=")[0]
        raise _error(path, line, f"{keyword} {option} is not supported; leave the option out")
    if keyword in {"COPY", "RUN"} and _is_json(rest):
        raise _error(path, line, f"the JSON form of {keyword} is not supported; write it as words")
    return parser(path, line, rest)


def _from(path: Path, line: int, rest: str, values: Mapping[str, str]) -> str:
    if len(rest.split()) != 1:
        raise _error(path, line, f"FROM takes one name, without options or AS; not '{rest}'")
    try:
        base = expand(rest, values)
    except ValueError as error:
        raise _error(path, line, f"FROM: {error}") from error
    if not base:
        raise _error(path, line, f"FROM {rest} is empty; give its ARG a default, as in BASE=host")
    return base


def _argument(path: Path, line: int, rest: str) -> tuple[str, str]:
    name, _, value = rest.strip().partition("=")
    if not _NAME.fullmatch(name) or len(rest.split()) != 1:
        raise _error(path, line, f"ARG takes NAME or NAME=default; not '{rest}'")
    return name, value.strip("'\"")


def _copy(path: Path, line: int, rest: str) -> Copy:
    words = _words(path, line, rest)
    if len(words) < 2:  # noqa: PLR2004 - one source and the target
        raise _error(path, line, "COPY needs at least one source and a target")
    *sources, target = words
    for source in sources:
        if source.startswith("/") or ".." in PurePosixPath(source).parts:
            raise _error(path, line, f"COPY {source}: sources lie below the image's folder")
        if _WILDCARD.search(source):
            raise _error(path, line, f"COPY {source}: wildcards are not supported; name the files")
    if len(sources) > 1 and not target.endswith("/"):
        raise _error(
            path, line, f"COPY of several sources needs a target that ends in '/': {target}/"
        )
    return Copy(line, tuple(sources), target)


def _run(_path: Path, line: int, rest: str) -> Run:
    return Run(line, rest.strip())


def _env(path: Path, line: int, rest: str) -> Env:
    name, *value = rest.split(maxsplit=1)
    if "=" in name:
        pairs = [_pair(path, line, word) for word in _words(path, line, rest)]
    elif value:
        pairs = [(name, value[0].strip())]
    else:
        raise _error(path, line, f"ENV {name} has no value; write ENV {name}=value")
    for key, _ in pairs:
        if not _NAME.fullmatch(key):
            raise _error(path, line, f"ENV: '{key}' is no variable name")
    return Env(line, tuple(pairs))


def _pair(path: Path, line: int, word: str) -> tuple[str, str]:
    key, equals, value = word.partition("=")
    if not equals:
        raise _error(path, line, f"ENV: '{word}' is no NAME=value; quote values with spaces")
    return key, value


def _workdir(path: Path, line: int, rest: str) -> Workdir:
    words = _words(path, line, rest)
    if len(words) != 1:
        raise _error(path, line, f"WORKDIR takes one path; not '{rest}'")
    return Workdir(line, words[0])


def _words(path: Path, line: int, rest: str) -> list[str]:
    # The shell's quoting is removed before variables are put in, so a quoted $ would be lost.
    if "\\$" in rest or re.search(r"'[^']*\$[^']*'", rest):
        raise _error(path, line, "a literal $ is not supported here; use RUN, or COPY a file")
    try:
        return shlex.split(rest)
    except ValueError as error:
        raise _error(path, line, f"{error}: '{rest}'") from error


def _is_json(text: str) -> bool:
    try:
        return isinstance(json.loads(text), list)
    except ValueError:
        return False


def _error(path: Path, line: int, text: str) -> DefinitionError:
    return DefinitionError(f"{path}:{line}: {text}")
