"""`gymsuite swebench` before anything is judged: what it asks for, and what it refuses."""

import json
import os
import subprocess
from pathlib import Path

import pytest

from tests.command_line import command, gymsuite
from tests.providers import require

_ROWS = str(Path(__file__).parents[1] / "fixtures" / "swe" / "rows" / "verified.jsonl")
_EVAL = ("swebench", "eval", "-d", _ROWS, "--run-id", "r", "--provider", "local")


@pytest.mark.local
def test_images_are_fetched_only_for_what_is_judged(tmp_path: Path) -> None:
    require("local")
    done = gymsuite(*_EVAL, "-p", "empty", "--json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["empty_patch_instances"] == 1
    (tmp_path / "none.jsonl").write_text("")
    done = gymsuite(*_EVAL, "-p", "none.jsonl", "--json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["incomplete_ids"] == ["acme__tally-12"]


@pytest.mark.local
@pytest.mark.parametrize(
    "ids",
    [
        ("-i", "a", "-i", "b"),
        ("-i", "a", "b"),
        ("--instance_ids", "a", "b"),
        ("--instance", "a", "--instance", "b"),
    ],
    ids=" ".join,
)
def test_ids_are_given_as_the_official_harness_takes_them(
    tmp_path: Path, ids: tuple[str, ...]
) -> None:
    require("local")
    row = json.loads(Path(_ROWS).read_text("utf-8"))
    rows = [{**row, "instance_id": name} for name in "abc"]
    (tmp_path / "rows.json").write_text(json.dumps(rows))
    done = gymsuite("swebench", "eval", "rows.json", *ids, "-p", "empty", "--json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["empty_patch_ids"] == ["a", "b"]


@pytest.mark.local
def test_an_interrupted_run_says_how_to_go_on(tmp_path: Path) -> None:
    require("local")
    program = tmp_path / "bin" / "docker"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\nkill -TERM $PPID; exec sleep 60\n")
    program.chmod(0o755)
    environment = {**os.environ, "PATH": f"{program.parent}{os.pathsep}{os.environ['PATH']}"}
    done = subprocess.run(
        command(*_EVAL, "-p", "gold", "--cache", tmp_path / "cache"),
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 130
    assert "the same command goes on from there" in done.stderr


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ((), "which rows? Name a file, a folder or a data set"),
        (("rows.json",), "which predictions? Name a file or a folder"),
        (("rows.json", "a", "--gold"), "'a' stands behind no option; ids of rows come after -i"),
        (("rows.json", "--gold", "-p", "x.json"), "--gold and --predictions x.json: give one"),
        (("-d", "rows.json", "--gold"), "rows.json: no such file or folder"),
    ],
)
def test_what_is_not_said_is_asked_for(
    tmp_path: Path, words: tuple[str, ...], message: str
) -> None:
    done = gymsuite("swebench", "eval", *words, cwd=tmp_path)
    assert done.returncode == 2
    assert message in done.stderr
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--strict-upstream", "--waive-flaky"), "--strict-upstream waives no test"),
        (("--repo-dir", "nowhere"), "'nowhere' does not exist"),
        (("--run-id", "../up"), "run id '../up': files are named for it"),
    ],
)
def test_what_cannot_be_judged_is_refused_at_once(
    tmp_path: Path, options: tuple[str, ...], message: str
) -> None:
    done = gymsuite(*_EVAL, "-p", "empty", *options, cwd=tmp_path)
    assert done.returncode == 2
    assert message in done.stderr
    assert list(tmp_path.iterdir()) == []
