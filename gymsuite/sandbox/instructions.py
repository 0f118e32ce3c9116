"""Each Dockerfile instruction that makes a step, read from the words behind its name.

All raise ValueError, whose text says what is wrong and what would be right.
"""

import json
import re
from collections.abc import Mapping
from pathlib import PurePosixPath

from gymsuite.sandbox.recipe import Arg, Arguments, Copy, Env, Run, Step, User, Workdir
from gymsuite.sandbox.words import expand, split

NAMES = ("ARG", "FROM", "COPY", "RUN", "ENV", "WORKDIR", "USER", "LABEL")
INSTEAD: Mapping[str, str] = {
    "ADD": "use COPY for files, and a RUN step to fetch or unpack",
    "CMD": "leave it out: whoever opens a sandbox says what runs in it",
    "ENTRYPOINT": "leave it out: the exec server is the first process of a sandbox",
    "EXPOSE": "leave it out: nothing reaches a sandbox over a network",
    "HEALTHCHECK": "leave it out: the exec server says when a sandbox is ready",
    "MAINTAINER": "use LABEL, or a comment",
    "ONBUILD": "write the step into the images that start FROM this one",
    "SHELL": 'name the shell in the step: RUN ["/bin/bash", "-c", "..."]',
    "STOPSIGNAL": "leave it out: a sandbox is ended by killing",
    "VOLUME": "leave it out: all of a sandbox can be written, and none of it outlives it",
}
"""What to use in place of an instruction that is not supported."""

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_WILDCARD = re.compile(r"[*?\[]")
_HEREDOC = re.compile(r"(?:^|\s)\d*<<-?[ \t]*['\"]?[A-Za-z_]")
_OPTION = re.compile(r"--([a-z-]+)(?:=(\S*))?\s+")
_USER = re.compile(r"[a-z0-9_][a-z0-9_.-]*(?::[a-z0-9_][a-z0-9_.-]*)?", re.IGNORECASE)
_ROOT = frozenset({"root", "0"})
_MODE_BITS = 0o1777
_OWNER_READS = 0o400


def step(line: int, keyword: str, rest: str) -> Step | None:
    """Read a step; None for a LABEL, which changes nothing in a sandbox."""
    if not rest:
        raise ValueError(f"{keyword} needs an argument")
    if _HEREDOC.search(rest):
        raise ValueError("here-documents are not supported; COPY a file instead")
    match keyword:
        case "COPY":
            return _copy(line, rest)
        case "RUN":
            return _run(line, rest)
        case "ENV":
            return Env(line, tuple(_pairs(keyword, rest)))
        case "WORKDIR":
            return Workdir(line, _one(keyword, rest, "path"))
        case "USER":
            return User(line, _one(keyword, rest, "name, or name:group"))
    for word in split(rest):
        if "=" not in word:
            raise ValueError(f"LABEL: '{word}' is no name=value")
    return None


def argument(line: int, rest: str, given: Arguments) -> Arg:
    """Read an ARG."""
    words = split(rest)
    name, equals, default = (words or [""])[0].partition("=")
    if len(words) != 1 or not _NAME.fullmatch(name):
        raise ValueError(f"ARG takes NAME or NAME=default; not '{rest}'")
    return Arg(line, name, given.get(name), default if equals else None)


def user(text: str) -> str:
    """Check the name of a user, in which variables are filled in; root is always `root`."""
    if not _USER.fullmatch(text):
        raise ValueError(f"USER takes a name or number, or name:group; not '{text}'")
    return "root" if _is_root(text) else text


def check_owner(text: str, last_user: str) -> None:
    """Check whose the files of a COPY are to be: all files belong to whom the image ends as."""
    name, last = text.partition(":")[0], last_user.partition(":")[0]
    if name != last and not _is_root(name):
        raise ValueError(
            f"COPY --chown={text}: every file of an image is its user's, and this one ends as"
            f" {last}; end it with USER {name}, or leave the option out and share the files by"
            " --chmod=666"
        )


def _is_root(text: str) -> bool:
    return all(part in _ROOT for part in text.split(":"))


