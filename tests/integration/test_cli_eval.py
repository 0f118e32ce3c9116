"""`gymsuite eval` as a process: its figures, its exit codes, and what it leaves on disk."""

import json
import random
import shlex
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from gymsuite.runs.log import Key, read_rows
from tests.command_line import command, gymsuite, make_suite, variables
from tests.stub_model import Reply, completion, serve

_KEY = "sk-never-to-be-written-1234"


def _eval(folder: Path, *arguments: str | Path, **more: str) -> subprocess.CompletedProcess[str]:
    registry = make_suite(folder)
    return gymsuite("eval", "test/yes-v1", *arguments, "--registry", registry, cwd=folder, **more)


def _rows(run: Path) -> list[tuple[Key, bool]]:
    return [(row.key, row.score is not None) for _, row in read_rows(run / "rollouts.jsonl")]


def _everything_below(folder: Path) -> str:
    files = (path for path in folder.rglob("*") if path.is_file())
    return "\n".join(path.read_bytes().decode(errors="replace") for path in files)


def test_the_oracle_solves_everything(tmp_path: Path) -> None:
    done = _eval(tmp_path, "-a", "oracle", "-k", "2")
    assert done.returncode == 0
    assert "24/24" in done.stdout
    assert "oracle 24/24  solved 24  failed 0" in done.stderr
    (run,) = (tmp_path / "runs").iterdir()
    assert "oracle-test-yes-v1" in run.name
    assert f"run directory: runs/{run.name}" in done.stdout
    assert {key for key, _ in _rows(run)} == {
        Key("test/yes-v1", f"t{task}", repeat) for task in range(12) for repeat in range(2)
    }
    manifest = json.loads((run / "run.json").read_text())
    assert manifest["format_version"] == 1
    assert manifest["environments"]["test/yes-v1"]["tasks"] == 12
    assert manifest["machine"]["cpus"] > 0


def test_tasks_are_named_and_a_run_of_others_is_another_run(tmp_path: Path) -> None:
    arguments = ["-a", "oracle", "--task", "t7", "--task", "t2", "--out", "r"]
    assert _eval(tmp_path, *arguments).returncode == 0
    assert sorted(key.task for key, _ in _rows(tmp_path / "r")) == ["t2", "t7"]
    assert _eval(tmp_path, *arguments, "--resume").returncode == 0
    other = _eval(tmp_path, "-a", "oracle", "--task", "t7", "--out", "r", "--resume")
    assert other.returncode == 2
    assert "names was" in other.stderr


def test_json_is_one_object_and_nothing_else(tmp_path: Path) -> None:
    done = _eval(tmp_path, "test/also-v1", "-a", "noop", "-n", "3", "--out", "r", "--json")
    assert done.returncode == 0
    assert not done.stderr
    report = json.loads(done.stdout)
    assert report["run"] == "r"
    assert report.keys() >= {"mean_reward", "pass_at_1", "seconds", "cpu_seconds", "interval"}
    assert (report["solved"], report["scored"], report["failures"]) == (0, 6, 0)
    assert set(report["environments"]) == {"test/yes-v1", "test/also-v1"}
    assert report["environments"]["test/also-v1"]["mean_reward"] == 0.0
    assert json.loads((tmp_path / "r" / "report.json").read_text())["total"]["scored"] == 6


def test_a_directory_is_not_reused_by_accident(tmp_path: Path) -> None:
    assert _eval(tmp_path, "-a", "noop", "--out", "r").returncode == 0
    before = _everything_below(tmp_path / "r")
    again = _eval(tmp_path, "-a", "noop", "--out", "r")
    assert again.returncode == 2
    assert "--resume" in again.stderr
    assert _everything_below(tmp_path / "r") == before
    other = _eval(tmp_path, "-a", "oracle", "--out", "r", "--resume")
    assert other.returncode == 2
    assert "agent was 'noop' and is 'oracle'" in other.stderr


def test_a_model_plays(tmp_path: Path) -> None:
    replies = [
        completion(None, ("think", {"thought": "hm"}), usage={"prompt_tokens": 7}),
        completion(None, ("submit", {"answer": "yes"}), usage={"completion_tokens": 5}),
    ]
    with serve(lambda request, _: replies[len(request.body["messages"]) > 1]) as server:
        options = ["--model", "m", "--body", '{"top_k": 3}', "--temperature", "0"]
        done = _eval(
            tmp_path, "-a", "openai", *options, "--json", "--out", "r",
            OPENAI_BASE_URL=server.base_url, OPENAI_API_KEY=_KEY,
        )  # fmt: skip
    report = json.loads(done.stdout)
    assert (report["solved"], report["scored"]) == (12, 12)
    assert report["usage"]["input_tokens"] == 12 * 7
    assert report["usage"]["output_tokens"] == 12 * 5
    assert server.requests[0].headers["authorization"] == f"Bearer {_KEY}"
    assert server.requests[0].body["top_k"] == 3
    config = json.loads((tmp_path / "r" / "run.json").read_text())["agent_config"]
    assert (config["model"], config["temperature"]) == ("m", 0.0)


