"""PHPUnit's `--testdox`: a line for each class, and its tests below it."""

from collections.abc import Iterator

from gymsuite.swe.parsers.results import Context, Result, Status, lines
from gymsuite.swe.parsers.scanning import before_parenthesis
from gymsuite.swe.parsers.text import plain

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
        if found := _title(line):
            title = found
            continue
        text = line.lstrip()
        if text and text[0] in marks:
            yield Result(f"{title} > {text[1:].lstrip()}", marks[text[0]])


def _title(line: str) -> str:
    """The title of a class, before its full name in parentheses; "" for any other line."""
    is_word = line[:1].isalnum() or line[:1] == "_"
    return before_parenthesis(line, least=2) if is_word else ""
