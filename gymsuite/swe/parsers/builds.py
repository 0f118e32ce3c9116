"""Results that Java's build tools print: one Maven build a test, or Gradle's test events."""

import re
from collections.abc import Iterator

from gymsuite.swe.parsers.results import Context, Result, Status, lines
from gymsuite.swe.parsers.text import plain

_TEST = re.compile(r".*-Dtest=(?P<name>\S+)")
_BUILD = re.compile(r".*BUILD (?P<word>SUCCESS|FAILURE)$")
_BUILDS = {"SUCCESS": Status.PASSED, "FAILURE": Status.FAILED}

_EVENT = re.compile(r"(?P<name>[^>].+)\s+(?P<mark>PASSED|FAILED)$")
_EVENT_OR_SKIP = re.compile(r"(?P<name>[^>].+)\s+(?P<mark>PASSED|FAILED|SKIPPED)$")
_TITLE = re.compile(r"(?P<name>[^>]\S*\s+>\s+\S+)$")


def read_maven(log: str, _: Context) -> Iterator[Result]:
    """Pair commands with builds in their order; a result may come before its command.

    The log has one `mvn -Dtest=...` a test, and says BUILD SUCCESS or FAILURE for each.
    """
    waiting: list[str] = []
    early: list[Status] = []
    for line in lines(log):
        text = line.strip()
        if match := _TEST.match(text):
            waiting.append(match["name"])
        if match := _BUILD.match(text):
            status = _BUILDS[match["word"]]
            if waiting:
                yield Result(waiting.pop(0), status)
            else:
                early.append(status)
    for name, status in zip(waiting, early, strict=False):
        yield Result(name, status)


def read_gradle_upstream(log: str, _: Context) -> Iterator[Result]:
    """Read `Class > method PASSED`, where the word may come some lines later."""
    return _events(log, _EVENT)


def read_gradle(log: str, _: Context) -> Iterator[Result]:
    """Read skipped tests too."""
    return _events(plain(log), _EVENT_OR_SKIP)


def _events(log: str, event: re.Pattern[str]) -> Iterator[Result]:
    waiting = ""
    for line in lines(log):
        text = line.strip()
        if match := event.match(text):
            yield Result(match["name"], Status(match["mark"]))
            waiting = ""
        elif match := _TITLE.match(text):
            waiting = match["name"]
        elif waiting and text in {Status.PASSED, Status.FAILED}:
            yield Result(waiting, Status(text))
            waiting = ""
