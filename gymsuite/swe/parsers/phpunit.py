"""PHPUnit's `--testdox`: a line for each class, and its tests below it."""

import re
from collections.abc import Iterator

from gymsuite.swe.parsers.results import Context, Result, Status, lines
from gymsuite.swe.parsers.text import plain

_CLASS = re.compile(r"(?P<title>\w.+) \(.+\)$")
_UPSTREAM = {"✔": Status.PASSED, "✘": Status.FAILED, "↩": Status.SKIPPED}
_MARKS = {
    **_UPSTREAM,
    "∅": Status.SKIPPED,
    "☢": Status.PASSED,
    "⚠": Status.PASSED,
}


def read_phpunit_upstream(log: str, _: Context) -> Iterator[Result]:
    """Read as SWE-bench does: a test before any class belongs to the class None."""
    return _read(log, _UPSTREAM)


def read_phpunit(log: str, _: Context) -> Iterator[Result]:
    """Read the marks for incomplete, risky and warned-about tests too."""
    return _read(plain(log), _MARKS)


def _read(log: str, marks: dict[str, Status]) -> Iterator[Result]:
    title: str | None = None
    for line in lines(log):
        if match := _CLASS.match(line):
            title = match["title"]
            continue
        text = line.lstrip()
        if text and text[0] in marks:
            yield Result(f"{title} > {text[1:].lstrip()}", marks[text[0]])
