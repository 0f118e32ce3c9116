"""`gymsuite doctor` on this machine, and where nothing can be found."""

import asyncio
import json
from pathlib import Path

import pytest

from gymsuite import Registry, open_provider
from gymsuite.suite import default_cache
from tests.command_line import gymsuite
from tests.providers import require

_LIMITS = {
    "memory", "disk", "inodes", "output", "wall time", "network", "/proc/sys", "privileges",
    "processes", "pids", "cpu",
}  # fmt: skip


@pytest.mark.local
def test_every_limit_of_local_is_proved_on_a_sandbox(tmp_path: Path) -> None:
    require("local")
    done = gymsuite("doctor", "--provider", "local", "--json", cwd=tmp_path)
    found = json.loads(done.stdout)
    tried = {row["name"]: row["state"] for row in found["findings"] if row["area"] == "local"}
    assert tried.keys() == {"sandboxes", *_LIMITS}
    assert set(tried.values()) == {"ok"}, found
    assert (done.returncode, found["healthy"], found["provider"]) == (0, True, "local")


@pytest.mark.docker
def test_every_limit_of_docker_is_proved_on_a_container(tmp_path: Path) -> None:
    require("docker")
    roots = Registry.default().image_roots

    async def build() -> None:
        async with open_provider("docker", image_roots=roots, cache=default_cache()) as provider:
            await provider.ensure("base")

    asyncio.run(build())
    done = gymsuite("doctor", "--provider", "docker", cwd=tmp_path)
    assert done.returncode == 0, done.stdout
    assert "docker works here and keeps every limit" in done.stdout
    assert "reported as disk_full" in done.stdout


def test_where_everything_is_missing_the_doctor_says_how_to_mend_it(tmp_path: Path) -> None:
    nothing = {"PATH": "/nonexistent", "DOCKER_HOST": "unix:///nonexistent/docker.sock"}
    cache = tmp_path / "file"
    cache.write_text("")
    done = gymsuite("doctor", "--cache", str(cache / "cache"), cwd=tmp_path, **nothing)
    assert done.returncode == 1
    assert "no sandbox can be made on this machine" in done.stdout
    assert "apt-get install debootstrap" in done.stdout
    assert "DOCKER_HOST" in done.stdout


def test_an_engine_that_does_not_answer_makes_no_sandbox(tmp_path: Path) -> None:
    nobody = f"unix://{tmp_path}/none.sock"
    done = gymsuite("doctor", "--provider", "docker", cwd=tmp_path, DOCKER_HOST=nobody)
    assert done.returncode == 1
    assert done.stdout.endswith("docker: no sandbox can be made here\n")


def test_a_provider_that_does_not_exist_is_the_callers_mistake(tmp_path: Path) -> None:
    done = gymsuite("doctor", "--provider", "lokal", cwd=tmp_path)
    assert done.returncode == 2
    assert "did you mean 'local'?" in done.stderr


@pytest.mark.docker
def test_docker_without_an_image_is_not_called_good(tmp_path: Path) -> None:
    require("docker")
    arguments = ["doctor", "--provider", "docker", "--cache", str(tmp_path)]
    done = gymsuite(*arguments, cwd=tmp_path)
    assert done.returncode == 1
    assert done.stdout.endswith("docker: no limit was tried here\n")
    assert "gymsuite sandbox build base --base debian" in " ".join(done.stdout.split())
