"""Progress lines of Ruby's minitest and cucumber, where the mark stands at the end."""

from collections.abc import Iterator

from gymsuite.swe.parsers.results import Context, Result, Status, lines
from gymsuite.swe.parsers.text import plain

_MINITEST = {".": Status.PASSED, "F": Status.FAILED, "E": Status.FAILED}


def read_minitest_upstream(log: str, _: Context) -> Iterator[Result]:
    """Read `Class#test_name. = 0.01 s = .`: the last mark of a line counts, wherever it stands."""
    for line in lines(log):
        text = line.strip()
        mark = max(text.rfind(each) for each in _MINITEST)
        equals = text.rfind("=", 0, max(mark, 0))
        # At least one character of a name, then ". ", then the equals sign.
        end = text.rfind(". ", 1, max(equals, 0))
        if mark > 0 and equals > 0 and end > 0:
            yield Result(text[:end], _MINITEST[text[mark]])


def read_minitest(log: str, context: Context) -> Iterator[Result]:
    """Read the same, and `Class#test_name = 0.01 s = S` where the mark is the last word."""
    for line in lines(plain(log)):
        found = list(read_minitest_upstream(line, context))
        parts = line.strip().rsplit(" = ", 2)
        if len(parts) == len(("name", "time", "mark")) and parts[2] in {*_MINITEST, "S"}:
            status = _MINITEST.get(parts[2], Status.SKIPPED)
            name = found[0].name if found else parts[0]
            yield Result(name, status)
        else:
            yield from found


def read_cucumber_upstream(log: str, _: Context) -> Iterator[Result]:
    """Read `features/a.feature ...F`, by the mark behind the first run of dots."""
    for line in lines(log):
        text = line.strip()
        at = text.rfind(" .")
        while at >= 0:
            dots = text[at + 1 :]
            run = len(dots) - len(dots.lstrip("."))
            if dots[run : run + 1] == "F" or run > 1:
                failed = dots[run : run + 1] == "F"
                yield Result(text[:at], Status.FAILED if failed else Status.PASSED)
                break
            at = text.rfind(" .", 0, at)


def read_cucumber(log: str, context: Context) -> Iterator[Result]:
    """Read the same; any step that failed or is undefined fails the feature."""
    for line in lines(plain(log)):
        for name, status, _ in read_cucumber_upstream(line, context):
            marks = line.strip()[len(name) :].strip()
            only_marks = set(marks) <= set(".FUP-A")
            failed = only_marks and bool(set(marks) & set("FUA"))
            yield Result(name, Status.FAILED if failed else status)
