"""Readers that other data sets' rows need, each under a name of ours."""

import json
import re
from collections.abc import Iterator

from gymsuite.swe.parsers.pytest import read_pytest
from gymsuite.swe.parsers.results import Context, Result, Status, lines
from gymsuite.swe.parsers.text import plain, timeless

_REPORTED = frozenset({Status.PASSED, Status.FAILED, Status.ERROR})
_SUMMARY = "short test summary info"
_SUREFIRE = re.compile(
    r"Tests run: (?P<run>\d+), Failures: (?P<failures>\d+), Errors: (?P<errors>\d+), "
    r"Skipped: (?P<skipped>\d+), Time elapsed: [\d.]+ .*? (?:-- )?in (?P<name>\S.*)"
)
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
_RUNNING = re.compile(r"(?:\[INFO\]\s+)?Running\s+(?P<name>[\w$.]+)$")
_SUM = re.compile(
    r"Tests run:\s*\d+,\s*Failures:\s*(?P<failures>\d+),\s*Errors:\s*(?P<errors>\d+),"
    r"\s*Skipped:\s*(?P<skipped>\d+)"
)
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
    """Read Maven's line for each class of tests."""
    for line in lines(plain(log)):
        if match := _SUREFIRE.search(line):
            run, bad = int(match["run"]), int(match["failures"]) + int(match["errors"])
            if bad:
                yield Result(match["name"], Status.FAILED)
            elif run > 0:
                all_skipped = run == int(match["skipped"])
                yield Result(match["name"], Status.SKIPPED if all_skipped else Status.PASSED)


def read_surefire_strictly(log: str, _: Context) -> Iterator[Result]:
    """Read a class by the line that sums it up; one that skipped any test was skipped."""
    running = ""
    for line in lines(plain(log)):
        text = line.strip()
        if match := _RUNNING.match(text):
            running = match["name"]
        elif match := _SUM.search(text):
            name = text.rpartition(" in ")[2].strip().rstrip(".:;") if " in " in text else running
            bad = int(match["failures"]) + int(match["errors"])
            good = Status.SKIPPED if int(match["skipped"]) else Status.PASSED
            if name:
                yield Result(name, Status.FAILED if bad else good)
            running = ""


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
