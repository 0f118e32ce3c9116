"""What hostile agents try comes to what is written beside it, on either provider."""

import pytest

from gymsuite import SandboxSpec
from gymsuite.sandbox.conformance import Result, Verdict
from gymsuite.sandbox.conformance.abuse import ATTACKS, strike

from .conftest import Opened

SPEC = SandboxSpec(image="fixture")


@pytest.fixture(scope="module")
def results(opened: Opened, request: pytest.FixtureRequest) -> dict[str, Result]:
    """What became of each attack: those that share a sandbox come one after the other."""
    names = {item.callspec.params.get("name") for item in request.session.items
             if isinstance(item, pytest.Function) and hasattr(item, "callspec")}  # fmt: skip
    attacks = [attack for attack in ATTACKS if attack.name in names]
    found = opened.runner.run(strike(opened.open, SPEC, attacks))
    return {result.name: result for result in found}


@pytest.mark.parametrize("name", [attack.name for attack in ATTACKS])
def test_attack(results: dict[str, Result], name: str) -> None:
    result = results[name]
    if result.verdict == Verdict.NOT_ENFORCED:
        pytest.skip(result.reason)
    assert result.verdict == Verdict.PASSED, result.reason


@pytest.mark.parametrize("name", ["the next sandbox is as new", "this machine is as it was"])
def test_after_all(results: dict[str, Result], name: str) -> None:
    assert results[name].verdict == Verdict.PASSED, results[name].reason
