"""What agents see of a text: snippets, pages and finds, escaped so that no text can act."""

import re
import unicodedata
from collections import Counter
from collections.abc import Collection, Sequence
from typing import NamedTuple

PAGE_CHARACTERS = 4000
SNIPPET_CHARACTERS = 280
_SCANNED_CHARACTERS = 20_000
_MARGIN = 40
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
    """The stretch of `SNIPPET_CHARACTERS` that holds most of the query's words."""
    scanned = text[:_SCANNED_CHARACTERS]
    if len(text) <= SNIPPET_CHARACTERS:
        return " ".join(text.split())
    # Lower case keeps the places of all but a few letters; case folding would not.
    marks = [(m.start(), m[0]) for m in _WORD.finditer(scanned.lower()) if m[0] in query]
    begin = _densest(marks, len(scanned))
    end = begin + SNIPPET_CHARACTERS
    words = scanned[begin:end].split()
    if begin and not scanned[begin - 1].isspace():
        words = words[1:]
    if end < len(scanned) and not scanned[end].isspace():
        words = words[:-1]
    return f"{'... ' if begin else ''}{' '.join(words)}{' ...' if end < len(text) else ''}"


def _densest(marks: Sequence[tuple[int, str]], length: int) -> int:
    """Where a window begins that holds most of the marks, the first of equals, in its middle."""
    best, found = 0, (0, 0)
    counts: Counter[str] = Counter()
    first = 0
    for place, word in marks:
        counts[word] += 1
        while place - marks[first][0] > SNIPPET_CHARACTERS - _MARGIN:
            counts[marks[first][1]] -= 1
            first += 1
        if (kinds := len(+counts)) > best:
            best, found = kinds, (marks[first][0], place)
    middle = sum(found) // 2
    return max(0, min(middle - SNIPPET_CHARACTERS // 2, length - SNIPPET_CHARACTERS))


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
