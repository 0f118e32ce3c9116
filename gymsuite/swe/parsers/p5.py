"""p5.js's failures: mocha's numbered list between dumps of JSON and of HTML."""

import re
from bisect import bisect_left
from collections.abc import Iterator
from itertools import pairwise

from gymsuite.swe.parsers.results import Context, Result, Status, lines
from gymsuite.swe.parsers.text import uncoloured

_TAG = re.compile(r"<(?P<name>\w+)>")
_CLOSING = re.compile(r"</(?P<name>\w+)>")
_LONGEST_TITLES = 1000


def read_p5(log: str, _: Context) -> Iterator[Result]:
    """Read `1) suite` with deeper and deeper titles below it, up to a colon."""
    for text in _numbered(_without_markup(_without_json(uncoloured(log)))):
        titles = text.split("\n")
        depths = [0, *(len(title) - len(title.lstrip()) for title in titles)]
        if all(one < two for one, two in pairwise(depths)):
            yield Result(":".join(title.strip() for title in titles), Status.FAILED)


def _numbered(log: str) -> Iterator[str]:
    """What stands between a number at the beginning of a line, `1)`, and the next colon."""
    at = 0
    while at >= 0:
        number, closed, _ = log[at : _line_end(log, at)].partition(")")
        start = at + len(number) + 1
        end = log.find(":", start, start + _LONGEST_TITLES + 1)
        if closed and number.strip().isdecimal() and number[-1].isdecimal() and end >= 0:
            yield log[start:end]
            at = end
        at = log.find("\n", at) + 1 or -1


def _line_end(log: str, at: int) -> int:
    end = log.find("\n", at)
    return len(log) if end < 0 else end


def _without_json(log: str) -> str:
    kept, braces, brackets = [], False, False
    for line in lines(log):
        text = line.rstrip()
        if text.endswith("{"):
            braces = True
        elif text.endswith("["):
            brackets = True
        elif text == "}" and braces:
            braces = False
        elif text == "]" and brackets:
            brackets = False
        elif not (braces or brackets or _is_dump(text)):
            kept.append(line)
    return "\n".join(kept)


def _is_dump(text: str) -> bool:
    return (text[:1], text[-1:]) in {("{", "}"), ("[", "]")}


def _without_markup(log: str) -> str:
    """Drop each element with what it holds; tags that nothing closes stay."""
    closings: dict[str, list[int]] = {}
    for match in _CLOSING.finditer(log):
        closings.setdefault(match["name"], []).append(match.start())
    kept, at = [], 0
    while opening := _TAG.search(log, at):
        tag, end, left = opening["name"], opening.end(), 1
        reached = end
        while left and (closing := _next(closings.get(tag, []), end)) is not None:
            left += log.count(f"<{tag}>", end, closing) - 1
            end = reached = closing + len(f"</{tag}>")
        kept.append(log[at : opening.start()] + f"<{tag}>" * left)
        at = reached
    return "".join((*kept, log[at:]))


def _next(positions: list[int], start: int) -> int | None:
    index = bisect_left(positions, start)
    return positions[index] if index < len(positions) else None
