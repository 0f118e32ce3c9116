"""The append-only record of a run survives what happens to it."""

import random
import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from gymsuite import Failure, Message, Rollout, Score, Submission
from gymsuite.runs.log import RolloutLog, StoreError, read_rollout, read_rows


def _rollout(repeat: int = 0, text: str = "x") -> Rollout:
    return Rollout(
        id=str(repeat),
        environment="test/e-v1",
        task="t",
        seed=1,
        repeat=repeat,
        messages=(Message(role="user", content=text),),
        submission=Submission(files={"a": b"\xff\x00"}),
        score=Score(reward=1.0, passed=True, details="fine"),
    )


def _repeats(path: Path) -> list[int]:
    return [row.repeat for _, row in read_rows(path)]


@contextmanager
def _largest_file(size: int) -> Iterator[None]:
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_what_is_appended_is_there_at_once(tmp_path: Path) -> None:
    path = tmp_path / "rollouts.jsonl"
    with RolloutLog(path) as log:
        for repeat in range(3):
            log.append(_rollout(repeat))
            assert _repeats(path) == list(range(repeat + 1))


def test_a_line_is_read_back_whole(tmp_path: Path) -> None:
    path = tmp_path / "rollouts.jsonl"
    with RolloutLog(path) as log:
        log.append(_rollout(0))
        log.append(_rollout(1, "line\nbreak\u2028 and \r"))
    (_, (offset, row)) = read_rows(path)
    assert row.score is not None
    assert read_rollout(path, offset) == _rollout(1, "line\nbreak\u2028 and \r")


def test_a_log_that_is_not_there_is_empty(tmp_path: Path) -> None:
    assert _repeats(tmp_path / "none") == []


@pytest.mark.parametrize("seed", range(20))
def test_a_torn_last_line_costs_that_line_only(tmp_path: Path, seed: int) -> None:
    path = tmp_path / "rollouts.jsonl"
    with RolloutLog(path) as log:
        log.append(_rollout(0))
        log.append(_rollout(1))
        whole = path.stat().st_size
        log.append(_rollout(2, "long " * 1000))
    torn = random.Random(seed).randrange(whole, path.stat().st_size)
    with path.open("r+b") as file:
        file.truncate(torn)
    assert _repeats(path) == [0, 1]
    with RolloutLog(path) as log:
        assert path.stat().st_size == whole
        log.append(_rollout(3))
    assert _repeats(path) == [0, 1, 3]


def test_a_first_line_that_is_torn_leaves_an_empty_log(tmp_path: Path) -> None:
    path = tmp_path / "rollouts.jsonl"
    path.write_bytes(b"x" * (3 << 20))
    with RolloutLog(path):
        assert path.stat().st_size == 0


@pytest.mark.parametrize("damage", [b'{"environment": "te\n', b"\x00\x00\n", b"\n", b"{}\n"])
def test_damage_in_the_middle_says_where(tmp_path: Path, damage: bytes) -> None:
    path = tmp_path / "rollouts.jsonl"
    with RolloutLog(path) as log:
        log.append(_rollout(0))
    with path.open("ab") as file:
        file.write(damage)
    with RolloutLog(path) as log:
        log.append(_rollout(1))
    with pytest.raises(StoreError, match=r"rollouts\.jsonl:2: damaged"):
        _repeats(path)


def test_a_full_disk_keeps_what_is_whole(tmp_path: Path) -> None:
    path = tmp_path / "rollouts.jsonl"
    with RolloutLog(path) as log:
        log.append(_rollout(0))
        size = path.stat().st_size
        with _largest_file(size + 100), pytest.raises(StoreError, match="make room") as caught:
            log.append(_rollout(1))
        assert str(path) in str(caught.value)
        assert path.stat().st_size == size
        log.append(_rollout(2))
    assert _repeats(path) == [0, 2]


def test_a_log_that_cannot_be_opened_is_named(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match=f"cannot write {tmp_path}: Is a directory"):
        RolloutLog(tmp_path)
    with pytest.raises(StoreError, match=f"cannot read {tmp_path}: Is a directory"):
        list(read_rows(tmp_path))


def test_a_failed_attempt_is_kept_like_any_other(tmp_path: Path) -> None:
    path = tmp_path / "rollouts.jsonl"
    failure = Failure(kind="sandbox", stage="reset", message="gone")
    with RolloutLog(path) as log:
        log.append(_rollout().model_copy(update={"score": None, "failure": failure}))
    ((_, row),) = read_rows(path)
    assert row.score is None
    assert row.failure == failure
