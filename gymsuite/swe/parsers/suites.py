"""JavaScript runners of which SWE-bench counts whole files: `PASS path (1.2 s)`."""

from collections.abc import Iterator

from gymsuite.swe.parsers.results import Context, Result, Status, lines
from gymsuite.swe.parsers.scanning import before_time
from gymsuite.swe.parsers.text import plain

_WORDS = {"PASS": Status.PASSED, "FAIL": Status.FAILED}
_UNITS = (("ms)", False), ("s)", True), ("s)", False))
"""What ends a time, and whether a space stands before it, in the order in which upstream looks."""


def read_files_upstream(log: str, _: Context) -> Iterator[Result]:
    """Read a file's result a line, its name up to the time it took."""
    for line in lines(log):
        status = _WORDS.get(line[:4])
        if status and line[4:5].isspace():
            yield Result(_timeless(line[5:]), status)


def _timeless(rest: str) -> str:
    """The text before the last ` (1.2 s)`; milliseconds are looked for first."""
    for unit, spaced in _UNITS:
        end = rest.rfind(unit)
        while end >= 0:
            start = rest.rfind("(", 0, end)
            number = rest[start + 1 : end - 1] if spaced else rest[start + 1 : end]
            fits = _is_number(number) and (not spaced or rest[end - 1].isspace())
            if fits and start > 0 and rest[start - 1].isspace():
                return rest[: start - 1]
            end = rest.rfind(unit, 0, end)
    return rest


def _is_number(text: str) -> bool:
    return bool(text) and all(each == "." or each.isdecimal() for each in text)


def _is_spaced_number(text: str) -> bool:
    return _is_number(text[:-1] if text[-1:].isspace() else text)


def read_files(log: str, context: Context) -> Iterator[Result]:
    """Read the same of a log with colours, and less the spaces around a name."""
    for name, status, _ in read_files_upstream(plain(log), context):
        yield Result(name.strip(), status, name)


def read_grommet_upstream(log: str, _: Context) -> Iterator[Result]:
    """Read failures first and passes over them; a name may stand on the next line."""
    for word in ("FAIL", "PASS"):
        rows = iter(log.split("\n"))
        for line in rows:
            if line.startswith(word) and (line == word or line[4].isspace()):
                name = next(rows, None) if line == word else line[5:]
                if name is not None:
                    text = name.strip()
                    yield Result(before_time(text, _is_spaced_number) or text, _WORDS[word])
