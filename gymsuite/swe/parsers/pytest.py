"""pytest's results, from its progress and its summary, whatever options it ran with."""

import re
from collections.abc import Callable, Iterator
from typing import NamedTuple

from gymsuite.swe.parsers.pytest_sessions import sessions
from gymsuite.swe.parsers.pytest_upstream import (
    last_part,
    numbered_buttons,
    read_buttons,
    read_first_word,
    read_options,
    read_seaborn,
    read_spaced,
)
from gymsuite.swe.parsers.results import Context, Parsed, Reader, Result, Status, joined, last_wins
from gymsuite.swe.parsers.text import plain

_WORD = r"(?P<word>PASSED|FAILED|ERROR|SKIPPED|XFAIL|XPASS)"
_WORKER = r"(?:\[gw\d+\](?: \[ *\d+%\])? )?"
_BEFORE = re.compile(rf"{_WORKER}{_WORD} (?P<rest>\S.*)$")
_FROM_WORKER = re.compile(rf"\[gw\d+\](?: \[ *\d+%\])? {_WORD} (?P<rest>\S.*)$")
_BEHIND = re.compile(
    rf"{_WORKER}(?P<rest>\S*\.py::\S.*?) {_WORD}(?: \(.*\))?(?: +\[ *[\d/]+%?\])?$"
)
_PART = re.compile(
    r"(?:\[[^\]]*\] )?(?:\([^)]*\) )?SUB(?P<word>FAIL|PASS|SKIP)(?:ED|PED)?"
    r"(?:\[[^\]]*\]|\([^)]*\))* ?(?:\([^)]*\) )?(?P<rest>\S*::\S.*)$"
)
_PARTS = {"FAIL": Status.FAILED, "PASS": Status.PASSED, "SKIP": Status.PASSED}
_WITH_REASON = frozenset({Status.FAILED, Status.ERROR, Status.XFAIL, Status.XPASS, Status.SKIPPED})
_DASH = " - "


class Dialect(NamedTuple):
    """How SWE-bench reads a repository's log, and what it calls a test."""

    upstream: Reader
    key: Callable[[str], str]


def _first(name: str) -> str:
    return (name.split() or [""])[0]


FIRST_WORD = Dialect(read_first_word, _first)
OPTIONS = Dialect(read_options, lambda name: last_part(_first(name)))
BUTTONS = Dialect(read_buttons, lambda name: _first(numbered_buttons(name)))
SPACED = Dialect(read_spaced, lambda name: " ".join(name.split()))
SEABORN = Dialect(read_seaborn, _first)


def parse_pytest(log: str, dialect: Dialect) -> Parsed:
    """Read a log; what SWE-bench reads elsewhere in it and no test is called are strays.

    A few rows of SWE-bench name such things, `[100%]` for one.
    """
    parsed = joined(
        Result(name, status, dialect.key(name)) for name, status, _ in read_pytest(log, Context())
    )
    strays = {
        name: status
        for name, status in last_wins(dialect.upstream(log, Context())).items()
        if "::" not in name and name not in parsed.statuses and name not in parsed.keys
    }
    return parsed._replace(strays=strays)


def read_pytest(log: str, _: Context) -> Iterator[Result]:
    """Read every session of a log."""
    for session in sessions(plain(log)):
        ahead = _BEFORE if session.is_bare else _FROM_WORKER
        for line in session.progress:
            yield from _in_progress(line.rstrip(), ahead)
        for line in session.summary:
            yield from _summed_up(line.rstrip(), _BEFORE)


def _in_progress(line: str, ahead: re.Pattern[str]) -> Iterator[Result]:
    if match := _BEHIND.match(line):
        yield Result(match["rest"], match["word"])
    else:
        yield from _summed_up(line, ahead)


def _summed_up(line: str, ahead: re.Pattern[str]) -> Iterator[Result]:
    """`STATUS name` and `STATUS name - reason`; a sub-test that fails fails its test."""
    if match := _PART.match(line):
        yield Result(_named(match["rest"], Status.FAILED), _PARTS[match["word"]])
    elif match := ahead.match(line):
        yield from _result(match["word"], match["rest"])


def _result(word: str, rest: str) -> Iterator[Result]:
    name = _named(rest, word)
    if "::" in name or name.endswith(".py"):
        yield Result(name, word)


def _named(rest: str, word: str) -> str:
    """The name, without the reason behind the first dash that stands outside of brackets.

    Before pytest 8, no dash stands before the reason of a test that passed against expectation.
    """
    if word == Status.XPASS:
        return (_outside(rest, " ", rest.find("::")) or rest).strip()
    if word not in _WITH_REASON or _DASH not in rest:
        return rest.strip()
    return (_outside(rest, _DASH, 0) or rest.partition(_DASH)[0]).strip()


def _outside(text: str, end: str, start: int) -> str:
    """What stands before the first `end` outside of brackets; "" where there is none."""
    at = text.find(end, max(start, 0))
    while at >= 0:
        head = text[:at]
        if head.count("[") <= head.count("]"):
            return head
        at = text.find(end, at + 1)
    return ""
