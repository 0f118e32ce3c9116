"""karma's mocha reporter: suites by indentation, tests with a check or a cross."""

from collections.abc import Callable, Iterator

from gymsuite.swe.parsers.results import Context, Result, Status, UpstreamRaises, lines
from gymsuite.swe.parsers.text import plain

_MARKS = frozenset("✔✖")


def read_karma_upstream(log: str, _: Context) -> Iterator[Result]:
    """Read from the browser's start to the summary; a heading that is less deep ends one suite."""
    return _read(log, _end)


def read_karma(log: str, _: Context) -> Iterator[Result]:
    """Read the same, whatever the indentation does."""
    return _read(plain(log), lambda suite: suite[:-1])


def _read(log: str, end: Callable[[list[str]], list[str]]) -> Iterator[Result]:
    depth, suite = -1, list[str]()
    for indent, mark, name in _results(log):
        if mark:
            yield _result(suite, mark, name)
        elif indent:
            suite = [*suite, name] if indent > depth else suite
            suite = end(suite) if indent < depth else suite
            depth = indent


def _end(suite: list[str]) -> list[str]:
    if not suite:
        raise UpstreamRaises("a heading ends a suite, and none is open")
    return suite[:-1]


def _result(suite: list[str], mark: str, name: str) -> Result:
    return Result(" > ".join([*suite, name]), Status.PASSED if mark == "✔" else Status.FAILED)


def _results(log: str) -> Iterator[tuple[int, str, str]]:
    started = False
    for line in lines(log):
        if line.startswith("SUMMARY:"):
            return
        if "Starting browser" in line:
            started = True
        elif started and (found := _taken_apart(line)):
            yield found


def _taken_apart(line: str) -> tuple[int, str, str] | None:
    """The indentation, the mark and the name; one space before a heading is not of its indent."""
    text = line.lstrip()
    indent = len(line) - len(text)
    if text[:1] in _MARKS and text[1:2].isspace():
        return indent, text[0], text[2:]
    return (indent - 1, "", text) if indent else None
