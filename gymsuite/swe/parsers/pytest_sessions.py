"""Finds in a log what pytest itself says, apart from what the tests printed.

Captured output may hold whole sessions of its own: pytest's own tests run pytest, and anyone can
print a line that begins with PASSED. What pytest prints of results stands in two places only: the
progress before the first headline that ends it, and the last summary of a session.
"""

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

_HEADLINE = re.compile(r"=+ (?P<title>.*?\S) =+$")
_START = "test session starts"
_SUMMARY = "short test summary info"
_ENDS_PROGRESS = frozenset(
    {"FAILURES", "ERRORS", "PASSES", "XPASSES", "warnings summary", "slowest durations", _SUMMARY}
)
_CLOSE = re.compile(
    r"(?:\d+ (?:passed|failed|errors?|skipped|deselected|xfailed|xpassed|warnings?|rerun|"
    r"subtests? passed)\b.*|no tests ran) in \d[\d.]*\s?s.*"
)


class Session(NamedTuple):
    """The lines of one session in which pytest reports results.

    A bare one has no headlines: a log that somebody has cut, or filtered.
    """

    progress: Sequence[str]
    summary: Sequence[str]
    is_bare: bool = False


def sessions(text: str) -> Iterator[Session]:
    """Yield the sessions that ran one after the other, without those inside of others."""
    rows = text.split("\n")
    for first, last in _spans(rows):
        yield _session(rows[first:last])


def _title(line: str) -> str:
    match = _HEADLINE.match(line.strip())
    return match["title"] if match else ""


def _spans(rows: Sequence[str]) -> Iterator[tuple[int, int]]:
    """Match starts with closes as brackets are; a close without a start belongs to what was."""
    depth, first, ends = 0, 0, 0
    for number, line in enumerate(rows):
        title = _title(line)
        if title == _START:
            if depth == 0 and ends:
                yield first, ends
                first, ends = number, 0
            depth += 1
        elif _CLOSE.fullmatch(title or line.strip()):
            depth = max(depth - 1, 0)
            if depth == 0:
                ends = number + 1
    yield first, len(rows)


def _session(rows: Sequence[str]) -> Session:
    titles = [_title(line) for line in rows]
    quiet = next((n for n, title in enumerate(titles) if title in _ENDS_PROGRESS), len(rows))
    if _SUMMARY not in titles:
        return Session(rows[:quiet], (), is_bare=not any(titles))
    start = len(titles) - 1 - titles[::-1].index(_SUMMARY)
    return Session(rows[:quiet], rows[start + 1 :])
