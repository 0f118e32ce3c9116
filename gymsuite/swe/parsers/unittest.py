"""unittest's verbose results, as Django and others print them."""

import re
from collections.abc import Iterator

from gymsuite.swe.parsers.results import Context, Result, Status, lines
from gymsuite.swe.parsers.text import plain
from gymsuite.swe.parsers.unittest_upstream import VERSION

_TITLE = re.compile(
    r"^(?P<mark>FAIL|ERROR): (?P<name>[\w.]+ \([\w.<>]+\))(?P<part>(?: \[.*\])?(?: \(.*\))?)$"
)
_METHOD = re.compile(r"(?P<name>test\w* \([\w.<>]+\))(?P<part>(?: \[.*\])?(?: \(.*\))?)$")
_RULE = re.compile(r"^={20,}$")
_STATUSES = {
    "ok": Status.PASSED,
    "OK": Status.PASSED,
    "FAIL": Status.FAILED,
    "ERROR": Status.ERROR,
    "expected failure": Status.XFAIL,
    "unexpected success": Status.FAILED,
}


def read_unittest(log: str, _: Context) -> Iterator[Result]:
    """Read `name ... ok`, whose mark may stand on a later line, behind what the test printed.

    A test with a docstring goes by the docstring's first line, the last before its mark. Failures
    are also read from the list at the end, where a sub-test fails its test.
    """
    waiting, after_rule = "", False
    for line in lines(plain(log)):
        text = line.strip()
        if VERSION in text:
            yield Result(VERSION, Status.PASSED)
        if after_rule and (match := _TITLE.match(text)):
            yield Result(match["name"], _STATUSES[match["mark"]])
        elif " ..." in text:
            name, status = _ended(text)
            waiting = "" if status else name
            if status:
                yield from _named(name, status)
        elif waiting and text in _STATUSES:
            yield from _named(waiting, _STATUSES[text])
            waiting = ""
        after_rule = _RULE.match(text) is not None


def _ended(text: str) -> tuple[str, Status | None]:
    """The name before the last dots that a mark ends, or else before the first dots."""
    name, _, said = text.rpartition(" ... ")
    said = said.strip()
    if name and said.startswith("skipped"):
        return name, Status.SKIPPED
    if name and said in _STATUSES:
        return name, _STATUSES[said]
    name, _, said = text.partition(" ...")
    mark = next((mark for mark in _STATUSES if said.endswith(f" {mark}")), None)
    return name, _STATUSES[mark] if mark else None


def _named(text: str, status: Status) -> Iterator[Result]:
    """What was printed before the name on its line is not part of it, though SWE-bench keeps it.

    Nor is what tells a sub-test from others of its test.
    """
    match = _METHOD.search(text)
    if match and match["name"] != text:
        yield Result(match["name"], status, text)
    else:
        yield Result(text, status)
