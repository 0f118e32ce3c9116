"""What SWE-bench's evaluation scripts say in a log: where tests begin and end, how they exited."""

from itertools import takewhile
from typing import NamedTuple

from gymsuite.swe.parsers.shapes import any_shape

START = ">>>>> Start Test Output"
END = ">>>>> End Test Output"
EXIT_CODE = ">>>>> Test Exit Code"
BAD = tuple(
    f">>>>> {words}"
    for words in ("Patch Apply Failed", "Reset Failed", "Tests Errored", "Tests Timed Out")
)
_RAN = any_shape(
    "Executed {some} of {number}",
    "TOTAL: {some} SUCCESS",
    "TOTAL: {some} FAILED",
    "{some} passing",
    "Tests:{gap}{some}",
    "Test Suites:{gap}{counts}{some} total",
    "{start}# tests {some}",
    "{some} spec, {number} failure",
    "{some} specs, {number} failure",
    "': ok{end}",
)


class Marked(NamedTuple):
    """A log cut at its markers. `tests` is None where a marker is missing or a bad word is said."""

    tests: str | None
    exit_code: int | None
    wrong: str = ""


def cut(log: str) -> Marked:
    """Cut at the first start and the last end: an end that a test prints hides nothing.

    Bad words count outside of the tests' output only, and so does the exit code: the last one.
    """
    _, start, rest = log.partition(START)
    tests, end, after = rest.rpartition(END)
    if not start or not end:
        missing = START if not start else END
        said = [word for word in BAD if word in log]
        return Marked(None, None, said[0] if said else f"the log has no {missing!r}")
    codes = _codes(after)
    before = log.partition(START)[0]
    for word in BAD:
        if word in before or word in after:
            return Marked(None, None, f"the log says {word!r}")
    return Marked(tests, codes[-1] if codes else None)


def cut_upstream(log: str) -> Marked:
    """Cut as SWE-bench does: at the first end behind the first start, bad words anywhere."""
    for word in BAD:
        if word in log:
            return Marked(None, None, f"the log says {word!r}")
    for word in (START, END):
        if word not in log:
            return Marked(None, None, f"the log has no {word!r}")
    tests = log.partition(START)[2].partition(START)[0].partition(END)[0]
    codes = _codes(log)
    return Marked(tests, codes[0] if codes else None)


def _codes(text: str) -> list[int]:
    """All exit codes that a text tells."""
    told = (part.lstrip() for part in text.split(f"{EXIT_CODE}:")[1:])
    signs = ((-1, part[1:]) if part.startswith("-") else (1, part) for part in told)
    numbers = ((sign, "".join(takewhile(str.isdecimal, part))) for sign, part in signs)
    return [sign * int(number) for sign, number in numbers if number]


def has_run(log: str) -> bool:
    """Whether a runner that names failures only says that it has run any test."""
    return _RAN.search(log) is not None
