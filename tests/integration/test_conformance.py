"""Each provider keeps every promise of the suite that any provider has to pass."""

import pytest

from gymsuite import SandboxSpec
from gymsuite.sandbox.conformance import CASES, Case, Verdict, run

from .conftest import Opened

SPEC = SandboxSpec(image="fixture")


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.group}: {case.name}")
def test_promise(opened: Opened, case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GYMSUITE_TEST_SECRET", "hunter2")
    [result] = opened.runner.run(run(opened.open, SPEC, cases=[case]))
    if result.verdict == Verdict.NOT_ENFORCED:
        pytest.skip(result.reason)
    if result.verdict == Verdict.NOT_OFFERED and "cannot change users" in result.reason:
        pytest.skip(f"this user cannot limit who commands are: {result.reason}")
    assert result.verdict == Verdict.PASSED, result.reason
