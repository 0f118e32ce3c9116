"""`gymsuite verify` scores stored submissions again."""

import json
from pathlib import Path

from tests.command_line import ENVIRONMENT, gymsuite, make_suite


def _make_run(folder: Path, agent: str = "oracle") -> Path:
    registry = make_suite(folder)
    arguments = ["eval", "test/yes-v1", "-a", agent, "--out", "r"]
    assert gymsuite(*arguments, "--registry", registry, cwd=folder).returncode == 0
    return registry


def _verifier(line: str) -> str:
    return ENVIRONMENT.replace(
        "    passed = submission.answer", f"    {line}\n    passed = submission.answer"
    )


def test_what_was_scored_scores_the_same_again(tmp_path: Path) -> None:
    registry = _make_run(tmp_path)
    rollouts = (tmp_path / "r" / "rollouts.jsonl").read_bytes()
    done = gymsuite("verify", "r", "--registry", registry, cwd=tmp_path)
    assert done.returncode == 0
    assert "12 agree, 0 disagree" in done.stdout
    assert (tmp_path / "r" / "rollouts.jsonl").read_bytes() == rollouts
    (written,) = (tmp_path / "r").glob("verification-*.jsonl")
    rows = [json.loads(line) for line in written.read_text().splitlines()]
    assert {(row["outcome"], row["again"]["reward"]) for row in rows} == {("agreed", 1.0)}


def test_a_score_that_changes_is_a_no(tmp_path: Path) -> None:
    registry = _make_run(tmp_path)
    make_suite(tmp_path, _verifier("if task.id == 't3': return Score(reward=0.5, passed=False)"))
    done = gymsuite("verify", "r", "--registry", registry, cwd=tmp_path)
    assert done.returncode == 1
    assert "test/yes-v1 t3 #0: stored 1, now 0.5" in done.stdout
    assert "11 agree, 1 disagree" in done.stdout


def test_a_verifier_that_fails_is_no_disagreement(tmp_path: Path) -> None:
    registry = _make_run(tmp_path)
    make_suite(tmp_path, _verifier("if task.id == 't3': raise OSError('gone')"))
    done = gymsuite("verify", "r", "--json", "--registry", registry, cwd=tmp_path)
    assert done.returncode == 3
    found = json.loads(done.stdout)
    assert (found["agreed"], found["disagreed"], found["failed"]) == (11, 0, 1)
    assert "gone" in found["last_problem"]


def test_a_task_that_has_changed_is_not_compared(tmp_path: Path) -> None:
    registry = _make_run(tmp_path)
    make_suite(tmp_path, ENVIRONMENT.replace("Say yes, {n}.", "Say yes, please, {n % 6}."))
    done = gymsuite("verify", "r", "--json", "--registry", registry, cwd=tmp_path)
    assert json.loads(done.stdout)["changed"] == 12
    assert done.returncode == 1, "nothing was confirmed"
    make_suite(tmp_path, ENVIRONMENT.replace("{n}.", "{n}{'' if n else '!'}."))
    done = gymsuite("verify", "r", "--json", "--registry", registry, cwd=tmp_path)
    found = json.loads(done.stdout)
    assert (found["changed"], found["agreed"], done.returncode) == (1, 11, 0)


def test_a_run_without_scores_cannot_be_verified(tmp_path: Path) -> None:
    registry = make_suite(tmp_path)
    options = ["-a", "json:loads", "-n", "1", "--out", "r", "--registry", str(registry)]
    assert gymsuite("eval", "test/yes-v1", *options, cwd=tmp_path).returncode == 3
    done = gymsuite("verify", "r", "--registry", registry, cwd=tmp_path)
    assert done.returncode == 2
    assert "no scored rollouts" in done.stderr
