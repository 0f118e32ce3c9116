"""Reporters that name failures only; a row whose log they read is graded `fail_only`."""

import re
from collections.abc import Iterator, Sequence
from itertools import chain

from gymsuite.swe.parsers.results import Context, Result, Status, lines
from gymsuite.swe.parsers.shapes import shape
from gymsuite.swe.parsers.text import plain, uncoloured

_SPACE = re.compile(r"\s+")
_LINES_BEFORE = 8
_CHARACTERS_BEFORE = 200


_BPMN = tuple(
    shape(f"{browser}) {{name}}FAILED\n", loose=True)
    for browser in (
        "2KPhantomJS {version} (Linux {version}",
        "2KPhantomJS {version} (Linux x86_64",
        "Chrome Headless {any} (Linux x86_64",
        "HeadlessChrome {version} (Linux {version}",
    )
)
_OPENLAYERS = (
    shape("Chrome Headless {version} (Linux {solid}) {name} FAILED\n", loose=True),
    shape("Chrome {version} (Linux {solid}) {name}FAILED\n", loose=True),
    shape("{start}  {number}){until}Error:", loose=True),
    shape("{start}case {name}: mismatch", loose=True),
)
_CHART = shape("Chrome{space}{version}{blank}({short}){blank}{name}FAILED{end}")
_BROWSERS = ("Chrome", "Headless", "PhantomJS", "Firefox")
_FAILED_WORD = "FAILED"
_ESLINT_START = shape("  {number})", loose=True)


def read_bpmn_upstream(log: str, _: Context) -> Iterator[Result]:
    """Read karma's failures in PhantomJS or headless Chrome; a name keeps its last space."""
    return _failed(_near_failures(log), _BPMN)


def read_karma_failures(log: str, _: Context) -> Iterator[Result]:
    """Read karma's failures in any browser."""
    return _in_any_browser(plain(log))


def read_openlayers_upstream(log: str, _: Context) -> Iterator[Result]:
    """Read failures of karma, mocha and the rendering tests."""
    found = chain(_failed(_near_failures(log), _OPENLAYERS[:2]), _failed(log, _OPENLAYERS[2:]))
    return _spaced(found)


def read_openlayers(log: str, _: Context) -> Iterator[Result]:
    """Read the same of a log with colours, in any browser."""
    text = plain(log)
    return _spaced(chain(_failed(text, _OPENLAYERS[2:]), _in_any_browser(text)))


def read_chart_upstream(log: str, _: Context) -> Iterator[Result]:
    """Read karma's failures in Chrome; a name keeps its last space."""
    return _failed(_near_failures(uncoloured(log)), (_CHART,))


def read_marked(log: str, _: Context) -> Iterator[Result]:
    """Read jasmine's list of failures, `1) suite test`."""
    for line in lines(log):
        number, closed, text = line.partition(")")
        if number.isdecimal() and closed and text[:1].isspace():
            yield Result(text.strip(), Status.FAILED)


def read_eslint(log: str, _: Context) -> Iterator[Result]:
    """Read mocha's numbered failures: a name goes on until a line that speaks of an error."""
    at = 0
    while start := _ESLINT_START.search(log, at):
        found = _error_after(log, start.end())
        if found is None:
            return
        end, at = found
        yield Result(_SPACE.sub(" ", log[start.end() : end]).strip(), Status.FAILED)


def _error_after(log: str, start: int) -> tuple[int, int] | None:
    """Where the name ends that begins at `start`, and where the line's last "Error" does.

    The name ends at the first space behind which, on the same line, "Error" comes.
    """
    at = start
    while (error := log.find("Error", at)) >= 0:
        line = max(log.rfind("\n", start, error) + 1, start)
        space = _first_space(log, start, line, error)
        if space >= 0:
            stop = log.find("\n", error)
            last = log.rfind("Error", error, len(log) if stop < 0 else stop)
            return space, last + len("Error")
        at = error + 1
    return None


def _first_space(log: str, start: int, line: int, error: int) -> int:
    """The first space from `start` on that reaches, by spaces alone, the line of an error."""
    if line > start:
        head = log[start:line]
        return start + len(head.rstrip())
    return next((at for at in range(line, error) if log[at].isspace()), -1)


def _in_any_browser(log: str) -> Iterator[Result]:
    """Read `Browser 1.2 (System) name FAILED`, whatever stands before the browser."""
    for line in lines(log):
        text = line.rstrip()
        head, failed, rest = text.rpartition(_FAILED_WORD)
        opened = head.find(" (") if failed and not rest else -1
        while opened >= 0:
            closed = head.find(") ", opened)
            if _ends_with_browser(head[:opened]) and 0 < closed < len(head) - 2:
                yield Result(head[closed + 2 :], Status.FAILED)
                break
            opened = head.find(" (", opened + 1)


def _ends_with_browser(text: str) -> bool:
    words = text.rsplit(" ", 2)
    return len(words) > 1 and words[-2].endswith(_BROWSERS) and _is_version(words[-1])


def _is_version(word: str) -> bool:
    return bool(word) and not word.strip("0123456789.")


def _near_failures(log: str) -> str:
    """The lines that end with FAILED, and the ends of those just before them.

    A match ends with such a line, and each of the few spaces in it may be a newline. The rest of a
    log, in which the patterns would look in vain, costs too much.
    """
    kept: list[str] = []
    wanted = 0
    for line in reversed(log.split("\n")):
        if line.endswith("FAILED"):
            wanted = _LINES_BEFORE
            kept.append(line)
        else:
            kept.append(line[-_CHARACTERS_BEFORE:] if wanted > 0 else "")
            wanted -= 1
    return "\n".join(reversed(kept))


def _failed(log: str, patterns: Sequence[re.Pattern[str]]) -> Iterator[Result]:
    for pattern in patterns:
        for match in pattern.finditer(log):
            yield Result(match["name"], Status.FAILED)


def _spaced(results: Iterator[Result]) -> Iterator[Result]:
    return (Result(_SPACE.sub(" ", name).strip(), status) for name, status, _ in results)
