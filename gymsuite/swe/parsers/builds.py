"""Results that Java's build tools print: one Maven build a test, or Gradle's test events."""

from collections.abc import Iterator, Sequence

from gymsuite.swe.parsers.results import Context, Result, Status, lines
from gymsuite.swe.parsers.text import plain

_OPTION = "-Dtest="
_BUILDS = {"BUILD SUCCESS": Status.PASSED, "BUILD FAILURE": Status.FAILED}
_EVENTS = (Status.PASSED, Status.FAILED)


def read_maven(log: str, _: Context) -> Iterator[Result]:
    """Pair commands with builds in their order; a result may come before its command.

    The log has one `mvn -Dtest=...` a test, and says BUILD SUCCESS or FAILURE for each.
    """
    waiting: list[str] = []
    early: list[Status] = []
    for line in lines(log):
        text = line.strip()
        if name := _asked_for(text):
            waiting.append(name)
        if status := next((_BUILDS[end] for end in _BUILDS if text.endswith(end)), None):
            if waiting:
                yield Result(waiting.pop(0), status)
            else:
                early.append(status)
    for name, status in zip(waiting, early, strict=False):
        yield Result(name, status)


def _asked_for(text: str) -> str:
    """The word behind the last option that has one."""
    for part in reversed(text.split(_OPTION)[1:]):
        if part and not part[0].isspace():
            return part.split(None, 1)[0]
    return ""


def read_gradle_upstream(log: str, _: Context) -> Iterator[Result]:
    """Read `Class > method PASSED`, where the word may come some lines later."""
    return _events(log, _EVENTS)


def read_gradle(log: str, _: Context) -> Iterator[Result]:
    """Read skipped tests too."""
    return _events(plain(log), (*_EVENTS, Status.SKIPPED))


def _events(log: str, words: Sequence[Status]) -> Iterator[Result]:
    waiting = ""
    for line in lines(log):
        text = line.strip()
        status = next((word for word in words if text.endswith(word)), None)
        name = text[: -len(status)] if status else ""
        # One space stands before the word, and at least two characters before that.
        if status and len(name) > len("ab") and name[-1].isspace() and name[0] != ">":
            yield Result(name[:-1], status)
            waiting = ""
        elif _is_title(text.split()):
            waiting = text
        elif waiting and text in _EVENTS:
            yield Result(waiting, Status(text))
            waiting = ""


def _is_title(words: Sequence[str]) -> bool:
    """Whether it is `Class > method` and no result yet."""
    return len(words) == len(("Class", ">", "method")) and words[1] == ">" and words[0][0] != ">"