def _one(keyword: str, rest: str, what: str) -> str:
    words = split(rest)
    if len(words) != 1:
        raise ValueError(f"{keyword} takes one {what}; not '{rest}'")
    return words[0]


def _run(line: int, rest: str) -> Run:
    if rest.startswith("--"):
        raise ValueError(f"RUN {_first(rest)} is not supported; leave the option out")
    words = _json(rest)
    if words is None:
        return Run(line, rest.strip())
    if not words:
        raise ValueError("RUN [] names no program")
    return Run(line, tuple(words))


def _first(rest: str) -> str:
    return rest.split(maxsplit=1)[0].partition("=")[0]


def _copy(line: int, rest: str) -> Copy:
    mode: int | None = None
    owner = "root"
    while option := _OPTION.match(rest):
        name, value = option[1], option[2] or ""
        rest = rest[option.end() :]
        if name == "chmod":
            mode = _mode(value)
        elif name == "chown":
            owner = value
        elif name == "from":
            raise ValueError("COPY --from is not supported; start FROM that image, by its folder")
        else:
            raise ValueError(f"COPY --{name} is not supported; leave the option out")
    words = _json(rest)
    words = split(rest) if words is None else [_quote(word) for word in words]
    if len(words) < 2:  # noqa: PLR2004 - one source and the target
        raise ValueError("COPY needs at least one source and a target")
    *sources, target = words
    for source in sources:
        _check_source(source)
    if len(sources) > 1 and not target.rstrip("'\"").endswith("/"):
        raise ValueError(f"COPY of several sources needs a target that ends in '/': {target}/")
    return Copy(line, tuple(sources), target, mode, owner)


def _check_source(source: str) -> None:
    plain = source.strip("'\"")
    if plain.startswith("/") or ".." in PurePosixPath(plain).parts:
        raise ValueError(f"COPY {source}: sources lie below the image's folder")
    if _WILDCARD.search(plain):
        raise ValueError(f"COPY {source}: wildcards are not supported; name the files")


def _mode(text: str) -> int:
    try:
        mode = int(text, 8)
    except ValueError:
        raise ValueError(f"COPY --chmod takes octal digits, such as 755; not '{text}'") from None
    if mode & ~_MODE_BITS or not mode & _OWNER_READS:
        raise ValueError(
            f"COPY --chmod={text}: images keep no setuid and no setgid, and their owner can read"
            " every file; a mode is between 400 and 1777"
        )
    return mode


def _pairs(keyword: str, rest: str) -> list[tuple[str, str]]:
    name, *value = rest.split(maxsplit=1)
    if "=" in name:
        pairs = [_pair(keyword, word) for word in split(rest)]
    elif value:
        pairs = [(name, value[0].strip())]
        split(value[0])
    else:
        raise ValueError(f"{keyword} {name} has no value; write {keyword} {name}=value")
    for key, _ in pairs:
        if not _NAME.fullmatch(key):
            raise ValueError(f"{keyword}: '{key}' is no variable name")
    return pairs


def _pair(keyword: str, word: str) -> tuple[str, str]:
    key, equals, value = word.partition("=")
    if not equals:
        raise ValueError(f"{keyword}: '{word}' is no NAME=value; quote values with spaces")
    return key, value


def _json(text: str) -> list[str] | None:
    """The words of the JSON form, or None where this is not it, as Docker decides."""
    try:
        words = json.loads(text)
    except ValueError:
        return None
    if not isinstance(words, list) or not all(isinstance(word, str) for word in words):
        return None
    return words


def _quote(word: str) -> str:
    escaped = word.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def base_name(rest: str, values: Arguments) -> str:
    """Read what FROM names."""
    words = rest.split()
    if len(words) > 1 and not words[0].startswith("--"):
        raise ValueError(
            f"FROM takes one name, and an image has one stage; not '{rest}'. Give the other stage"
            " a folder of its own, and start FROM it by that folder's name"
        )
    if len(words) != 1:
        raise ValueError(f"FROM takes one name, without options; not '{rest}'")
    name = expand(rest, values)
    if not name:
        raise ValueError(f"FROM {rest} is empty; give its ARG a default, as in BASE=host")
    return name
