"""The command line over real sandboxes: two commands and nothing left behind."""

import json
import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

from tests.command_line import command, gymsuite, make_suite, variables
from tests.image_archives import docker_save, file, folder, layer, write

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
    assert ": 1 image, " in gymsuite("cache", "info", cwd=tmp_path, GYMSUITE_CACHE=own).stdout
    cleaned = gymsuite("cache", "clean", cwd=tmp_path, GYMSUITE_CACHE=own)
    assert cleaned.returncode == 0
    assert cleaned.stdout.startswith("1 layer removed, ")
    after = json.loads(gymsuite("cache", "info", "--json", cwd=tmp_path, GYMSUITE_CACHE=own).stdout)
    assert (after["images"], after["size_bytes"]) == ([], 0)


@pytest.fixture
def suite(tmp_path: Path) -> str:
    """A registry with images of its own beside it."""
    write(
        tmp_path / "sandboxes",
        {
            "low/Dockerfile": b"FROM host\nARG GREETING=hello\nRUN echo $GREETING > /opt/low\n",
            "high/Dockerfile": b"FROM low\nCOPY Dockerfile /opt/\n",
            "broken/Dockerfile": b"FROM host\nRUN exit 3\n",
            "odd/Dockerfile": b"FROM host\nEXPOSE 80\n",
        },
    )
    return str(make_suite(tmp_path))


def test_images_are_built_found_again_and_listed(tmp_path: Path, suite: str) -> None:
    own = str(tmp_path / "cache")

    def sandbox(*arguments: str) -> subprocess.CompletedProcess[str]:
        return gymsuite("sandbox", *arguments, cwd=tmp_path, GYMSUITE_CACHE=own)

    first = sandbox("build", "high", "--registry", suite)
    assert first.returncode == 0, first.stderr
    assert "low: RUN echo $GREETING > /opt/low" in first.stderr
    assert "Python" in first.stdout
    again = sandbox("build", "high", "--registry", suite, "--json")
    assert again.stderr == ""
    built = json.loads(again.stdout)
    steps = [one["step"] for one in built["layers"]]
    assert steps == ["FROM host", "RUN echo $GREETING > /opt/low", "COPY Dockerfile /opt/"]
    assert built["size_bytes"] == sum(one["size_bytes"] for one in built["layers"]) > 0
    other = sandbox("build", "low", "--registry", suite, "--build-arg", "GREETING=bye", "--json")
    assert json.loads(other.stdout)["layers"][1]["digest"] != built["layers"][1]["digest"]
    images = json.loads(sandbox("list", "--json").stdout)["images"]
    assert [image["name"] for image in images] == ["low", "high", "low"]
    assert images[1]["digest"] == built["digest"]
    assert built["digest"][:12] in sandbox("list").stdout


def test_a_long_step_leaves_room_for_its_size(tmp_path: Path, suite: str, cache: str) -> None:
    step = b"FROM host\nRUN true first and foremost && true and then && true again and again\n"
    write(tmp_path / "sandboxes", {"long/Dockerfile": step})
    arguments = ["sandbox", "build", "long", "--registry", suite]
    done = gymsuite(*arguments, cwd=tmp_path, GYMSUITE_CACHE=cache, COLUMNS="80")
    [row] = [line for line in done.stdout.splitlines() if "RUN true" in line]
    assert row.rstrip().endswith("KiB")


def test_an_image_that_cannot_be_built_says_why_and_exits_as_promised(
    tmp_path: Path, suite: str, cache: str
) -> None:
    def build(*arguments: str) -> tuple[int, str]:
        done = gymsuite(
            "sandbox", "build", *arguments, "--registry", suite, cwd=tmp_path, GYMSUITE_CACHE=cache
        )
        return done.returncode, done.stderr

    for arguments, complaint in (
        (["hihg"], "did you mean 'high'?"),
        (["odd"], "odd/Dockerfile:2: EXPOSE is not supported; leave it out"),
        (["broken"], "broken/Dockerfile:2: RUN exit 3: exit code 3; it printed nothing\n"),
        (["low", "--build-arg", "X=1"], "has no ARG X; there are: GREETING"),
        (["low", "--build-arg", "X"], "is no NAME=VALUE"),
        (["low", "--build-arg", "BASE=host"], "BASE is what --base sets"),
        (["low", "--base", "hots"], "no base 'hots'; did you mean 'host'?"),
        (["low", "--provider", "dokcer"], "did you mean 'docker'?"),
        (["low", "--provider", "docker", "--base", "host"], "--base debian"),
    ):
        code, text = build(*arguments)
        assert complaint in text
        assert code == 2


