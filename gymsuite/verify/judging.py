"""Compares a test run with what is expected of it."""

from collections.abc import Collection, Mapping
from typing import NamedTuple

from gymsuite.types import Model
from gymsuite.verify.pytest_run import PytestRun


class Expectations(Model):
    """What the tests of a task do when the bug is repaired, as measured with `python`.

    `files` are the test files to run and `unsealed` the sites in them that stay as written.
    `fail_to_pass` and `pass_to_pass` map a test (`file::Class::function[position]`) to the digest
    of the values it should see, or "" where it has no sealed site. `dropped` are tests that are
    collected and say nothing: flaky ones, skipped ones, failing ones. `seconds` is how long one
    run took.
    """

    python: str
    seconds: float
    files: tuple[str, ...]
    unsealed: Mapping[str, tuple[int, ...]] = {}
    fail_to_pass: Mapping[str, str]
    pass_to_pass: Mapping[str, str]
    dropped: tuple[str, ...] = ()

    def passes(self, run: PytestRun, test: str) -> bool:
        """Whether a test passed and saw the right values: it has to say both."""
        digest = self.fail_to_pass.get(test, self.pass_to_pass.get(test))
        result = run.results.get(test)
        return result is not None and (result.status, result.digest) == ("passed", digest)


class Verdict(NamedTuple):
    """Which tests passed; `forged` and `reason` say in words what was wrong, or are ""."""

    fail_to_pass: int
    pass_to_pass: int
    forged: str
    reason: str


def judge(
    run: PytestRun, expected: Expectations, canaries: Mapping[str, Collection[str]]
) -> Verdict:
    """Count the tests that passed. `canaries` are the names planted in each file."""
    planted = {f"{file}::{name}[0]" for file, names in canaries.items() for name in names}
    forged = run.disturbed or _dead_canary(run, planted)
    if forged:
        return Verdict(0, 0, forged, f"the run was tampered with: {forged}")
    known = {*expected.fail_to_pass, *expected.pass_to_pass, *expected.dropped}
    passed = [
        {test for test in tests if expected.passes(run, test)}
        for tests in (expected.fail_to_pass, expected.pass_to_pass)
    ]
    return Verdict(len(passed[0]), len(passed[1]), "", _reason(run, known, planted, expected))


def _dead_canary(run: PytestRun, planted: set[str]) -> str:
    """Say how a canary did not fail, in a file that ran."""
    ran = {test.partition("::")[0] for test in run.collected}
    for test in sorted(planted):
        result = run.results.get(test)
        if result is not None and result.status != "failed":
            return f"a test that must fail came out as {result.status!r}"
        if test not in run.collected and test.partition("::")[0] in ran:
            return "a test that must fail was not collected"
        if result is None and test in run.collected and run.finished:
            return "a test that must fail did not run"
    return ""


def _reason(run: PytestRun, known: set[str], planted: set[str], expected: Expectations) -> str:
    if run.timed_out:
        return "the tests did not end in time"
    if not run.finished:
        return "the test process ended before its tests did"
    collected = set(run.collected) - planted
    if extra := sorted(collected - known):
        return f"{len(extra)} tests that are not known, such as {extra[0]}"
    wanted = {*expected.fail_to_pass, *expected.pass_to_pass}
    if missing := sorted(wanted - collected):
        return f"{len(missing)} tests were not collected, such as {missing[0]}"
    if failed := sorted(test for test in wanted if not expected.passes(run, test)):
        return f"{len(failed)} tests did not pass, such as {failed[0]}"
    return ""
