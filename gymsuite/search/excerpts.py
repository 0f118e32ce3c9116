"""What agents see of a text: snippets, pages and finds, escaped so that no text can act."""

import re
import unicodedata
from collections.abc import Collection
from typing import NamedTuple

PAGE_CHARACTERS = 4000
SNIPPET_WORDS = 40
_SCANNED_CHARACTERS = 40_000
_FIND_CONTEXT = 100
_MOST_FINDS = 10

_WORD = re.compile(r"\w+")
_TAG = re.compile(r"<(?=[^\s\d=<])")
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\u2028\u2029]")


class Page(NamedTuple):
    """A part of a long text; pages count from 1."""

    text: str
    number: int
    total: int


def escape(text: str) -> str:
    """Make tags in a text harmless: `</information>` becomes `&lt;/information>`.

    Whatever begins like a tag, also a chat template's `<|...|>`, no longer does. Lone surrogates
    and control characters go.
    """
    text = text.encode(errors="replace").decode()
    return _CONTROL.sub(" ", _TAG.sub("&lt;", text))


def words_of(text: str) -> list[str]:
    """The words of a text without case and accents."""
    plain = unicodedata.normalize("NFKD", text.casefold())
    return _WORD.findall("".join(char for char in plain if not unicodedata.combining(char)))


def snippet(text: str, query: Collection[str]) -> str:
    """The stretch of `SNIPPET_WORDS` words that holds most of the query's words."""
    scanned = text[:_SCANNED_CHARACTERS]
    spans = [match.span() for match in re.finditer(r"\S+", scanned)]
    if len(spans) <= SNIPPET_WORDS:
        return " ".join(scanned.split())
    marks = [_first(words_of(scanned[begin:end]), query) for begin, end in spans]
    start = _centred(marks, _densest(marks))
    begin, end = spans[start][0], spans[min(start + SNIPPET_WORDS, len(spans)) - 1][1]
    shown = " ".join(scanned[begin:end].split())
    return f"{'... ' if start else ''}{shown}{' ...' if end < len(text.rstrip()) else ''}"


def _first(words: Collection[str], query: Collection[str]) -> str:
    return next((word for word in words if word in query), "")


def _densest(marks: list[str]) -> int:
    """Where the window with most distinct marks begins; the first of equals."""
    counts: dict[str, int] = {}
    best, best_start = 0, 0
    for end, mark in enumerate(marks):
        if mark:
            counts[mark] = counts.get(mark, 0) + 1
        gone = marks[end - SNIPPET_WORDS] if end >= SNIPPET_WORDS else ""
        if gone:
            counts[gone] -= 1
            if not counts[gone]:
                del counts[gone]
        if len(counts) > best:
            best, best_start = len(counts), max(0, end + 1 - SNIPPET_WORDS)
    return best_start


def _centred(marks: list[str], start: int) -> int:
    """Where a window begins that has the marks of the given one in its middle."""
    marked = [n for n in range(start, min(start + SNIPPET_WORDS, len(marks))) if marks[n]]
    if not marked:
        return start
    middle = (marked[0] + marked[-1]) // 2
    return max(0, min(middle - SNIPPET_WORDS // 2, len(marks) - SNIPPET_WORDS))


def page_of(text: str, number: int) -> Page | None:
    """One page, cut at a line or word end where there is one near; None beyond the last."""
    pages = _pages(text)
    return Page(pages[number - 1], number, len(pages)) if 1 <= number <= len(pages) else None


def _pages(text: str) -> list[str]:
    pages: list[str] = []
    start = 0
    while start < len(text) or not pages:
        end = start + PAGE_CHARACTERS
        if end < len(text):
            near = max(text.rfind("\n", start, end), text.rfind(" ", start, end))
            end = near + 1 if near > start + PAGE_CHARACTERS // 2 else end
        pages.append(text[start:end])
        start = end
    return pages


def finds(text: str, pattern: str) -> list[tuple[int, str]]:
    """Where a literal text occurs, case aside: the page's number and the words around it.

    No regular expressions: an agent's could run for ever.
    """
    found: list[tuple[int, str]] = []
    for number, page in enumerate(_pages(text), 1):
        for match in re.finditer(re.escape(pattern), page, re.IGNORECASE):
            begin, end = max(0, match.start() - _FIND_CONTEXT), match.end() + _FIND_CONTEXT
            found.append((number, " ".join(page[begin:end].split())))
            if len(found) == _MOST_FINDS:
                return found
    return found
