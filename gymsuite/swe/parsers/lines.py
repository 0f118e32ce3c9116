"""The formats that say one result a line: a mark, a name, perhaps the time it took."""

import re
from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

from gymsuite.swe.parsers.results import Context, Result, Status, lines
from gymsuite.swe.parsers.scanning import (
    Found,
    Scan,
    ahead,
    before_parenthesis,
    before_time,
    behind,
    words_ahead,
)
from gymsuite.swe.parsers.text import plain, timeless

Tidy = Callable[[str, str], str]
"""Makes of the text beside a mark, and the mark, the name that SWE-bench gives the test."""


def _as_it_is(text: str, _mark: str) -> str:
    return text


class Format(NamedTuple):
    """How to take a line apart, and what each mark means.

    `wider` matches what SWE-bench's parser overlooks; it may lie anywhere in a line.
    """

    scan: Scan
    statuses: Mapping[str, str]
    tidy: Tidy = _as_it_is
    wider: re.Pattern[str] | None = None
    more: Mapping[str, str] = {}

    def read_upstream(self, log: str, _: Context) -> Iterator[Result]:
        """Read as SWE-bench does."""
        for line in lines(log):
            mark, text = self.scan(line.strip()) or ("", "")
            if status := self.statuses.get(mark):
                yield Result(self.tidy(text, mark), status)

    def read(self, log: str, _: Context) -> Iterator[Result]:
        """Read what a person would."""
        statuses = {**self.statuses, **self.more}
        for line in lines(plain(log)):
            mark, text = self._scanned_widely(line.strip())
            if status := statuses.get(mark):
                yield _tidied(self.tidy, text, mark, status)

    def _scanned_widely(self, line: str) -> tuple[str, str]:
        if found := self.scan(line):
            return found
        match = self.wider.search(line) if self.wider else None
        return (match["mark"], match["name"]) if match else ("", "")


def _tidied(tidy: Tidy, name: str, mark: str, status: str) -> Result:
    key = tidy(name, mark)
    return Result(name if _tells_apart(name, key) else timeless(key), status, key)


def _tells_apart(name: str, key: str) -> bool:
    """Whether what SWE-bench cuts off is part of the name: a bare number, say, and no time."""
    cut = name[len(key) :] if name.startswith(key) else ""
    return cut.strip().isdigit()


_MOST_SPACES = 200
_TIMES = "\N{MULTIPLICATION SIGN}"
PASS_FAIL = {"PASS": Status.PASSED, "FAIL": Status.FAILED}


def _untimed(text: str) -> str:
    """A name without its ` (12 ms)`, unless nothing would be left."""
    return before_time(text, lambda number: number.rstrip().isdecimal()) or text


def _vitest_name(text: str, _mark: str) -> str:
    """A name without its ` 12ms`, ` 12` or ` [skipped]`, unless nothing would be left."""
    name = text.removesuffix("[skipped]")
    if name == text:
        timed = name.removesuffix("s").removesuffix("m").rstrip()
        name = timed.rstrip("".join(filter(str.isdecimal, timed)))
        name = text if name == timed else name
    return name[:-1] if name != text and name[:-1] and name[-1].isspace() else text


def _redis_name(text: str, mark: str) -> str:
    """A name less its time; that of a failure less the file, ` in tests/a.tcl`, too."""
    name = _untimed(text)
    words = name.rsplit(None, 2)
    if mark != "[err]" or words[-2:-1] != ["in"] or name[-1].isspace():
        return name
    if len(words) > len(("in", "file")):
        return words[0]
    return "" if name[0].isspace() else name


def _scan_go(line: str) -> Found:
    """`--- PASS: TestX (0.01s)`."""
    mark, _, text = line.removeprefix("--- ").partition(": ")
    name = before_parenthesis(text)
    return (mark, name) if line.startswith("--- ") and name else None


def _scan_cargo(line: str) -> Found:
    """`test module::name ... ok`, four words."""
    words = line.split()
    fits = len(words) == len(("test", "name", "...", "ok"))
    return (words[3], words[1]) if fits and words[0] == "test" and words[2] == "..." else None


def _scan_tap(line: str) -> Found:
    """`ok 1 name` or `not ok 1 name`."""
    mark = "not ok" if line.startswith("not ok ") else "ok"
    number, _, name = line.removeprefix(f"{mark} ").partition(" ")
    return (mark, name) if line.startswith(f"{mark} ") and number.isdecimal() and name else None


def _scan_ruby_unit(line: str) -> Found:
    """`test: name: .`, by the last colon that a mark follows."""
    for start in (len("test: "), 0) if line.startswith("test: ") else (0,):
        at = line.rfind(":", start + 1)
        while at > start:
            after = line[at + 1 : at + _MOST_SPACES].lstrip()
            spaced = line[at + 1 : at + 2].isspace()
            if spaced and (after[:1] == "." or _is_letter_alone(after)):
                return after[0], line[start:at]
            at = line.rfind(":", start + 1, at)
    return None


