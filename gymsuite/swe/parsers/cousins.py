"""Readers that other data sets' rows need, each under a name of ours."""

import json
import re
from collections.abc import Iterator

from gymsuite.swe.parsers.pytest import read_pytest
from gymsuite.swe.parsers.results import Context, Result, Status, lines
from gymsuite.swe.parsers.text import plain, timeless

_REPORTED = frozenset({Status.PASSED, Status.FAILED, Status.ERROR})
_SUMMARY = "short test summary info"
_CTEST = re.compile(
    r"\d+/\d+ +Test +#\d+: (?P<name>\S+) \.*\**(?: *)(?P<mark>Passed|Failed|Not Run|Timeout|"
    r"Exception|Skipped|\w+)"
)
_CTEST_GOOD = {"Passed": Status.PASSED, "Skipped": Status.SKIPPED, "Not": Status.SKIPPED}
_EXUNIT = re.compile(
    r"\* (?:test|doctest) (?P<name>.*?)(?P<skip> \((?:skipped|excluded)\))?"
    r"(?: \([\d.]+ms\))? \[L#\d+\]$"
)
_EXUNIT_FAILED = re.compile(r"\d+\) (?:test|doctest) (?P<name>.*) \([^()]+\)$")
_WORDS = {
    "pass": Status.PASSED,
    "passed": Status.PASSED,
    "ok": Status.PASSED,
    "fail": Status.FAILED,
    "failed": Status.FAILED,
    "error": Status.ERROR,
    "skip": Status.SKIPPED,
    "skipped": Status.SKIPPED,
    "pending": Status.SKIPPED,
    "xfail": Status.XFAIL,
}
_COUNT = re.compile(r"\b(?P<what>run|Failures|Errors|Skipped): *(?P<count>\d+)")
_MOCHA = re.compile(r"(?P<mark>✔|-|(?:\[W\]\s*)?\d+\))\s+(?P<name>\S.*)$")
_DOTNET = re.compile(r"\s+(?P<word>Passed|Failed|Skipped)\s+(?P<name>\S.*?)(?:\s+\[[^\]]+\])?$")
_MOST_OPENINGS = 50


def read_r2e_upstream(log: str, _: Context) -> Iterator[Result]:
    """Read the lines behind the first summary's title as R2E-Gym does, wherever the word stands."""
    parts = log.split(_SUMMARY)
    for line in lines(parts[1].strip()) if len(parts) > 1 else ():
        name = ".".join(line.split("::")[1:])
        if Status.PASSED in line:
            yield Result(name, Status.PASSED)
        elif Status.FAILED in line:
            yield Result(name.split(" - ")[0], Status.FAILED)
        elif Status.ERROR in line:
            yield Result(name.split(" - ")[0], Status.ERROR)


def read_r2e(log: str, context: Context) -> Iterator[Result]:
    """Read pytest's results, and name them as R2E-Gym does: without the file."""
    for name, status, _ in read_pytest(log, context):
        if status in _REPORTED:
            yield Result(".".join(name.split("::")[1:]), status)


def read_surefire(log: str, _: Context) -> Iterator[Result]:
    """Read Maven's line for each class of tests, which ends with the class."""
    for name, counts in _classes(log):
        if counts["Failures"] + counts["Errors"]:
            yield Result(name, Status.FAILED)
        elif counts["run"]:
            all_skipped = counts["run"] == counts["Skipped"]
            yield Result(name, Status.SKIPPED if all_skipped else Status.PASSED)


def read_surefire_strictly(log: str, _: Context) -> Iterator[Result]:
    """Read the same line; a class that skipped any test was skipped."""
    for name, counts in _classes(log):
        bad = counts["Failures"] + counts["Errors"]
        good = Status.SKIPPED if counts["Skipped"] else Status.PASSED
        yield Result(name, Status.FAILED if bad else good)


def _classes(log: str) -> Iterator[tuple[str, dict[str, int]]]:
    """The counts of each class; totals, which name none, are left out."""
    for line in lines(plain(log)):
        counts = {match["what"]: int(match["count"]) for match in _COUNT.finditer(line)}
        _, said, name = line.strip().rpartition(" in ")
        if said and {"run", "Failures", "Errors", "Skipped"} <= counts.keys():
            yield name.strip(), counts


def read_mocha(log: str, _: Context) -> Iterator[Result]:
    """Read mocha's marks without the suites above them."""
    for line in lines(plain(log)):
        if match := _MOCHA.match(line.strip()):
            mark, name = match["mark"], timeless(match["name"]).rstrip(":")
            good = Status.SKIPPED if mark == "-" else Status.PASSED
            yield Result(name, Status.FAILED if mark.endswith(")") else good)


def read_dotnet(log: str, _: Context) -> Iterator[Result]:
    """Read `dotnet test` with its results one a line."""
    for line in lines(plain(log)):
        if match := _DOTNET.match(line.rstrip()):
            yield Result(match["name"], _WORDS[match["word"].lower()])


def read_ctest(log: str, _: Context) -> Iterator[Result]:
    """Read CTest's line for each test."""
    for line in lines(plain(log)):
        if match := _CTEST.search(line):
            word = match["mark"].split()[0]
            yield Result(match["name"], _CTEST_GOOD.get(word, Status.FAILED))


def read_exunit(log: str, _: Context) -> Iterator[Result]:
    """Read Elixir's `mix test --trace`, where failures stand in a list of their own."""
    for line in lines(plain(log)):
        text = line.strip()
        if match := _EXUNIT_FAILED.match(text):
            yield Result(match["name"], Status.FAILED)
        elif match := _EXUNIT.match(text):
            yield Result(match["name"], Status.SKIPPED if match["skip"] else Status.PASSED)


def read_json(log: str, _: Context) -> Iterator[Result]:
    """Read `{"tests": [{"name": ..., "status": ...}]}` or `{name: status}`, a parser's own output.

    The parser is a data set's program and ran in a sandbox: whatever it printed is only read.
    """
    document = _first_object(log)
    tests = document.get("tests")
    if isinstance(tests, list):
        pairs = [(t.get("name"), t.get("status")) for t in tests if isinstance(t, dict)]
    else:
        pairs = list(document.items())
    for name, word in pairs:
        status = _WORDS.get(word.lower()) if isinstance(word, str) else None
        if isinstance(name, str) and status:
            yield Result(name, status)


def _first_object(log: str) -> dict[object, object]:
    decoder, at = json.JSONDecoder(), log.find("{")
    for _ in range(_MOST_OPENINGS):
        if at < 0:
            break
        try:
            document, _end = decoder.raw_decode(log, at)
        except (ValueError, RecursionError):
            at = log.find("{", at + 1)
            continue
        return document if isinstance(document, dict) else {}
    return {}
