"""Takes a line apart into a mark and a name, without patterns: one function a shape."""

from collections.abc import Callable, Collection, Sequence

Found = tuple[str, str] | None
"""The mark and the text beside it."""

Scan = Callable[[str], Found]
"""Takes apart a line less its outer spaces."""


def ahead(marks: Collection[str], *, then: str = "") -> Scan:
    """A mark, `then`, one space of any kind, and the text."""
    starts = {f"{mark}{then}": mark for mark in marks}

    def scan(line: str) -> Found:
        for start, mark in starts.items():
            text = line[len(start) + 1 :]
            if text and line.startswith(start) and line[len(start)].isspace():
                return mark, text
        return None

    return scan


def words_ahead(*heads: Sequence[str]) -> Scan:
    """One word of each head, and the text; the last head's word is the mark."""

    def scan(line: str) -> Found:
        words = line.split(None, len(heads))
        if len(words) <= len(heads):
            return None
        fits = all(word in head for word, head in zip(words, heads, strict=False))
        return (words[len(heads) - 1], words[-1]) if fits else None

    return scan


def behind(marks: Collection[str], *, after: str) -> Scan:
    """The text, `after`, and a mark: the last place where the two stand."""

    def scan(line: str) -> Found:
        at, mark = max((line.rfind(f"{after}{mark}"), mark) for mark in marks)
        return (mark, line[:at]) if at > 0 else None

    return scan


def before_parenthesis(text: str, *, least: int = 1) -> str:
    """What stands before the last ` (...)` that ends a text; "" if it is shorter than `least`."""
    if not text.endswith(")"):
        return ""
    at = text.rfind(" (", 0, len(text) - 2)
    return text[:at] if at >= least else ""


def before_time(text: str, is_number: Callable[[str], bool]) -> str:
    """What stands before the ` (12 ms)` that ends a text; "" if none does, or nothing before it.

    `is_number` is asked about what stands before the unit.
    """
    at = text.rfind("(")
    if at < 1 or not text[at - 1].isspace() or not text.endswith("s)"):
        return ""
    return text[: at - 1] if is_number(text[at + 1 : -2].removesuffix("m")) else ""