def _is_letter_alone(text: str) -> bool:
    return text[:1] in {"E", "F", "O"} and not (text[1:2].isalnum() or text[1:2] == "_")


REDIS = Format(
    ahead(("[ok]", "[err]", "[skip]", "[ignore]"), then=":"),
    {
        "[ok]": Status.PASSED,
        "[err]": Status.FAILED,
        "[skip]": Status.SKIPPED,
        "[ignore]": Status.SKIPPED,
    },
    _redis_name,
    wider=re.compile(r"\[(?P<mark>exception|timeout)\]:?\s(?P<name>.+)$"),
    more={"exception": Status.ERROR, "timeout": Status.ERROR},
)

JQ = Format(
    ahead(PASS_FAIL, then=":"),
    PASS_FAIL,
    wider=re.compile(r"^(?P<mark>XFAIL|XPASS|SKIP|ERROR): (?P<name>.+)$"),
    more={
        "XFAIL": Status.XFAIL,
        "XPASS": Status.XPASS,
        "SKIP": Status.SKIPPED,
        "ERROR": Status.ERROR,
    },
)

MICROPYTHON = Format(
    words_ahead(("pass", "FAIL", "skip")),
    {"pass": Status.PASSED, "FAIL": Status.FAILED, "skip": Status.SKIPPED},
)

GOTEST = Format(
    _scan_go,
    {**PASS_FAIL, "SKIP": Status.SKIPPED},
    # What a test prints without a newline stands before its result.
    wider=re.compile(r"--- (?P<mark>PASS|FAIL|SKIP): (?P<name>\S+) \(\d[\d.]*m?s\)$"),
)

CARGO = Format(
    _scan_cargo,
    {"ok": Status.PASSED, "FAILED": Status.FAILED},
    # Documentation tests have spaces in their names; some results give a reason or a time.
    wider=re.compile(
        r"^test\s+(?P<name>.+?)(?: - (?:should panic|compile|compile fail))?\s+\.\.\.\s+"
        r"(?P<mark>ok|FAILED|ignored)(?:,.*| <.*>)?$"
    ),
    more={"ignored": Status.SKIPPED},
)

TAP = Format(
    _scan_tap,
    {"ok": Status.PASSED, "not ok": Status.FAILED},
)

_DIRECTIVE = re.compile(r"#\s*(?P<word>skip|todo)\b", re.IGNORECASE)


def read_tap(log: str, context: Context) -> Iterator[Result]:
    """Read TAP with its directives, which remain in the names."""
    for result in TAP.read(log, context):
        match = _DIRECTIVE.search(result.name)
        word = match["word"].lower() if match else ""
        if word == "skip":
            yield result._replace(status=Status.SKIPPED)
        elif word == "todo":
            ok = result.status == Status.PASSED
            yield result._replace(status=Status.XPASS if ok else Status.XFAIL)
        else:
            yield result


JEST = Format(
    ahead("✓✕○"),
    {"✓": Status.PASSED, "✕": Status.FAILED, "○": Status.SKIPPED},
    lambda text, _: _untimed(text).strip(),
    wider=re.compile(rf"^(?P<mark>[√{_TIMES}✎])\s(?P<name>.+)$"),
    more={"√": Status.PASSED, _TIMES: Status.FAILED, "✎": Status.SKIPPED},
)

JEST_JSON = Format(
    ahead(("[PASSED]", "[FAILED]")),
    {"[PASSED]": Status.PASSED, "[FAILED]": Status.FAILED},
    wider=re.compile(r"^\[(?P<mark>PENDING|SKIPPED|TODO)\]\s(?P<name>.+)$"),
    more=dict.fromkeys(("PENDING", "SKIPPED", "TODO"), Status.SKIPPED),
)

VITEST = Format(
    ahead(f"✓{_TIMES}↓"),
    {"✓": Status.PASSED, _TIMES: Status.FAILED, "↓": Status.SKIPPED},
    _vitest_name,
    wider=re.compile(r"^(?P<mark>√)\s(?P<name>.+ > .+)$"),
    more={"√": Status.PASSED},
)

ANT = Format(
    words_ahead(("[junit]",), ("[PASS]", "[FAIL]", "[ERR]")),
    {"[PASS]": Status.PASSED, "[FAIL]": Status.FAILED, "[ERR]": Status.FAILED},
)

RSPEC = Format(
    behind(("passed", "failed"), after=" - "),
    {"passed": Status.PASSED, "failed": Status.FAILED},
    wider=re.compile(r"^(?P<name>.+) - (?P<mark>pending)$"),
    more={"pending": Status.SKIPPED},
)

RUBY_UNIT = Format(
    _scan_ruby_unit,
    {".": Status.PASSED, "E": Status.FAILED, "F": Status.FAILED, "O": Status.SKIPPED},
    wider=re.compile(r"^(?:test: )?(?P<name>.+):\s+(?P<mark>[PN])\b"),
    more={"P": Status.SKIPPED, "N": Status.SKIPPED},
)
