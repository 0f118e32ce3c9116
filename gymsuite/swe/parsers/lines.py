"""The formats that say one result a line: a mark, a name, perhaps the time it took."""

import re
from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

from gymsuite.swe.parsers.results import Context, Result, Status, lines
from gymsuite.swe.parsers.text import plain, timeless

Tidy = Callable[[str, str], str]
"""Makes of the text beside a mark, and the mark, the name that SWE-bench gives the test."""


def _as_it_is(text: str, _mark: str) -> str:
    return text


def without(ending: str) -> Tidy:
    """Drop an ending, a pattern, unless nothing would be left."""
    pattern = re.compile(rf"(?<=.)(?:{ending})$")
    return lambda text, _: pattern.sub("", text, count=1)


class Format(NamedTuple):
    """A pattern with the groups `mark` and `name`, and what each mark means.

    `wider` matches what SWE-bench's parser overlooks; it may lie anywhere in a line.
    """

    pattern: re.Pattern[str]
    statuses: Mapping[str, str]
    tidy: Tidy = _as_it_is
    wider: re.Pattern[str] | None = None
    more: Mapping[str, str] = {}

    def read_upstream(self, log: str, _: Context) -> Iterator[Result]:
        """Read as SWE-bench does."""
        for line in lines(log):
            match = self.pattern.match(line.strip())
            if match and (status := self.statuses.get(match["mark"])):
                yield Result(self.tidy(match["name"], match["mark"]), status)

    def read(self, log: str, _: Context) -> Iterator[Result]:
        """Read what a person would."""
        statuses = {**self.statuses, **self.more}
        for line in lines(plain(log)):
            text = line.strip()
            match = self.pattern.match(text)
            if match is None and self.wider:
                match = self.wider.search(text)
            if match and (status := statuses.get(match["mark"])):
                yield _tidied(self.tidy, match["name"], match["mark"], status)


def _tidied(tidy: Tidy, name: str, mark: str, status: str) -> Result:
    key = tidy(name, mark)
    return Result(name if _tells_apart(name, key) else timeless(key), status, key)


def _tells_apart(name: str, key: str) -> bool:
    """Whether what SWE-bench cuts off is part of the name: a bare number, say, and no time."""
    cut = name[len(key) :] if name.startswith(key) else ""
    return cut.strip().isdigit()


_TIMES = "\N{MULTIPLICATION SIGN}"
PASS_FAIL = {"PASS": Status.PASSED, "FAIL": Status.FAILED}

_FILE = re.compile(r"\s+in\s+\S+$")
_MILLISECONDS = r"\s\(\d+\s*m?s\)"


def _redis_name(text: str, mark: str) -> str:
    name = without(_MILLISECONDS)(text, mark)
    return _FILE.sub("", name) if mark == "err" else name


REDIS = Format(
    re.compile(r"\[(?P<mark>ok|err|skip|ignore)\]:\s(?P<name>.+)$"),
    {
        "ok": Status.PASSED,
        "err": Status.FAILED,
        "skip": Status.SKIPPED,
        "ignore": Status.SKIPPED,
    },
    _redis_name,
    wider=re.compile(r"\[(?P<mark>exception|timeout)\]:?\s(?P<name>.+)$"),
    more={"exception": Status.ERROR, "timeout": Status.ERROR},
)

JQ = Format(
    re.compile(r"(?P<mark>PASS|FAIL):\s(?P<name>.+)$"),
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
    re.compile(r"(?P<mark>pass|FAIL|skip)\s+(?P<name>.+)$"),
    {"pass": Status.PASSED, "FAIL": Status.FAILED, "skip": Status.SKIPPED},
)

GOTEST = Format(
    re.compile(r"--- (?P<mark>PASS|FAIL|SKIP): (?P<name>.+) \(.+\)$"),
    {**PASS_FAIL, "SKIP": Status.SKIPPED},
    # What a test prints without a newline stands before its result.
    wider=re.compile(r"--- (?P<mark>PASS|FAIL|SKIP): (?P<name>\S+) \(\d[\d.]*m?s\)$"),
)

CARGO = Format(
    re.compile(r"test\s+(?P<name>\S+)\s+\.\.\.\s+(?P<mark>\w+)$"),
    {"ok": Status.PASSED, "FAILED": Status.FAILED},
    # Documentation tests have spaces in their names; some results give a reason or a time.
    wider=re.compile(
        r"^test\s+(?P<name>.+?)(?: - (?:should panic|compile|compile fail))?\s+\.\.\.\s+"
        r"(?P<mark>ok|FAILED|ignored)(?:,.*| <.*>)?$"
    ),
    more={"ignored": Status.SKIPPED},
)

TAP = Format(
    re.compile(r"(?P<mark>ok|not ok) \d+ (?P<name>.+)$"),
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
    re.compile(r"(?P<mark>[✓✕○])\s(?P<name>.+)$"),
    {"✓": Status.PASSED, "✕": Status.FAILED, "○": Status.SKIPPED},
    lambda text, mark: without(_MILLISECONDS)(text, mark).strip(),
    wider=re.compile(rf"^(?P<mark>[√{_TIMES}✎])\s(?P<name>.+)$"),
    more={"√": Status.PASSED, _TIMES: Status.FAILED, "✎": Status.SKIPPED},
)

JEST_JSON = Format(
    re.compile(r"\[(?P<mark>PASSED|FAILED)\]\s(?P<name>.+)$"),
    {"PASSED": Status.PASSED, "FAILED": Status.FAILED},
    wider=re.compile(r"^\[(?P<mark>PENDING|SKIPPED|TODO)\]\s(?P<name>.+)$"),
    more=dict.fromkeys(("PENDING", "SKIPPED", "TODO"), Status.SKIPPED),
)

VITEST = Format(
    re.compile(rf"(?P<mark>[✓{_TIMES}↓])\s(?P<name>.+)$"),
    {"✓": Status.PASSED, _TIMES: Status.FAILED, "↓": Status.SKIPPED},
    without(r"\s(?:\d+\s*m?s?|\[skipped\])"),
    wider=re.compile(r"^(?P<mark>√)\s(?P<name>.+ > .+)$"),
    more={"√": Status.PASSED},
)

ANT = Format(
    re.compile(r"\[junit\]\s+\[(?P<mark>PASS|FAIL|ERR)\]\s+(?P<name>.*)$"),
    {**PASS_FAIL, "ERR": Status.FAILED},
)

RSPEC = Format(
    re.compile(r"(?P<name>.+) - (?P<mark>passed|failed)"),
    {"passed": Status.PASSED, "failed": Status.FAILED},
    wider=re.compile(r"^(?P<name>.+) - (?P<mark>pending)$"),
    more={"pending": Status.SKIPPED},
)

RUBY_UNIT = Format(
    re.compile(r"(?:test: )?(?P<name>.+):\s+(?P<mark>\.|[EFO]\b)"),
    {".": Status.PASSED, "E": Status.FAILED, "F": Status.FAILED, "O": Status.SKIPPED},
    wider=re.compile(r"^(?:test: )?(?P<name>.+):\s+(?P<mark>[PN])\b"),
    more={"P": Status.SKIPPED, "N": Status.SKIPPED},
)