def test_an_image_is_imported_used_and_forgotten(tmp_path: Path, cache: str) -> None:
    users = file("etc/passwd", b"app:x:7:7::/home/app:\n")
    saved = docker_save(tmp_path / "theirs.tar", [layer(folder("etc"), users)], User="app")
    large = docker_save(tmp_path / "large.tar", [layer(file("large", bytes(10_000)))])

    def sandbox(*arguments: str) -> subprocess.CompletedProcess[str]:
        return gymsuite("sandbox", *arguments, cwd=tmp_path, GYMSUITE_CACHE=cache)

    done = sandbox("import", str(saved), "--name", "theirs")
    assert done.returncode == 0, done.stderr
    assert "imported, 1 layer" in done.stdout
    assert "user app" in done.stdout
    again = json.loads(
        sandbox("import", str(saved), "--name", "theirs", "--user", "root", "--json").stdout
    )
    assert (again["user"], again["base"]) == ("root", "imported")
    listed = json.loads(sandbox("list", "--json").stdout)["images"]
    theirs = [image for image in listed if image["name"] == "theirs"]
    assert [(image["digest"], image["origin"]) for image in theirs] == [
        (again["digest"], "imported")
    ]
    gymsuite("cache", "clean", cwd=tmp_path, GYMSUITE_CACHE=cache)
    assert "theirs" in sandbox("list").stdout, "nobody could build it again"
    assert sandbox("remove", "theirs").returncode == 0
    assert "theirs" not in sandbox("list").stdout
    for arguments, complaint in (
        (["remove", "theirs"], "no image 'theirs' was imported"),
        (["import", "no.tar", "--name", "x"], "no.tar cannot be read"),
        (["import", str(saved), "--name", "../x"], "is no name for an image"),
        (["import", str(saved), "--name", "host"], "neither host nor debian"),
        (["import", str(saved), "--name", "base"], "import it under another name"),
        (["import", str(saved), "--name", "x", "--tag", "y"], "there are: theirs:latest"),
        (["import", str(large), "--name", "x", "--max-size", "1K"], "unpacks to more than"),
        (["import", str(saved), "--name", "x", "--max-size", "big"], "'big' is no size"),
    ):
        done = sandbox(*arguments)
        assert complaint in done.stderr
        assert done.returncode == 2


def test_what_dead_processes_left_is_reaped_and_what_a_living_one_has_is_not(
    tmp_path: Path,
) -> None:
    own = tmp_path / "cache"
    ended = subprocess.Popen(["true"])
    ended.wait()
    start = Path("/proc/self/stat").read_text().rpartition(")")[2].split()[19]
    dead, alive = f"{ended.pid}-1-x", f"{os.getpid()}-{start}-x"
    write(own, {f"live/{dead}/a": b"x", f"live/{alive}/a": b"x", "layers/.partial-a/tree/a": b"x"})

    def reap(*arguments: str) -> dict[str, object]:
        done = gymsuite(
            "sandbox", "reap", "--json", *arguments, cwd=tmp_path, GYMSUITE_CACHE=str(own)
        )
        assert done.returncode == 0, done.stderr
        found: dict[str, object] = json.loads(done.stdout)
        return found

    would = reap("--dry-run")
    assert (would["directories"], would["layers"], would["dry_run"]) == ([dead], ["a"], True)
    assert (own / "live" / dead / "a").exists()
    assert reap()["directories"] == [dead]
    assert [path.name for path in (own / "live").iterdir()] == [alive]
    assert (reap()["directories"], reap()["layers"]) == ([], [])


def test_a_cache_is_kept_below_its_limit(tmp_path: Path, suite: str) -> None:
    own = str(tmp_path / "cache")

    def run(*arguments: str) -> str:
        done = gymsuite(*arguments, cwd=tmp_path, GYMSUITE_CACHE=own)
        assert done.returncode == 0, done.stderr
        return done.stdout

    run("sandbox", "build", "high", "--registry", suite)
    assert "of at most 64.0 MiB" in run("cache", "limit", "64M")
    assert "3 layers removed" in run("cache", "limit", "0")
    run("sandbox", "build", "high", "--registry", suite)
    assert "3 layers removed" in run("cache", "limit", "0"), "the build itself had them in use"


def test_only_what_is_kept_by_its_right_name_outlives_a_cleaning(
    tmp_path: Path, suite: str
) -> None:
    own = str(tmp_path / "cache")

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        return gymsuite(*arguments, cwd=tmp_path, GYMSUITE_CACHE=own)

    run("sandbox", "build", "high", "--registry", suite)
    mistaken = run("cache", "clean", "--keep", "hihg")
    assert mistaken.returncode == 2
    assert "did you mean 'high'?" in mistaken.stderr
    assert run("cache", "clean", "--keep", "high").returncode == 0
    images = json.loads(run("sandbox", "list", "--json").stdout)["images"]
    assert [image["name"] for image in images] == ["high"]


def test_a_machine_without_docker_is_told_so_and_what_else_was_asked_for_is_done(
    tmp_path: Path, suite: str, cache: str
) -> None:
    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        nobody = f"unix://{tmp_path}/none.sock"
        return gymsuite(*arguments, cwd=tmp_path, GYMSUITE_CACHE=cache, DOCKER_HOST=nobody)

    for arguments in (
        ["sandbox", "build", "low", "--registry", suite, "--provider", "docker"],
        ["cache", "clean", "--docker"],
    ):
        done = run(*arguments)
        assert "no Docker Engine answers" in done.stderr
        assert done.returncode == 3
    reaped = run("sandbox", "reap")
    assert reaped.returncode == 0
    assert "no containers looked for: no Docker Engine answers" in reaped.stdout
