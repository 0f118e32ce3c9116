"""From records to a verdict: nothing but the expected tests with the right values is a pass."""

import json
from collections.abc import Sequence

import pytest

from gymsuite import ExecResult, VerifierError
from gymsuite.verify.canaries import plant
from gymsuite.verify.judging import Expectations, Verdict, judge
from gymsuite.verify.pytest_run import PytestRun, parse

NONCE = "n0"
EXPECTED = Expectations(
    python="3.11.7",
    seconds=1,
    files=("t.py",),
    fail_to_pass={"t.py::f[0]": "right"},
    pass_to_pass={"t.py::p[0]": ""},
    dropped=("t.py::flaky[0]",),
)
CANARIES = {"t.py": ("bird",)}
F, P, FLAKY, BIRD = "t.py::f[0]", "t.py::p[0]", "t.py::flaky[0]", "t.py::bird[0]"
HONEST = (
    ("collected", [F, P, FLAKY, BIRD]),
    ("test", [F, "passed", "right"]),
    ("test", [P, "passed", ""]),
    ("test", [FLAKY, "failed", ""]),
    ("test", [BIRD, "failed", ""]),
    ("ended", [1, {}]),
)


def read(records: Sequence[tuple[str, object]], tail: bytes = b"") -> PytestRun:
    lines = [f"{NONCE} {json.dumps(record)}\n".encode() for record in records]
    head = f'{NONCE} ["started", "3.11.7"]\n'.encode()
    return parse(ExecResult(0, b"".join([head, *lines]) + tail, b""), NONCE)


def verdict(records: Sequence[tuple[str, object]], tail: bytes = b"") -> Verdict:
    return judge(read(records, tail), EXPECTED, CANARIES)


def without(*records: int) -> list[tuple[str, object]]:
    return [record for number, record in enumerate(HONEST) if number not in records]


def replaced(number: int, value: object) -> list[tuple[str, object]]:
    return [(k, value if n == number else v) for n, (k, v) in enumerate(HONEST)]


def test_an_honest_run_passes() -> None:
    assert verdict(HONEST) == Verdict(1, 1, "", "")


@pytest.mark.parametrize(
    ("record", "reason"),
    [
        ([F, "passed", "wrong"], "1 tests did not pass, such as t.py::f[0]"),
        ([F, "passed", ""], "1 tests did not pass, such as t.py::f[0]"),
        ([F, "skipped", "right"], "1 tests did not pass, such as t.py::f[0]"),
        ([F, "xfail", "right"], "1 tests did not pass, such as t.py::f[0]"),
        ([F, "failed", "right"], "1 tests did not pass, such as t.py::f[0]"),
    ],
)
def test_a_pass_is_both_a_status_and_the_right_values(record: object, reason: str) -> None:
    assert verdict(replaced(1, record)) == Verdict(0, 1, "", reason)


def test_a_test_that_disappears_is_not_a_pass() -> None:
    records = [("collected", [P, FLAKY, BIRD]), *without(0, 1)]

    assert verdict(records) == Verdict(0, 1, "", "1 tests were not collected, such as t.py::f[0]")


def test_a_test_that_nobody_knows_is_not_a_pass() -> None:
    records = [("collected", [F, P, FLAKY, BIRD, "t.py::new[0]"]), *without(0)]

    assert verdict(records).reason == "1 tests that are not known, such as t.py::new[0]"


def test_a_process_that_ends_early_has_passed_nothing_more() -> None:
    assert verdict(without(2, 3, 4, 5)) == Verdict(
        1, 0, "", "the test process ended before its tests did"
    )


@pytest.mark.parametrize(
    ("records", "forged"),
    [
        (replaced(4, [BIRD, "passed", ""]), "a test that must fail came out as 'passed'"),
        (replaced(4, [BIRD, "skipped", ""]), "a test that must fail came out as 'skipped'"),
        (without(4), "a test that must fail did not run"),
        (
            [("collected", [F, P, FLAKY]), *without(0, 4)],
            "a test that must fail was not collected",
        ),
        ([*HONEST, ("test", [F, "passed", "right"])], "a record behind the last one"),
        ([*HONEST[:2], HONEST[1], *HONEST[2:]], "two results for 't.py::f[0]'"),
        ([HONEST[0], ("test", ["t.py::x[0]", "passed", ""]), *HONEST[1:]], "not collected"),
        ([HONEST[0], ("collected", [F]), *HONEST[1:]], "a line that is no record"),
        ([("verdict", "passed"), *HONEST], "a line that is no record"),
    ],
)
def test_a_run_that_was_tampered_with_has_passed_nothing(
    records: Sequence[tuple[str, object]], forged: str
) -> None:
    found = verdict(records)

    assert (found.fail_to_pass, found.pass_to_pass) == (0, 0)
    assert forged in found.forged


@pytest.mark.parametrize(
    "tail", [b"PASSED t.py::f\n", b"n1 [1]\n", b"\xff\n", b"n0 {", b"n0 [[[[\n", b"\0" * 9]
)
def test_anything_else_on_the_channel_is_tampering(tail: bytes) -> None:
    assert verdict(HONEST, tail).forged


def test_output_that_was_cut_is_tampering() -> None:
    start = f'{NONCE} ["started", "3.11.7"]\n'.encode()
    run = parse(ExecResult(0, start, b"", truncated=True), NONCE)

    assert judge(run, EXPECTED, CANARIES).forged == "more output than any run sends"


def test_nothing_behind_a_disturbance_is_read() -> None:
    records = [HONEST[0], ("noise", None), *HONEST[1:]]

    assert not read(records).results


def test_a_run_that_hangs_is_scored_with_its_reason() -> None:
    start = f'{NONCE} ["started", "3.11.7"]\n'.encode()
    run = parse(ExecResult(137, start, b"", timed_out=True), NONCE)

    assert judge(run, EXPECTED, CANARIES) == Verdict(0, 0, "", "the tests did not end in time")


@pytest.mark.parametrize("stdout", [b"", b"sh: python: not found\n", b'other ["started", "3"]\n'])
def test_a_runner_that_did_not_start_is_a_failure_and_no_score(stdout: bytes) -> None:
    with pytest.raises(VerifierError, match="did not start"):
        parse(ExecResult(127, stdout, b"no python"), NONCE)


def test_canaries_have_new_names_each_time_and_all_fail() -> None:
    data = b"def test_one():\n    pass"
    first, second = plant(data), plant(data)
    space: dict[str, object] = {}
    exec(compile(first.data, "t.py", "exec"), space)  # noqa: S102 - a file of this test's own

    assert not {*first.names} & {*second.names}
    for name in first.names:
        test = space[name]
        assert callable(test)
        with pytest.raises((AssertionError, ValueError)):
            test()