def test_secrets_are_never_written(tmp_path: Path) -> None:
    def answer(request: Any, number: int) -> Reply:
        if number % 2:
            return completion(None, ("submit", {"answer": "yes"}))
        said = f"bad key {_KEY} or password hunter2-hunter2 or {request.headers}"
        return Reply({"error": {"message": said}}, 401)

    with serve(answer) as server:
        base_url = server.base_url.replace("//", "//me:hunter2-hunter2@") + "?sig=query-secret"
        done = _eval(
            tmp_path, "-a", "openai", "--model", "m", "--base-url", base_url,
            "--api-key-env", "MY_KEY", "-n", "4", "-c", "1", MY_KEY=_KEY,
        )  # fmt: skip
    assert done.returncode == 3
    assert len(server.requests) == 4
    written = _everything_below(tmp_path) + done.stdout + done.stderr
    assert "bad key ***" in written
    for secret in (_KEY, "hunter2", "query-secret"):
        assert secret not in written
    assert "--resume" in done.stderr


def test_an_unreachable_model_is_no_reward_of_zero(tmp_path: Path) -> None:
    url = "http://127.0.0.1:9/v1"
    options = ["-a", "openai", "--model", "m", "--base-url", url, "-n", "2", "--attempts", "1"]
    done = _eval(tmp_path, *options, "--out", "r")
    assert done.returncode == 3
    assert "is the server running" in done.stdout
    assert "2 failed (model), no score" in done.stdout
    report = json.loads((tmp_path / "r" / "report.json").read_text())["total"]
    assert (report["mean_reward"], report["scored"], report["failures"]) == (None, 0, 2)
    (again,) = [line for line in done.stderr.splitlines() if "try them again" in line]
    resume = shlex.split(again.partition(": gymsuite ")[2])
    assert {"--resume", "--retry-failed"} < set(resume)
    with serve(lambda *_: completion(None, ("submit", {"answer": "yes"}))) as server:
        resume[resume.index("--base-url") + 1] = server.base_url
        assert gymsuite(*resume, cwd=tmp_path).returncode == 0
    report = json.loads((tmp_path / "r" / "report.json").read_text())["total"]
    assert (report["mean_reward"], report["scored"], report["failures"]) == (1.0, 2, 0)


