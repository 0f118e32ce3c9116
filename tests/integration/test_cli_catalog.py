"""`gymsuite list`, `show`, and how the command line says no."""

import json
import signal
import subprocess
from pathlib import Path

import pytest

from tests.command_line import command, gymsuite, make_suite


def test_list_shows_every_environment(tmp_path: Path) -> None:
    done = gymsuite("list", "--registry", make_suite(tmp_path), cwd=tmp_path)
    assert done.returncode == 0
    assert "test/yes-v1" in done.stdout
    assert "Say yes as well." in done.stdout


def test_list_as_json_is_one_object(tmp_path: Path) -> None:
    done = gymsuite("list", "--json", "--registry", make_suite(tmp_path), cwd=tmp_path)
    listed = json.loads(done.stdout)
    assert [row["id"] for row in listed["environments"]] == ["test/also-v1", "test/yes-v1"]


def test_the_suites_own_registry_is_the_default(tmp_path: Path) -> None:
    listed = json.loads(gymsuite("list", "--json", cwd=tmp_path).stdout)
    assert all("/" in row["id"] for row in listed["environments"])


def test_list_imports_no_environment_and_nothing_heavy(tmp_path: Path) -> None:
    registry = make_suite(tmp_path, environment="raise RuntimeError('imported')")
    assert gymsuite("list", "--registry", registry, cwd=tmp_path).returncode == 0
    done = gymsuite("list", "--registry", registry, cwd=tmp_path, PYTHONPROFILEIMPORTTIME="1")
    imported = {line.rpartition("|")[2].strip() for line in done.stderr.splitlines()}
    assert not imported & {"httpx", "aiohttp", "gymnasium", "numpy", "docker", "git"}
    assert "gymsuite.registry" in imported


def test_show_tells_what_an_environment_is(tmp_path: Path) -> None:
    done = gymsuite("show", "test/yes-v1", "--registry", make_suite(tmp_path), cwd=tmp_path)
    assert done.returncode == 0
    for part in ("think(thought: string)", "Think about it.", "6 train", "4 of level 0"):
        assert part in done.stdout
    assert "Say yes, 0." in done.stdout
    assert "secret" not in done.stdout


def test_show_as_json_has_the_schemas(tmp_path: Path) -> None:
    registry = make_suite(tmp_path)
    done = gymsuite("show", "test/yes-v1", "--json", "--registry", registry, cwd=tmp_path)
    shown = json.loads(done.stdout)
    assert shown["tasks"] == 12
    assert shown["levels"] == {"0": 4, "1": 4, "2": 4}
    assert [tool["name"] for tool in shown["tools"]] == ["think", "submit"]
    assert shown["limits"]["max_steps"] == 50
    assert "secret" not in done.stdout


def test_version(tmp_path: Path) -> None:
    assert gymsuite("--version", cwd=tmp_path).stdout.startswith("gymsuite 0.")


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["show", "test/yess-v1"], "did you mean 'test/yes-v1'?"),
        (["eval", "test/yess-v1", "-a", "noop"], "did you mean 'test/yes-v1'?"),
        (["eval", "test/yes-v1", "-a", "nop"], "did you mean 'noop'?"),
        (["eval", "test/yes-v1", "-a", ":attr"], "module:attr"),
        (["eval", "test/yes-v1", "-a", "json:"], "module:attr"),
        (["eval", "test/yes-v1", "-a", "noop", "--cache", "registry.yaml"], "it is no folder"),
        (["eval", "test/yes-v1", "-a", "openai"], "--model"),
        (["eval", "test/yes-v1", "-a", "replay"], "--replay"),
        (["eval", "test/yes-v1", "-a", "replay", "--replay", "nowhere"], "no run directory"),
        (["eval", "test/yes-v1", "-a", "noop", "--resume"], "--out"),
        (["eval", "test/yes-v1", "-a", "noop", "--split", "dev"], "test, train"),
        (["eval", "test/yes-v1", "-a", "openai", "--api-key-env", "NOT_SET"], "NOT_SET"),
        (["eval", "test/yes-v1", "-a", "openai", "--body", "[1]"], "--body"),
        (["eval", "test/yes-v1"], "--agent"),
        (["eval", "test/yes-v1", "-a", "noop", "-n", "0"], "-n"),
        (["eval", "test/yes-v1", "-a", "noop", "--task", "t33"], "did you mean 't3'?"),
        (["verify", "nowhere"], "no run directory"),
        (["check"], "--all"),
        (["check", "test/yess-v1"], "did you mean"),
        (["play", "test/yes-v1", "--task", "t33"], "did you mean 't3'?"),
        (["evl"], "eval"),
    ],
)
def test_wrong_usage_exits_2_and_says_what_would_be_right(
    tmp_path: Path, arguments: list[str], complaint: str
) -> None:
    registry = ["--registry", str(make_suite(tmp_path))] if arguments != ["evl"] else []
    done = gymsuite(*arguments, *registry, cwd=tmp_path)
    assert done.returncode == 2
    assert complaint in done.stderr
    assert not done.stdout
    assert not (tmp_path / "runs").exists()


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("environments: [", "registry.yaml"),
        ("environments: {test/x-v1: {path: say_yes}}", "test/x-v1.description"),
        ("environments: {Nonsense: {path: say_yes, description: d}}", "family/name-vN"),
    ],
)
def test_a_broken_registry_is_named_with_its_fault(
    tmp_path: Path, text: str, complaint: str
) -> None:
    registry = make_suite(tmp_path)
    registry.write_text(text)
    done = gymsuite("list", "--registry", registry, cwd=tmp_path)
    assert done.returncode == 2
    assert complaint in done.stderr


def test_a_broken_environment_is_named_with_its_fault(tmp_path: Path) -> None:
    registry = make_suite(tmp_path, environment="import nonsense_module")
    done = gymsuite("eval", "test/yes-v1", "-a", "noop", "--registry", registry, cwd=tmp_path)
    assert done.returncode == 2
    assert "environment.py" in done.stderr
    assert "nonsense_module" in done.stderr


def test_a_reader_that_has_gone_is_no_verdict(tmp_path: Path) -> None:
    listing = command("list", "--registry", make_suite(tmp_path))
    with subprocess.Popen(listing, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.close()
        assert process.stderr is not None
        assert not process.stderr.read()
    assert process.returncode == 128 + signal.SIGPIPE
