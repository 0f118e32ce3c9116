"""Reporters that print suites as indented headings, with marked tests below them."""

from collections.abc import Callable, Iterator

from gymsuite.swe.parsers.results import Context, Result, Status, UpstreamRaises, lines
from gymsuite.swe.parsers.shapes import shape
from gymsuite.swe.parsers.text import plain, uncoloured

_TIME = shape("({number}ms)")
_LAST_TIME = shape("({number}ms){end}")
_PASSING, _PASSING_LOOSELY = shape("{number} passing"), shape("{number} passing", loose=True)
_JEST = " ./node_modules/.bin/jest "
_CHECK, _CROSS = "✓", "✕"
_ASSERTION = shape("AssertionError:{gap}#")
_NOISE = ("ERROR", "LOG", "WARN", "Check", "in")
_MOCHA_RUN = shape("running {number} test files", loose=True)


class Suites:
    """The headings above a line, by their indentation."""

    def __init__(self) -> None:
        self._open: list[tuple[str, int]] = []

    def heading(self, line: str) -> None:
        """Open the suite of an indented line; it ends those as deep as itself, or deeper."""
        if depth := len(line) - len(line.lstrip()):
            while self._open and self._open[-1][1] >= depth:
                self._open.pop()
            self._open.append((line.strip(), depth))

    @property
    def titles(self) -> list[str]:
        """The titles, outermost first."""
        return [title for title, _ in self._open]

    def named(self, name: str) -> str:
        """A test's full name."""
        return " - ".join((*self.titles, name))


def read_highlightjs(log: str, _: Context) -> Iterator[Result]:
    """Read mocha's spec reporter, up to its counts; a name has one heading, the line above it."""
    titles: list[str] = []
    for at, line in enumerate(lines(log)):
        text = line.strip()
        if at and _PASSING.match(line.lstrip(" \t")):
            return
        if text.startswith(("✓", "✔")):
            name, status = line.partition(text[0])[2], Status.PASSED
        elif _is_numbered(text):
            name, status = line.partition(")")[2], Status.FAILED
        else:
            titles = [text] if line.startswith("  ") else titles
            continue
        yield Result(".".join([*titles, _TIME.sub("", name).strip()]), status)


def _is_numbered(text: str) -> bool:
    number, closed, _ = text.partition(")")
    return bool(closed) and number.isdecimal()


def read_calypso_upstream(log: str, _: Context) -> Iterator[Result]:
    """Read jest's verbose reporter, a command at a time, up to its counts or first failure."""
    return _calypso(log, _exact_name)


def read_calypso(log: str, _: Context) -> Iterator[Result]:
    """Read the same, where SWE-bench's parser raises an exception too."""
    return _calypso(plain(log), lambda line: _TIME.sub("", line.strip()[1:])[1:])


def _calypso(log: str, name_of: Callable[[str], str]) -> Iterator[Result]:
    suites = Suites()
    for block in log.split(_JEST)[1:]:
        for line in lines(block):
            text = line.strip()
            if line.startswith(("Test Suites", "  ● ")):
                break
            if text.startswith((_CHECK, _CROSS)):
                name = " - ".join([" - ".join(suites.titles), name_of(line)]).strip()
                yield Result(name, Status.PASSED if text[0] == _CHECK else Status.FAILED)
            else:
                suites.heading(line)


def _exact_name(line: str) -> str:
    head, _, name = line.partition(line.strip()[0])
    timed = _TIME.search(line) is not None
    end = _LAST_TIME.search(name)
    if not head or not name[:1].isspace() or (timed and not end):
        raise UpstreamRaises(f"{line!r} is not as jest prints results")
    return name[1 : end.start()] if timed and end else name[1:]


def read_next(log: str, context: Context) -> Iterator[Result]:
    """Read alibaba-fusion/next's karma reporter, or cypress's in version 1.27."""
    return _next_cypress(log) if context.version == "1.27" else _next_karma(log)


def _next_karma(log: str) -> Iterator[Result]:
    suites = Suites()
    text = _without_assertions(uncoloured(log))
    for block in text.split(" xvfb-run ")[1:]:
        for line in lines(block.rpartition("Starting browser Chrome")[2]):
            if line.startswith("TOTAL"):
                break
            if line.strip().startswith(_NOISE):
                continue
            for mark, status in (("✗", Status.FAILED), ("✓", Status.PASSED)):
                if mark in line:
                    yield Result(suites.named(line.partition(mark)[2].lstrip()), status)
                    break
            else:
                suites.heading(line)


def _without_assertions(log: str) -> str:
    """Drop what an assertion says, up to an empty line."""
    kept, at = [], 0
    while match := _ASSERTION.search(log, at):
        end = log.find("\n\n", match.end())
        if end < 0:
            break
        kept.append(log[at : match.start()])
        at = end + 2
    return "".join((*kept, log[at:]))


_RUNNING = shape("Running:{any})\n\n\n  {name}\n", loose=True)
_FAILED = shape("{start}    {number}) {name}", loose=True)
_PASSED = shape("{start}    ✓ {name}(", loose=True)


def _next_cypress(log: str) -> Iterator[Result]:
    headings = list(_RUNNING.finditer(log))
    ends = [*(heading.start() for heading in headings[1:]), len(log)]
    for heading, end in zip(headings, ends, strict=False):
        block = log[heading.end() : end]
        for pattern, status in ((_FAILED, Status.FAILED), (_PASSED, Status.PASSED)):
            for match in pattern.finditer(block):
                yield Result(f"{heading['name']}: {match['name'].strip()}", status)


def read_mocha_runs(log: str) -> Iterator[Result]:
    """Read lighthouse's mocha, a run at a time, up to its counts."""
    for block in _MOCHA_RUN.split(log)[1:]:
        suites = Suites()
        for line in lines(_PASSING_LOOSELY.split(block, maxsplit=1)[0].strip()):
            text = line.strip()
            passed = text.startswith("✔")
            rest = text[1:] if passed else text.partition(")")[2]
            if not (passed or _is_numbered(text)) or not rest[:1].isspace():
                suites.heading(line)
                continue
            status = Status.PASSED if passed else Status.FAILED
            yield Result(suites.named(_untimed(rest[1:])), status)


def _untimed(text: str) -> str:
    """What stands before the last ` (12ms)`; a unit of several m is one, too."""
    at = len(text)
    while (at := text.rfind("(", 0, at)) > 0:
        number, unit, rest = text[at + 1 :].partition("m")
        timed = number.isdecimal() and unit and rest.lstrip("m").startswith("s)")
        if timed and text[at - 1].isspace():
            return text[: at - 1]
    return text
