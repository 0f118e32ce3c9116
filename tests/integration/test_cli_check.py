"""`gymsuite check` finds the environments that do not keep the promises."""

import json
from pathlib import Path

import pytest

from tests.command_line import ENVIRONMENT, gymsuite, make_suite

_LEAVE_A_PROCESS = (
    "import subprocess; subprocess.Popen(['sleep', '9'], stdout=-3, stderr=-3)  # -3 is DEVNULL"
)


def _check(folder: Path, environment: str = ENVIRONMENT) -> tuple[int, dict[str, str]]:
    registry = make_suite(folder, environment)
    done = gymsuite("check", "test/yes-v1", "--json", "--registry", registry, cwd=folder)
    findings = json.loads(done.stdout)["environments"]["test/yes-v1"]
    assert len(findings) == 10
    return done.returncode, {f["promise"]: f["outcome"] for f in findings}


def test_an_honest_environment_keeps_its_promises(tmp_path: Path) -> None:
    code, found = _check(tmp_path)
    assert code == 0
    assert set(found.values()) <= {"kept", "moot"}
    assert found["the solution passes"] == "kept"
    assert found["nothing is left behind"] == "kept"


@pytest.mark.parametrize(
    ("before", "after", "promise"),
    [
        ('{"answer": "yes"}', '{"answer": "no"}', "the solution passes"),
        ("solution=solution", "solution=()", "the solution passes"),
        ('submission.answer == "yes"', "True", "doing nothing fails"),
        (
            "reward=float(passed)",
            "reward=__import__('random').random()",
            "a stored submission scores the same again",
        ),
        (
            'prompt=f"Say yes, {n}."',
            'prompt="Say yes. a long secret that nobody sees"',
            "nothing hidden is ever observed",
        ),
        (
            '    return "thought about',
            f"    {_LEAVE_A_PROCESS}\n" + '    return "thought about',
            "nothing is left behind",
        ),
    ],
)
def test_a_broken_promise_is_found(tmp_path: Path, before: str, after: str, promise: str) -> None:
    assert before in ENVIRONMENT
    code, found = _check(tmp_path, ENVIRONMENT.replace(before, after))
    assert code == 1
    assert found[promise] == "broken"


def test_a_world_that_breaks_leaves_it_open(tmp_path: Path) -> None:
    line = "    from gymsuite import SandboxError\n    raise SandboxError('no room')\n"
    environment = ENVIRONMENT.replace("    await asyncio.sleep", f"{line}    await asyncio.sleep")
    code, found = _check(tmp_path, environment)
    assert code == 3
    assert found["the solution passes"] == "unknown"


def test_all_checks_every_environment_and_shows_a_table(tmp_path: Path) -> None:
    registry = make_suite(tmp_path)
    done = gymsuite("check", "--all", "-n", "2", "--registry", registry, cwd=tmp_path)
    assert done.returncode == 0
    assert done.stdout.count("the solution passes") == 2
    assert "test/also-v1" in done.stdout


def test_the_gate_of_an_environment_is_tried_and_its_tasks_replayed(tmp_path: Path) -> None:
    done = gymsuite("check", "tools/office-v1", "-n", "2", "--json", cwd=tmp_path)
    findings = json.loads(done.stdout)["environments"]["tools/office-v1"]
    found = {f["promise"]: f["outcome"] for f in findings}
    assert done.returncode == 0
    assert len(found) == 12
    assert found["the task gate finds no fault"] == "kept"
    assert found["tasks play the same in other processes and places"] == "kept"
