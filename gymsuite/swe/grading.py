"""Makes a verdict of test results, by the rule that a row's data set goes by."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from enum import StrEnum
from typing import NamedTuple

from gymsuite.swe.parsers.results import Parsed, Status
from gymsuite.swe.parsers.text import folded, timeless
from gymsuite.swe.resolving import Names
from gymsuite.swe.rows import Row, Rule

_WELL = frozenset({Status.PASSED, Status.XFAIL, Status.XPASS})
_KEPT = _WELL | {Status.SKIPPED}
_BAD = frozenset({Status.FAILED, Status.ERROR})
_REPORTED = frozenset({Status.PASSED, Status.FAILED, Status.ERROR})


class Resolution(StrEnum):
    """SWE-bench's three grades."""

    FULL = "RESOLVED_FULL"
    PARTIAL = "RESOLVED_PARTIAL"
    NO = "RESOLVED_NO"


class Split(NamedTuple):
    """The named tests of one column, by whether they came out as they should."""

    success: tuple[str, ...] = ()
    failure: tuple[str, ...] = ()

    @property
    def share(self) -> float:
        """The share of success; 1 where no test is named."""
        total = len(self.success) + len(self.failure)
        return len(self.success) / total if total else 1.0


class Verdict(NamedTuple):
    """What the tests say of a patch.

    `invalid` says why the results mean nothing: then the patch is unresolved, and it may not be the
    patch's fault. `because` says what else than a named test decided. `notes` name what a person
    should look at.
    """

    fail_to_pass: Split = Split()
    pass_to_pass: Split = Split()
    resolution: Resolution = Resolution.NO
    invalid: str = ""
    because: str = ""
    notes: tuple[str, ...] = ()

    @property
    def resolved(self) -> bool:
        """Whether the patch solves the problem and breaks nothing."""
        return self.resolution == Resolution.FULL and not self.invalid


def grade(row: Row, parsed: Parsed, *, waived: Collection[str] = ()) -> Verdict:
    """Grade results, wherever they come from. Tests in `waived` are not looked at."""
    names = Names(parsed)
    right_now, right_still = _JUDGES[row.rule]
    fixed = _split([name for name in row.fail_to_pass if name not in waived], names, right_now)
    kept = _split([name for name in row.pass_to_pass if name not in waived], names, right_still)
    because = _more(row, parsed, waived)
    resolution = _resolution(fixed, kept, because=because)
    return Verdict(fixed, kept, resolution, because=because, notes=names.notes())


def _resolution(fail_to_pass: Split, pass_to_pass: Split, *, because: str) -> Resolution:
    if because or pass_to_pass.share < 1:
        return Resolution.NO
    if fail_to_pass.share == 1:
        return Resolution.FULL
    return Resolution.PARTIAL if fail_to_pass.share else Resolution.NO


Judge = Callable[[str | None], bool]


def _in(statuses: Collection[str]) -> Judge:
    return lambda status: status in statuses


def _not_in(statuses: Collection[str]) -> Judge:
    return lambda status: status not in statuses


# SWE-bench-Live's own reader of pytest calls all a failure that neither passed nor was skipped.
_SEEN_FAILING = _BAD | {Status.XFAIL}
_PASSED = _in({Status.PASSED, Status.XPASS})
_JUDGES: Mapping[Rule, tuple[Judge, Judge]] = {
    Rule.PASS_AND_FAIL: (_in(_WELL), _in(_KEPT)),
    Rule.FAIL_ONLY: (_not_in(_BAD), _not_in(_BAD)),
    Rule.NONE_FAILING: (_PASSED, _not_in(_SEEN_FAILING)),
    Rule.ALL_PASSED: (_in({Status.PASSED}), _in({Status.PASSED})),
    Rule.SAME_PASSED: (_in({Status.PASSED}), _in({Status.PASSED})),
    Rule.SAME_MAP: (_in(_WELL), _in(_KEPT)),
    Rule.NO_REGRESSION: (_PASSED, _PASSED),
}
"""For each rule, which statuses are right in FAIL_TO_PASS and in PASS_TO_PASS; None is absent."""


def _split(tests: Sequence[str], names: Names, right: Judge) -> Split:
    outcomes = [(name, right(names.status(name))) for name in tests]
    return Split(
        tuple(name for name, ok in outcomes if ok), tuple(name for name, ok in outcomes if not ok)
    )


def _more(row: Row, parsed: Parsed, waived: Collection[str]) -> str:
    """What the rule asks for beside the named tests; "" if it is so."""
    if row.rule == Rule.SAME_PASSED:
        return _same_passed(row, parsed, waived)
    if row.rule == Rule.SAME_MAP:
        return _same_map(row.expected, parsed, waived)
    if row.rule == Rule.NO_REGRESSION:
        return _no_regression(row.recorded, parsed.statuses, waived)
    return ""


def _as_named(parsed: Parsed) -> Iterator[tuple[str, str]]:
    """The results under the names that the data set uses."""
    renamed = {name for names in parsed.keys.values() for name in names}
    names = Names(parsed)
    for key in parsed.keys:
        yield key, names.status(key) or ""
    for name, status in parsed.statuses.items():
        if name not in renamed:
            yield name, status


def _same_passed(row: Row, parsed: Parsed, waived: Collection[str]) -> str:
    named = {timeless(name).strip() for name in row.named_tests}
    also = sorted(
        name
        for name, status in _as_named(parsed)
        if status == Status.PASSED and timeless(name).strip() not in named and name not in waived
    )
    return f"{also[0]!r} passed and is not among the named tests" if also else ""


def _same_map(expected: Mapping[str, str], parsed: Parsed, waived: Collection[str]) -> str:
    want = {folded(name).split(" - ")[0]: status for name, status in expected.items()}
    have = {
        folded(name).split(" - ")[0]: status
        for name, status in _as_named(parsed)
        if status in _REPORTED
    }
    for name in sorted((want.keys() | have.keys()) - set(waived)):
        if want.get(name) != have.get(name):
            return f"{name!r}: {have.get(name, 'absent')}, not {want.get(name, 'absent')}"
    return ""


def _no_regression(
    recorded: Mapping[str, Mapping[str, str]], now: Mapping[str, str], waived: Collection[str]
) -> str:
    run, test = recorded.get("run", {}), recorded.get("test", {})
    if not now:
        return "no test has run"
    for name, status in now.items():
        if name in waived or status not in _BAD:
            continue
        before = test.get(name)
        if before == Status.PASSED:
            return f"{name!r} passed without the fix, and fails with it"
        if run.get(name) == Status.PASSED and before in {None, Status.SKIPPED}:
            return f"{name!r} passed without the test patch, and fails with the fix"
    fixed = any(
        status == Status.PASSED and test.get(name) != Status.PASSED for name, status in now.items()
    )
    return "" if fixed else "no test passes that did not pass before"
