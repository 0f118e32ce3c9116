"""Makes text of a log's bytes, as a terminal would show it."""

import re
from collections.abc import Callable

_ESCAPE, _BELL = "\x1b", "\a"
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
    """Take away colours, cursor movements, titles and control characters."""
    return _CONTROL.sub("", _without(text, _wide_end))


def uncoloured(text: str) -> str:
    """Take away no more than SWE-bench does: sequences that end with their first letter."""
    return _without(text, _end)


def _without(text: str, end_of: Callable[[str, int], int]) -> str:
    """Drop the sequences of a terminal; `end_of` says where one ends, or that there is none."""
    kept, at = [], 0
    while (escape := text.find(_ESCAPE, at)) >= 0:
        end = end_of(text, escape)
        kept.append(text[at : escape if end else escape + 1])
        at = end or escape + 1
    return "".join((*kept, text[at:]))


def _end(text: str, at: int) -> int:
    """Where the sequence ends that an escape at `at` begins; 0 if it begins none.

    ECMA-48: behind `[` parameters, intermediates and one last character; else one character.
    """
    kind = text[at + 1 : at + 2]
    if kind != "[":
        return at + 2 if "@" <= kind <= "_" else 0
    last = _past(text, _past(text, at + 2, "0", "?"), " ", "/")
    return last + 1 if "@" <= text[last : last + 1] <= "~" else 0


def _wide_end(text: str, at: int) -> int:
    """The same, and titles up to their bell, choices of characters, and modes of the keypad."""
    kind, named = text[at + 1 : at + 2], text[at + 2 : at + 3]
    if kind == "]":
        return _title_end(text, at)
    if kind in {"(", ")"}:
        return at + 3 if named.isascii() and named.isalnum() else 0
    return at + 2 if kind in {"=", ">"} else _end(text, at)


def _title_end(text: str, at: int) -> int:
    """A title ends with a bell, or with an escape and a backslash."""
    escape = text.find(_ESCAPE, at + 1)
    stop = len(text) if escape < 0 else escape
    bell = text.find(_BELL, at, stop)
    if bell >= 0:
        return bell + 1
    return stop + 2 if text.startswith("\\", stop + 1) else 0


def _past(text: str, at: int, first: str, last: str) -> int:
    """The first place from `at` on where no character between the two stands."""
    while first <= text[at : at + 1] <= last:
        at += 1
    return at


def timeless(name: str) -> str:
    """A test's name without the time it took."""
    return _DURATION.sub("", name) or name


def folded(name: str) -> str:
    """A test's name without what runners vary: colours, spacing, and the time it took."""
    return timeless(_SPACE.sub(" ", plain(name)).strip())
