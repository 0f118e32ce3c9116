"""`gymsuite bench` over real sandboxes, and its comparison of two runs."""

import asyncio
import json
import signal
import subprocess
import time
from pathlib import Path

import pytest

from gymsuite.bench.play import Length
from gymsuite.bench.run import Request, bench
from gymsuite.suite import default_cache
from tests.command_line import command, gymsuite, variables
from tests.providers import require

_RUN = ["bench", "--levels", "3", "--episodes", "5", "--tests", "unittest"]


@pytest.mark.local
def test_a_run_is_a_table_and_a_report_that_compares_with_itself(tmp_path: Path) -> None:
    require("local")
    done = gymsuite(*_RUN, "--provider", "local", "--out", "a.json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "per core-hour" in done.stdout
    assert "knee" in done.stdout
    report = json.loads((tmp_path / "a.json").read_text())
    assert [level["concurrency"] for level in report["levels"]] == [3]
    seeds = [one["seed"] for level in report["levels"] for one in level["episodes"]]
    assert sorted(seeds) == list(range(5))
    for level in report["levels"]:
        for one in level["episodes"]:
            assert one["cpu_seconds"] > 0
            assert one["seconds"].keys() >= {"create", "files", "shell", "python", "tests"}
            assert sum(one["seconds"].values()) == pytest.approx(one["wall_seconds"], rel=0.1)
    done = gymsuite("bench", "--compare", "a.json", "a.json", "--json", cwd=tmp_path)
    ratios = json.loads(done.stdout)["ratios"]
    assert {(one["ratio"], one["differs"]) for one in ratios} == {(1.0, False)}
    done = gymsuite("bench", "--compare", "a.json", "a.json", cwd=tmp_path)
    assert "no difference shown" in done.stdout


@pytest.mark.local
def test_an_interrupted_run_has_reported_the_levels_that_ended(tmp_path: Path) -> None:
    require("local")
    out = tmp_path / "a.json"
    arguments = ["bench", "--provider", "local", "--levels", "1,2,3,4", "--seconds", "1"]
    running = subprocess.Popen(command(*arguments, "--out", out), cwd=tmp_path, env=variables())
    deadline = time.monotonic() + 60
    while not out.exists() and time.monotonic() < deadline:
        time.sleep(0.01)
    running.send_signal(signal.SIGINT)
    assert running.wait(60) == 130
    ended = [level["concurrency"] for level in json.loads(out.read_text())["levels"]]
    # How many of them there are by then is up to the machine.
    assert ended
    assert ended == [1, 2, 3][: len(ended)]


@pytest.mark.docker
def test_docker_plays_the_same_workload(tmp_path: Path) -> None:
    require("docker")
    arguments = ["bench", "--levels", "2", "--episodes", "2", "--provider", "docker", "--json"]
    done = gymsuite(*arguments, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert (report["provider"], report["workload"], report["git"]) == ("docker", 1, True)
    assert len(report["levels"][0]["episodes"]) == 2


@pytest.mark.docker
def test_an_image_that_starts_at_its_root_is_measured_in_containers(tmp_path: Path) -> None:
    require("docker")
    (tmp_path / "fixture").mkdir()
    (tmp_path / "fixture/Dockerfile").write_text("FROM debian\nWORKDIR /\n")
    request = Request(
        provider="docker",
        image="fixture",
        tests="unittest",
        levels=(1,),
        length=Length(1.0, 1),
        seed=0,
        image_roots=(tmp_path,),
        cache=default_cache(),
    )
    report = asyncio.run(bench(request, print, lambda *_: None))
    assert [len(level.episodes) for level in report.levels] == [1]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--levels", "2,1"], "rising"),
        (["--levels", "1,x"], "numbers from 1"),
        (["--seconds", "1", "--episodes", "1"], "not both"),
        (["--compare", "a.json", "b.json"], "cannot read a.json"),
        (["--out", "none/a.json"], "there is no folder"),
        (["--seconds", "inf"], "less than or equal to 86400"),
        (["--out", "."], "it is a folder"),
        (["--out", "/proc/a.json"], "cannot be written to"),
    ],
)
def test_what_is_asked_wrongly_is_an_error_that_says_what_is_right(
    tmp_path: Path, arguments: list[str], said: str
) -> None:
    done = gymsuite("bench", *arguments, cwd=tmp_path)
    assert done.returncode == 2
    assert said in " ".join(done.stderr.split())
