"""What a log parser reports of each test, and how repeated reports of one test are joined."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from enum import StrEnum
from typing import NamedTuple

from gymsuite.errors import GymsuiteError


class Status(StrEnum):
    """What came of one test. The first five words are SWE-bench's."""

    PASSED = "PASSED"
    XFAIL = "XFAIL"
    SKIPPED = "SKIPPED"
    FAILED = "FAILED"
    ERROR = "ERROR"
    XPASS = "XPASS"
    """Expected to fail, and passed; a runner that counts this as a failure says FAILED."""


_BADNESS: Mapping[str, int] = {
    status: badness
    for badness, status in enumerate(
        (
            Status.SKIPPED,
            Status.XPASS,
            Status.XFAIL,
            Status.PASSED,
            Status.FAILED,
            Status.ERROR,
        )
    )
}


class Result(NamedTuple):
    """One report of one test.

    `key` is the name under which SWE-bench's own parser files the test, where that differs: the
    names in its data sets are such keys, some of them cut at a space.
    """

    name: str
    status: str
    key: str = ""


class Context(NamedTuple):
    """What a few of SWE-bench's parsers need to know of the row."""

    instance_id: str = ""
    version: str = ""


class Parsed(NamedTuple):
    """All results of a log.

    `keys` says which tests SWE-bench files under a name that is not their own. `strays` are what
    SWE-bench reads where no result stands; only names that are no test's may be looked up there.
    """

    statuses: Mapping[str, str] = {}
    keys: Mapping[str, tuple[str, ...]] = {}
    strays: Mapping[str, str] = {}


Reader = Callable[[str, Context], Iterable[Result]]


class UpstreamRaises(GymsuiteError):  # noqa: N818 - an answer rather than an error
    """SWE-bench's own parser raises an exception for this log, and reports an error."""


def worst(statuses: Iterable[str]) -> str:
    """The worst of several reports: whatever order they come in, a failure is not undone."""
    return max(statuses, key=lambda status: _BADNESS.get(status, len(_BADNESS)))


def joined(results: Iterable[Result]) -> Parsed:
    """One status for each test, the worst that was reported."""
    statuses: dict[str, str] = {}
    keys: dict[str, dict[str, None]] = {}
    for name, status, key in results:
        statuses[name] = worst((statuses[name], status)) if name in statuses else status
        if key and key != name:
            keys.setdefault(key, {})[name] = None
    return Parsed(statuses, {key: tuple(names) for key, names in keys.items()})


def last_wins(results: Iterable[Result]) -> dict[str, str]:
    """One status for each test, the last that was reported, as SWE-bench has it."""
    return {result.name: result.status for result in results}


def lines(log: str) -> Iterator[str]:
    """The lines of a log, and nothing but a newline ends one."""
    yield from log.split("\n")