def test_an_agent_of_ones_own_lies_in_the_current_directory(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(
        "from gymsuite import Message\n"
        "class Agent:\n"
        "    def __init__(self, task): pass\n"
        "    async def act(self, observation): return Message(role='assistant', content='yes')\n"
    )
    assert "12/12" in _eval(tmp_path, "-a", "mine:Agent").stdout


def test_a_replay_scores_what_the_run_scored(tmp_path: Path) -> None:
    _eval(tmp_path, "-a", "oracle", "-n", "5", "--out", "first")
    done = _eval(tmp_path, "-a", "replay", "--replay", "first", "-n", "5", "--json", "--out", "r")
    assert json.loads(done.stdout)["solved"] == 5


def test_a_replay_does_not_finish_an_answer_that_was_cut_off(tmp_path: Path) -> None:
    with serve(lambda *_: completion("yes", finish_reason="length")) as server:
        model = ["--model", "m", "--base-url", server.base_url]
        first = _eval(tmp_path, "-a", "openai", *model, "--json", "--out", "first")
    again = _eval(tmp_path, "-a", "replay", "--replay", "first", "--json", "--out", "again")
    for done in (first, again):
        report = json.loads(done.stdout)
        assert (report["solved"], report["scored"], report["failures"]) == (0, 12, 0)


def _start(folder: Path, *arguments: str, seconds: float) -> subprocess.Popen[str]:
    registry = make_suite(folder)
    line = command("eval", "test/yes-v1", "-a", "oracle", "-k", "4", "-c", "4", *arguments)
    return subprocess.Popen(
        [*line, "--registry", str(registry)],
        cwd=folder,
        env=variables(THINK_SECONDS=str(seconds)),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def _wait_for_rows(run: Path, count: int) -> None:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        if len(_rows(run)) >= count:
            return
        time.sleep(0.01)
    raise AssertionError("the run did not get going")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_interrupted_it_keeps_what_is_finished_and_says_how_to_go_on(
    tmp_path: Path, number: signal.Signals
) -> None:
    process = _start(tmp_path, "--out", "r", seconds=0.2)
    _wait_for_rows(tmp_path / "r", 3)
    process.send_signal(number)
    stdout, stderr = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "Traceback" not in stderr
    assert not stdout
    kept = _rows(tmp_path / "r")
    assert 3 <= len(kept) < 48
    assert "not finished" in stderr
    resume = shlex.split(stderr.partition("To go on: gymsuite ")[2])
    done = gymsuite(*resume, cwd=tmp_path)
    assert done.returncode == 0
    assert "48/48" in done.stdout
    rows = _rows(tmp_path / "r")
    assert rows[: len(kept)] == kept
    assert len(rows) == len({key for key, _ in rows}) == 48


def test_killed_at_any_moment_every_rollout_is_made_exactly_once(tmp_path: Path) -> None:
    rng = random.Random(3)
    finished: list[tuple[Key, bool]] = []
    for _ in range(4):
        process = _start(tmp_path, "--out", "r", "--resume", seconds=0.05)
        _wait_for_rows(tmp_path / "r", len(finished) + 1)
        time.sleep(rng.uniform(0, 0.1))
        process.kill()
        process.communicate()
        rows = _rows(tmp_path / "r")
        assert rows[: len(finished)] == finished
        finished = rows
        with (tmp_path / "r" / "rollouts.jsonl").open("ab") as file:
            file.write(b'{"environment": "test/yes-v1", "ta')
    done = gymsuite(
        "eval", "test/yes-v1", "-a", "oracle", "-k", "4", "--out", "r", "--resume",
        "--registry", "registry.yaml", "--json", cwd=tmp_path,
    )  # fmt: skip
    assert done.returncode == 0
    assert json.loads(done.stdout)["solved"] == 48
    rows = _rows(tmp_path / "r")
    assert rows[: len(finished)] == finished
    assert len(rows) == len({key for key, _ in rows}) == 48


def test_a_full_disk_is_said_and_loses_nothing(tmp_path: Path) -> None:
    registry = make_suite(tmp_path)
    line = command("eval", "test/yes-v1", "-a", "oracle", "--out", "r", "--registry", registry)
    limited = ["bash", "-c", f"ulimit -f 8; exec {shlex.join(line)}"]
    done = subprocess.run(
        limited, cwd=tmp_path, env=variables(), capture_output=True, text=True, check=False
    )
    assert done.returncode == 3
    assert "Traceback" not in done.stderr
    assert "make room" in done.stderr
    kept = _rows(tmp_path / "r")
    assert 0 < len(kept) < 12
    again = _eval(tmp_path, "-a", "oracle", "--out", "r", "--resume", "--json")
    assert json.loads(again.stdout)["solved"] == 12
    assert _rows(tmp_path / "r")[: len(kept)] == kept


def test_output_that_cannot_be_written_loses_no_rollout(tmp_path: Path) -> None:
    registry = make_suite(tmp_path)
    line = command("eval", "test/yes-v1", "-a", "oracle", "--registry", registry, "--out", "r")
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            line, stdout=full, stderr=-1, cwd=tmp_path, env=variables(), text=True, check=False
        )
    assert done.returncode == 3
    assert "error: No space left on device" in done.stderr
    assert "Traceback" not in done.stderr
    assert len(_rows(tmp_path / "r")) == 12


def test_retry_failed_without_a_run_to_go_on_with_is_refused(tmp_path: Path) -> None:
    done = _eval(tmp_path, "-a", "oracle", "--retry-failed")
    assert done.returncode == 2
    assert "--retry-failed goes with --resume" in done.stderr


def test_a_narrow_interval_keeps_its_two_ends(tmp_path: Path) -> None:
    (tmp_path / "mostly.py").write_text(
        "from gymsuite import Message\n"
        "class Agent:\n"
        "    def __init__(self, task): self.lucky = task.id == 't0' and not Agent.told\n"
        "    told = False\n"
        "    async def act(self, observation):\n"
        "        Agent.told = True\n"
        "        return Message(role='assistant', content='yes' if self.lucky else 'no')\n"
    )
    done = _eval(tmp_path, "-a", "mostly:Agent", "-k", "80", "--concurrency", "1")
    assert "1/960" in done.stdout
    assert "0.0-0.3 %" in " ".join(done.stdout.split())
