"""How data that is wrong is described."""

import pytest
from pydantic import ValidationError

from gymsuite import Limits, Score
from gymsuite.complaints import complaints


def said(kind: type[Limits | Score], data: object) -> str:
    with pytest.raises(ValidationError) as caught:
        kind.model_validate(data)
    return complaints(caught.value, "the score")


def test_each_fault_has_a_place_and_the_data_is_not_repeated() -> None:
    assert said(Score, {"reward": "a secret", "passed": True}).startswith("reward: Input should be")
    assert "secret" not in said(Score, {"reward": "a secret", "passed": True})
    assert said(Score, 1).startswith("the score: ")
    wrong = {"reward": float("nan"), "passed": True}
    assert said(Score, wrong) == "reward: must be a finite number"


def test_many_faults_are_counted() -> None:
    text = said(Limits, dict.fromkeys(Limits.model_fields, 0))
    assert text.endswith("; 4 more")
    assert text.count(";") == 3
