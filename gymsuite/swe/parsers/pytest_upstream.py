"""pytest's results as SWE-bench's four readers of them see it, oddities included.

A line counts wherever it stands, by the word it begins with; the whole first word becomes the
status, be it `ERRORS` or `ERROR:`; and all but one reader cut names at the first space.
"""

import re
from collections.abc import Callable, Iterator

from gymsuite.swe.parsers.results import Context, Result, Status, lines

_WORDS = (Status.FAILED, Status.PASSED, Status.SKIPPED, Status.ERROR, Status.XFAIL)
_COLOUR = re.compile(r"\[\d+m")
_CONTROL = dict.fromkeys(range(1, 32))
_COUNT = re.compile(r"\[\d+\]$")


def read_first_word(log: str, _: Context) -> Iterator[Result]:
    """Read `STATUS name ...`, where a name ends at a space."""
    return _first_words(log, lambda line: line, lambda name: name)


def read_options(log: str, _: Context) -> Iterator[Result]:
    """Read the same, and of a parameter that is a path keep its last part."""
    return _first_words(log, lambda line: line, last_part)


def read_buttons(log: str, _: Context) -> Iterator[Result]:
    """Read the same, and give matplotlib's mouse buttons their numbers."""
    return _first_words(log, numbered_buttons, lambda name: name)


def read_spaced(log: str, _: Context) -> Iterator[Result]:
    """Read names with spaces, with the status before or behind them; some colours are dropped."""
    for line in lines(log):
        text = _COLOUR.sub("", line).translate(_CONTROL)
        if text.startswith(_WORDS):
            if text.startswith(Status.FAILED):
                text = text.split(" - ", 1)[0]
            words = text.split()
            if len(words) > 1 and not _is_count(words):
                yield Result(" ".join(words[1:]), words[0])
        elif text.endswith(_WORDS):
            words = text.split()
            if len(words) > 1:
                yield Result(" ".join(words[:-1]), words[-1])


def read_seaborn(log: str, _: Context) -> Iterator[Result]:
    """Read failures by their first word, and passes with the word on either side of the name."""
    for line in lines(log):
        words = line.split()
        if len(words) <= 1:
            continue
        if line.startswith(Status.FAILED):
            yield Result(words[1], Status.FAILED)
        elif f" {Status.PASSED} " in line:
            if words[1] == Status.PASSED:
                yield Result(words[0], Status.PASSED)
        elif line.startswith(Status.PASSED):
            yield Result(words[1], Status.PASSED)


def last_part(name: str) -> str:
    """`t[/a/b/c]` as `t[/c]`: machines differ in where they keep a file."""
    start, end = name.find("["), name.rfind("]")
    if not 0 <= start < end:
        return name
    option = name[start + 1 : end]
    if option.startswith("/") and not option.startswith("//") and "*" not in option:
        option = f"/{option.rpartition('/')[2]}"
    return f"{name[:start]}[{option}]"


def numbered_buttons(text: str) -> str:
    """Call matplotlib's mouse buttons by their numbers."""
    return text.replace("MouseButton.LEFT", "1").replace("MouseButton.RIGHT", "3")


def _first_words(
    log: str, before: Callable[[str], str], after: Callable[[str], str]
) -> Iterator[Result]:
    for line in lines(log):
        text = before(line)
        if not text.startswith(_WORDS):
            continue
        if text.startswith(Status.FAILED):
            text = text.replace(" - ", " ")
        words = text.split()
        if len(words) > 1 and not _is_count(words):
            yield Result(after(words[1]), words[0])


def _is_count(words: list[str]) -> bool:
    """Whether it is the summary of skipped tests, `SKIPPED [3] file:12: reason`."""
    return words[0] == Status.SKIPPED and _COUNT.match(words[1]) is not None
