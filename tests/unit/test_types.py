import math

import pytest
from pydantic import ValidationError

from gymsuite import (
    Failure,
    Message,
    Rollout,
    SandboxSpec,
    Score,
    Submission,
    Task,
    ToolCall,
)
from gymsuite.types import ImagePart, TextPart

BASE = {"id": "r", "environment": "test/x-v1", "task": "t", "seed": 0}
SCORE = Score(reward=1.0, passed=True)
FAILURE = Failure(kind="sandbox", stage="reset", message="gone")


@pytest.mark.parametrize("outcome", [{}, {"score": SCORE, "failure": FAILURE}])
def test_a_rollout_has_exactly_one_of_score_and_failure(outcome: dict[str, object]) -> None:
    with pytest.raises(ValidationError, match="either a score or a failure"):
        Rollout.model_validate(BASE | outcome)


@pytest.mark.parametrize("outcome", [{"score": SCORE}, {"failure": FAILURE}])
def test_a_rollout_survives_json(outcome: dict[str, object]) -> None:
    submission = Submission(files={"a": b"\xff\x00"}, patch=b"\xfe")
    rollout = Rollout.model_validate(BASE | outcome | {"submission": submission})
    assert Rollout.model_validate_json(rollout.model_dump_json()) == rollout


@pytest.mark.parametrize("reward", [float("nan"), float("inf"), float("-inf")])
def test_a_reward_is_finite(reward: float) -> None:
    with pytest.raises(ValidationError, match="finite"):
        Score(reward=reward, passed=False)
    with pytest.raises(ValidationError, match="finite"):
        Score(reward=0.0, passed=False, metrics={"m": reward})


def test_the_text_of_a_message_leaves_pictures_out() -> None:
    parts = (TextPart(text="a"), ImagePart(media_type="image/png", data=b"x"), TextPart(text="b"))
    assert Message(role="user", content=parts).text == "ab"


def test_hidden_fields_do_not_show_in_a_repr() -> None:
    task = Task(id="t", prompt="p", hidden={"k": "SECRET"}, solution=(ToolCall(name="SECRET"),))
    assert "SECRET" not in repr(task)


def nested(depth: int) -> list[object]:
    inner: list[object] = []
    for _ in range(depth):
        inner = [inner]
    return inner


@pytest.mark.parametrize(
    "value",
    [nested(200), nested(5000), 10**5000, b"\xff", {1}, object()],
    ids=["deep", "deeper", "huge", "bytes", "set", "object"],
)
def test_arguments_that_no_record_could_hold_are_unreadable(value: object) -> None:
    call = ToolCall(name="t", arguments={"x": value})
    assert call.arguments == {}
    assert call.error is not None
    assert "too deep, too large or no JSON" in call.error


def test_what_a_model_said_can_always_be_recorded() -> None:
    bad = "a\ud800b"
    call = ToolCall(id=bad, name=bad, arguments={bad: [bad], "deep": nested(150)})
    message = Message(role="assistant", content=bad, reasoning=bad, tool_calls=(call,))
    rollout = Rollout.model_validate(BASE | {"score": SCORE, "messages": (message,)})
    assert rollout.messages[0].content == "a?b"
    assert call.arguments["a?b"] == ["a?b"]
    assert Rollout.model_validate_json(rollout.model_dump_json()) == rollout


@pytest.mark.parametrize(
    ("field", "value", "right"),
    [
        ("memory_bytes", 1, "greater than or equal to 16777216"),
        ("memory_bytes", -1, "greater than or equal to 16777216"),
        ("cpus", 0, "greater than or equal to 0.01"),
        ("cpus", math.nan, "a finite number"),
        ("cpus", math.inf, "a finite number"),
        ("pids", 0, "greater than or equal to 4"),
        ("pids", 1 << 40, "less than or equal to 4194304"),
        ("disk_bytes", 0, "greater than or equal to 1048576"),
        ("inodes", 1, "greater than or equal to 256"),
        ("inodes", 10**30, "less than or equal to 1099511627776"),
        ("lifetime_seconds", 0, "greater than 0"),
        ("lifetime_seconds", math.nan, "a finite number"),
        ("workdir", "", "right is an absolute path such as '/workspace'"),
        ("workdir", "here", "no directory for commands: 'here'"),
        ("workdir", "/a/../b", r"without '\.\.'"),
        ("workdir", "/a\0b", "no directory for commands"),
        ("workdir", "/" + "a" * 256, "no directory for commands"),
        ("workdir", "/a" * 1000, "at most 1024 characters"),
        ("env", {"A=B": "x"}, "no variable: 'A=B'"),
        ("env", {"": "x"}, "a name has no '='"),
        ("env", {"A": "x\0y"}, "neither has a NUL"),
    ],
)
def test_a_sandbox_that_could_never_run_is_refused_with_what_could(
    field: str, value: object, right: str
) -> None:
    with pytest.raises(ValidationError, match=f"{field}\n.*({right})"):
        SandboxSpec.model_validate({"image": "base", field: value})


@pytest.mark.parametrize("name", ["a b", "*", "https://example.org", "a.org:0", "a.org:65536"])
def test_a_host_that_could_never_be_reached_is_refused_with_what_could(name: str) -> None:
    with pytest.raises(ValidationError, match="right are 'example.org'"):
        SandboxSpec(image="base", network=(name,))
    assert SandboxSpec(image="base", network=("A.org:65535",)).network == ("a.org:65535",)
