"""Makes text of a log's bytes, as a terminal would show it."""

import re

_SEQUENCE = re.compile(
    r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[()][0-9A-Za-z]|[@-Z\\^_=>])"
)
_COLOUR = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|[@-Z\\-_])")
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")
_LONGEST_LINE = 4096
_SPACE = re.compile(r"\s+")
_DURATION = re.compile(r" ?(?:\(\d[\d.]* ?(?:m?s|µs|min)\)|\d[\d.]* ?ms)$")


def text_of(log: bytes | str) -> str:
    """Decode a log, whatever its bytes are; every kind of line end becomes a newline."""
    text = log if isinstance(log, str) else log.decode("utf-8", "replace")
    return text.replace("\r\n", "\n").replace("\r", "\n")


def without_long_lines(text: str) -> str:
    """Leave out lines that no result can be, however long a tester makes them."""
    if len(text) <= _LONGEST_LINE:
        return text
    return "\n".join(line for line in text.split("\n") if len(line) <= _LONGEST_LINE)


def plain(text: str) -> str:
    """Take away colours, cursor movements and control characters."""
    return _CONTROL.sub("", _SEQUENCE.sub("", text))


def uncoloured(text: str) -> str:
    """Take away no more than SWE-bench does: sequences that end with their first letter."""
    return _COLOUR.sub("", text)


def timeless(name: str) -> str:
    """A test's name without the time it took."""
    return _DURATION.sub("", name) or name


def folded(name: str) -> str:
    """A test's name without what runners vary: colours, spacing, and the time it took."""
    return timeless(_SPACE.sub(" ", plain(name)).strip())
