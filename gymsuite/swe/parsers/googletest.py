"""GoogleTest's results: `[       OK ] Suite.Test (3 ms)`, whatever stands before them."""

import re
from collections.abc import Iterator

from gymsuite.swe.parsers.results import Context, Result, Status, lines
from gymsuite.swe.parsers.text import plain

_MARK = re.compile(r"\[\s*(?P<word>OK|FAILED)\s*\]\s")
_TIME = re.compile(r"\s\(")
_STATUSES = {"OK": Status.PASSED, "FAILED": Status.FAILED, "SKIPPED": Status.SKIPPED}
_TIMELESS = re.compile(
    r"\[\s*(?P<word>SKIPPED|FAILED)\s*\]\s(?P<name>[\w/]+\.[\w/]+)(?: \(.*\)|, where .*)?$"
)


def read_googletest_upstream(log: str, _: Context) -> Iterator[Result]:
    """Read the last mark of a line that ends with something in parentheses."""
    for line in lines(log):
        yield from _timed(line.strip())


def read_googletest(log: str, _: Context) -> Iterator[Result]:
    """Read skipped tests too, and failures in the list at the end."""
    for line in lines(plain(log)):
        text = line.strip()
        found = list(_timed(text))
        yield from found
        if not found and (match := _TIMELESS.search(text)):
            yield Result(match["name"], _STATUSES[match["word"]])


def _timed(text: str) -> Iterator[Result]:
    times = list(_TIME.finditer(text)) if text.endswith(")") else []
    if not times:
        return
    end = times[-1].start()
    marks = [mark for mark in _MARK.finditer(text) if mark.end() <= end]
    if marks:
        yield Result(text[marks[-1].end() : end], _STATUSES[marks[-1]["word"]])
