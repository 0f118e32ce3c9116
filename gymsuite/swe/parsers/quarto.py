"""Deno's results as quarto-cli's tests print them, in colour."""

import re
from collections.abc import Iterator

from gymsuite.swe.parsers.results import Context, Result, Status, lines
from gymsuite.swe.parsers.shapes import shape
from gymsuite.swe.parsers.text import plain

_KINDS = ("[smoke]", "[unit]")
_TEMPORARY = (shape("/tmp/{word}.qmd"), shape("/tmp/{word}/"))  # noqa: S108 - in a log
_GREEN_OK, _RED_FAILED, _BLUE_INFO = "32mok", "31mFAILED", "34mINFO"
_WORD = re.compile(r" \.\.\. (?P<word>ok|FAILED|ignored)\b")
_WORDS = {"ok": Status.PASSED, "FAILED": Status.FAILED, "ignored": Status.SKIPPED}


def read_quarto_upstream(log: str, _: Context) -> Iterator[Result]:
    """Read up to the list of errors; a test without a result has failed.

    The names of temporary files become numbers, in the order in which they come up.
    """
    seen: set[str] = set()
    for line in _numbered(log):
        name = line.partition("...")[0].strip()
        if _is_other(line):
            continue
        if _GREEN_OK in line:
            yield Result(name, Status.PASSED)
        elif _RED_FAILED in line or name not in seen:
            yield Result(name, Status.FAILED)
        seen.add(name)


def read_quarto(log: str, _: Context) -> Iterator[Result]:
    """Read the same with and without colours; a name said again without a result adds nothing."""
    seen: set[str] = set()
    for line in _numbered(log):
        if _is_other(line):
            continue
        key = line.partition("...")[0].strip()
        name = plain(key).strip()
        match = _WORD.search(plain(line))
        if match or name not in seen:
            yield Result(name, _WORDS[match["word"]] if match else Status.FAILED, key)
        seen.add(name)


def _numbered(log: str) -> Iterator[str]:
    numbers: dict[str, int] = {}
    for line in lines(log):
        if "ERRORS" in line or "failures:" in line:
            return
        if not any(kind in line for kind in _KINDS):
            continue
        text = line
        for pattern in _TEMPORARY:
            if match := pattern.search(text):
                number = numbers.setdefault(match[0], len(numbers))
                text = pattern.sub(f"/tmp/{number}", text)  # noqa: S108 - in a log
        yield text


def _is_other(line: str) -> bool:
    """Whether it is a total, or what quarto itself says."""
    counts = all(word in line for word in ("passed", "failed", "steps"))
    return line.startswith("test result:") or counts or _BLUE_INFO in line
