"""Results of sympy's own runner, `bin/test -C --verbose`."""

import re
from collections.abc import Iterator

from gymsuite.swe.parsers.results import Context, Result, Status, lines
from gymsuite.swe.parsers.text import plain

_UPSTREAM = {" E": Status.ERROR, " F": Status.FAILED, " ok": Status.PASSED}
_MARK = re.compile(r"^(?P<name>test_\w+)(?: .*)? (?P<mark>ok|E|F|f|s|X|T)$")
_MARKS = {
    "ok": Status.PASSED,
    "E": Status.ERROR,
    "F": Status.FAILED,
    "T": Status.FAILED,
    "f": Status.XFAIL,
    "X": Status.XPASS,
    "s": Status.SKIPPED,
}
_TITLE = re.compile(r"^_{3,} (?P<file>\S+\.py):(?P<test>\w+) _{3,}$")


def read_sympy_upstream(log: str, _: Context) -> Iterator[Result]:
    """Read the titles of failures, which any ` file.py:12 ` looks like, then `test_x ok`."""
    for line in lines(log):
        yield from _title(line)
    for line in lines(log):
        text = line.strip()
        if text.startswith("test_"):
            for ending, status in _UPSTREAM.items():
                if text.endswith(ending):
                    yield Result(text.split()[0], status)


def _title(line: str) -> Iterator[Result]:
    """From the first space to the last one that has something like a file's end before it."""
    start, end = line.find(" ") + 1, line.rfind(" ")
    at = line.rfind(".py:", start, max(end, 0)) if start else -1
    if at >= 0:
        yield Result(line[start:end], Status.FAILED)


def read_sympy(log: str, _: Context) -> Iterator[Result]:
    """Read the same, without taking a traceback for a title; a failure's title fails its test."""
    for line in lines(plain(log)):
        text = line.strip()
        if match := _TITLE.match(text):
            yield Result(f"{match['file']}:{match['test']}", Status.FAILED)
        elif match := _MARK.match(text):
            yield Result(match["name"], _MARKS[match["mark"]])
