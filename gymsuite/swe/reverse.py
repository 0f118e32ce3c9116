"""Turns a git patch round, so that it undoes what it did."""

import re

_HUNK = re.compile(r"^@@ -(?P<old>\S+) \+(?P<new>\S+) @@(?P<rest>.*)$", re.DOTALL)
_HEADERS = (
    ("new file mode", "deleted file mode"),
    ("old mode", "new mode"),
    ("rename from", "rename to"),
)
_NO_NEWLINE = "\\"


def reverse_patch(patch: str) -> str:
    """Return the patch that undoes `patch`: text files, modes and renames, no binary ones."""
    parts = re.split(r"(?m)^(?=diff --git )", patch)
    return "".join(_file(part) for part in parts)


def _file(part: str) -> str:
    lines = part.splitlines(keepends=True)
    first = next((n for n, line in enumerate(lines) if line.startswith("@@ ")), len(lines))
    return "".join((*_header(lines[:first]), *_hunks(lines[first:])))


def _header(lines: list[str]) -> list[str]:
    """The header's lines, with the two sides exchanged and in git's order."""
    turned = [_turned(line) for line in lines]
    return sorted(turned, key=_rank) if lines and lines[0].startswith("diff --git ") else turned


def _turned(line: str) -> str:
    if line.startswith("diff --git a/"):
        return _names_exchanged(line)
    if match := re.match(r"index (\S+?)\.\.(\S+)(.*)$", line, re.DOTALL):
        return f"index {match[2]}..{match[1]}{match[3]}"
    for one, other in _HEADERS:
        for old, new in ((one, other), (other, one)):
            if line.startswith(f"{old} "):
                return f"{new}{line[len(old) :]}"
    if line.startswith("--- "):
        return f"+++ {_side(line[4:], 'b')}"
    if line.startswith("+++ "):
        return f"--- {_side(line[4:], 'a')}"
    return line


def _names_exchanged(line: str) -> str:
    text = line.rstrip("\n")[len("diff --git a/") :]
    middle = text.find(" b/")
    while middle >= 0:
        old, new = text[:middle], text[middle + 3 :]
        if old == new or text.count(" b/") == 1:
            return f"diff --git a/{new} b/{old}\n"
        middle = text.find(" b/", middle + 1)
    return line


def _side(name: str, side: str) -> str:
    return f"{side}/{name[2:]}" if name[:2] in {"a/", "b/"} else name


_ORDER = (
    "diff ",
    "old mode",
    "new mode",
    "similarity",
    "dissimilarity",
    "rename from",
    "rename to",
    "deleted file",
    "new file",
    "index ",
    "--- ",
    "+++ ",
)


def _rank(line: str) -> int:
    return next((n for n, start in enumerate(_ORDER) if line.startswith(start)), len(_ORDER))


def _hunks(lines: list[str]) -> list[str]:
    turned: list[str] = []
    removed: list[str] = []
    added: list[str] = []
    last: list[str] = turned
    for line in lines:
        if match := _HUNK.match(line):
            turned += [*removed, *added]
            removed, added, last = [], [], turned
            turned.append(f"@@ -{match['new']} +{match['old']} @@{match['rest']}")
        elif line.startswith("+"):
            removed.append(f"-{line[1:]}")
            last = removed
        elif line.startswith("-"):
            added.append(f"+{line[1:]}")
            last = added
        elif line.startswith(_NO_NEWLINE):
            last.append(line)
        else:
            turned += [*removed, *added, line]
            removed, added, last = [], [], turned
    return [*turned, *removed, *added]
