"""The command line over real sandboxes: two commands and nothing left behind."""

import json
import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

from tests.command_line import command, gymsuite, variables

pytestmark = pytest.mark.local

_ENVIRONMENT = "coding/warmup-v1"


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(tmp_path_factory.mktemp("cache"))


def _traces(cache: str) -> list[str]:
    """Directories of live sandboxes below the cache, and processes that name it."""
    found = [str(path) for path in Path(cache, "live").glob("*")]
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            line = path.read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            continue
        if cache in line and str(os.getpid()) != path.parent.name:
            found.append(line)
    return found


def test_the_oracle_passes_and_doing_nothing_fails(tmp_path: Path, cache: str) -> None:
    for agent, reward in (("oracle", 1.0), ("noop", 0.0)):
        arguments = ["-a", agent, "-n", "4", "--provider", "local", "--json"]
        done = gymsuite("eval", _ENVIRONMENT, *arguments, cwd=tmp_path, GYMSUITE_CACHE=cache)
        assert done.returncode == 0, done.stderr
        report = json.loads(done.stdout)
        assert (report["mean_reward"], report["scored"], report["failures"]) == (reward, 4, 0)
        assert report["cpu_seconds"] >= report["suite_cpu_seconds"] > 0
        assert (report["usage"]["verifier_cpu_seconds"] > 0) == (agent == "oracle")
    assert _traces(cache) == []


def test_stored_submissions_score_the_same_in_new_sandboxes(tmp_path: Path, cache: str) -> None:
    arguments = ["-a", "oracle", "-n", "3", "--out", "r"]
    gymsuite("eval", _ENVIRONMENT, *arguments, cwd=tmp_path, GYMSUITE_CACHE=cache)
    done = gymsuite("verify", "r", "--json", cwd=tmp_path, GYMSUITE_CACHE=cache)
    assert done.returncode == 0
    assert json.loads(done.stdout)["agreed"] == 3


def test_check_kills_real_sandboxes_and_finds_every_promise_kept(
    tmp_path: Path, cache: str
) -> None:
    done = gymsuite("check", _ENVIRONMENT, "-n", "2", "--json", cwd=tmp_path, GYMSUITE_CACHE=cache)
    found = json.loads(done.stdout)["environments"][_ENVIRONMENT]
    assert done.returncode == 0, found
    assert {finding["outcome"] for finding in found} == {"kept"}


def test_a_person_plays_in_a_sandbox(tmp_path: Path, cache: str) -> None:
    lines = ["write_solution", '"""', "x = 1", '"""', "run_examples", "submit"]
    done = gymsuite(
        "play", _ENVIRONMENT, cwd=tmp_path, stdin="\n".join(lines), GYMSUITE_CACHE=cache
    )
    assert done.returncode == 0, done.stderr
    assert "not passed" in done.stdout


def test_an_interrupted_run_leaves_no_sandbox(tmp_path: Path, cache: str) -> None:
    process = subprocess.Popen(
        command("eval", _ENVIRONMENT, "-a", "oracle", "-k", "20", "--out", "r"),
        cwd=tmp_path,
        env=variables(GYMSUITE_CACHE=cache),
        stderr=subprocess.PIPE,
    )
    rollouts = tmp_path / "r" / "rollouts.jsonl"
    deadline = time.monotonic() + 60
    while not (rollouts.exists() and rollouts.stat().st_size) and time.monotonic() < deadline:
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    _, stderr = process.communicate(timeout=60)
    assert process.returncode == 130, stderr
    assert _traces(cache) == []


def test_an_unknown_provider_is_a_mistake_of_usage(tmp_path: Path, cache: str) -> None:
    arguments = ["-a", "noop", "-n", "1", "--provider", "lokal"]
    done = gymsuite("eval", _ENVIRONMENT, *arguments, cwd=tmp_path, GYMSUITE_CACHE=cache)
    assert done.returncode == 2
    assert "did you mean 'local'?" in done.stderr


def test_the_cache_can_be_looked_at_and_emptied(tmp_path: Path) -> None:
    own = str(tmp_path / "cache")
    gymsuite("eval", _ENVIRONMENT, "-a", "noop", "-n", "1", cwd=tmp_path, GYMSUITE_CACHE=own)
    images = json.loads(
        gymsuite("cache", "info", "--json", cwd=tmp_path, GYMSUITE_CACHE=own).stdout
    )["images"]
    assert [image["name"] for image in images] == ["base"]
    assert gymsuite("cache", "clean", cwd=tmp_path, GYMSUITE_CACHE=own).returncode == 0
    after = json.loads(gymsuite("cache", "info", "--json", cwd=tmp_path, GYMSUITE_CACHE=own).stdout)
    assert (after["images"], after["size_bytes"]) == ([], 0)
