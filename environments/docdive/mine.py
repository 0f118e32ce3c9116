"""Finds facts in documentation by its structure: since when a thing is there, what it defaults to.

A fact is a place in a page: rewriting an edition is replacing the text at these places.
"""

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from gymsuite.search import Document

_DIRECTIVE = re.compile(
    r"^(?P<indent> *)\.\. (?P<kind>[a-z][a-z:-]*)::\s+"
    r"(?:async |classmethod |abstractmethod )?(?P<name>[\w.:-]+)"
)
_ADDED = re.compile(r"^(?P<indent> *)\.\. versionadded::\s+(?P<value>\d+(?:\.\d+)+)\s*$")
_DEFAULT = re.compile(
    r"^(?P<indent> *)(?:\*\*Default:\*\*|Default:|:default:)\s+``(?P<value>\d{1,9})``"
)
_HEADING = re.compile(r"^(?:``(?P<name>\w+)``|(?P<loud>[A-Z][A-Z_0-9]+))$")
_UNDERLINE = re.compile(r"[=\-~^\"'*#+]{3,}\s*$")
_SHORTEST_NAME = 8
_KINDS: Mapping[str, str] = {
    "setting": "setting",
    "confval": "configuration value",
    "directive": "directive",
    "rst:directive": "directive",
    "rst:role": "role",
    "event": "event",
    "function": "function",
    "class": "class",
    "method": "method",
    "attribute": "attribute",
    "exception": "exception",
}
"""What a fact can be about; other directives only hide what is around them."""
_UNSURE = {("django", "version")}
"""Where a directive and what belongs to it stand at the same depth."""


class Fact(NamedTuple):
    """Something that a page states at one place: `page[start:end]` is its value."""

    project: str
    page: str
    kind: str
    name: str
    attribute: str
    start: int
    end: int
    value: str


class _Open(NamedTuple):
    indent: int
    kind: str
    name: str


def mine(documents: Mapping[str, Document]) -> list[Fact]:
    """All facts whose subject has one such fact in its project only, in the order of pages."""
    found = [fact for page in documents.values() for fact in _page(page)]
    times = Counter((fact.project, fact.name.rpartition(".")[2], fact.attribute) for fact in found)
    return [
        fact
        for fact in found
        if times[fact.project, fact.name.rpartition(".")[2], fact.attribute] == 1
    ]


def _page(page: Document) -> Iterator[Fact]:
    project = page.id.partition("/")[0]
    opened: list[_Open] = []
    start = 0
    lines = page.text.split("\n")
    for line, following in zip(lines, [*lines[1:], ""], strict=True):
        if _UNDERLINE.match(following) and line and not line[0].isspace():
            named = _HEADING.match(line)
            opened = [_Open(-1, "setting", named["name"] or named["loud"])] if named else []
        if directive := _DIRECTIVE.match(line):
            opened = _entered(opened, directive)
        for pattern, attribute in ((_ADDED, "version"), (_DEFAULT, "default")):
            match = pattern.match(line)
            owner = _owner(opened, match) if match else None
            if match and owner and (project, attribute) not in _UNSURE:
                begin, end = start + match.start("value"), start + match.end("value")
                yield Fact(
                    project, page.id, _KINDS[owner.kind], owner.name, attribute, begin, end,
                    match["value"],
                )  # fmt: skip
        start += len(line) + 1


def _entered(opened: list[_Open], directive: re.Match[str]) -> list[_Open]:
    """What is open after a directive: a setting's label opens its whole section."""
    depth = len(directive["indent"])
    if directive["kind"] == "setting" and not depth:
        return [_Open(-1, "setting", directive["name"])]
    return [
        *(other for other in opened if other.indent < depth),
        _Open(depth, directive["kind"], directive["name"]),
    ]


def _owner(opened: list[_Open], match: re.Match[str]) -> _Open | None:
    around = [other for other in opened if other.indent < len(match["indent"])]
    if not around or around[-1].kind not in _KINDS or len(around[-1].name) < _SHORTEST_NAME:
        return None
    return around[-1]
