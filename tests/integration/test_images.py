"""Images built in real sandboxes."""

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

from gymsuite import Sandbox, SandboxSpec
from gymsuite.errors import DefinitionError, SandboxError
from gymsuite.sandbox.image import Image
from gymsuite.sandbox.images import Images
from gymsuite.sandbox.layers import lookup
from gymsuite.sandbox.local import LocalHost, open_local
from gymsuite.sandbox.protocol import ExecResult
from gymsuite.sandbox.provider import open_provider
from gymsuite.suite import default_cache, suite_root
from tests.command_line import command, make_suite, variables

from .conftest import missing

PATIENCE = 60.0
IN_ANOTHER_PROCESS = """
import asyncio, contextlib, sys
from pathlib import Path
from gymsuite.sandbox.images import Images

def report(text):
    print(text, flush=True)

with contextlib.closing(Images([Path(sys.argv[1])], Path(sys.argv[2]), report=report)) as images:
    image = asyncio.run(images.ensure("image", base="host"))
    print("digest", image.digest, flush=True)
"""
AS_NOBODY = """
import asyncio, concurrent.futures.thread, contextlib, os, sys
from pathlib import Path
from gymsuite.errors import SandboxError
from gymsuite.sandbox.images import Images

os.setresgid(65534, 65534, 65534)
os.setresuid(65534, 65534, 65534)
with contextlib.closing(Images([Path(sys.argv[1])], Path(sys.argv[2]))) as images:
    try:
        asyncio.run(images.ensure("image", base="debian"))
    except SandboxError as error:
        print(error, error.retryable)
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "sandboxes/image").mkdir(parents=True)
    return tmp_path / "sandboxes/image"


def build(folder: Path, text: str, host: LocalHost, reports: list[str]) -> Image:
    (folder / "Dockerfile").write_text(text)
    cache = folder.parent.parent / "cache"
    images = Images([folder.parent], cache, report=reports.append, host=host)
    with contextlib.closing(images):
        return asyncio.run(images.ensure("image", base="host"))


def in_image(image: Image, host: LocalHost, command: str) -> ExecResult:
    async def main() -> ExecResult:
        async with open_local(host, image, SandboxSpec(image=image.name)) as sandbox:
            return await sandbox.exec(command, timeout=PATIENCE)

    return asyncio.run(main())


def another_process(folder: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", IN_ANOTHER_PROCESS, folder.parent, folder.parent.parent / "cache"],
        stdout=subprocess.PIPE,
        text=True,
    )


@pytest.mark.local
def test_a_host_image_runs_the_interpreter_it_records(folder: Path, local_host: LocalHost) -> None:
    image = build(folder, "FROM host\n", local_host, [])
    script = "python3 -c 'import platform, ssl, sqlite3; print(platform.python_version())'"
    result = in_image(image, local_host, script)
    assert (result.exit_code, result.output) == (0, f"{image.python}\n")
    assert image.python == ".".join(map(str, sys.version_info[:3]))


@pytest.mark.local
def test_a_host_image_has_git_and_can_make_virtual_environments(
    folder: Path, local_host: LocalHost
) -> None:
    image = build(folder, "FROM host\n", local_host, [])
    script = "git init -q r && git -C r status -sb && python3 -m venv v && v/bin/python -m pip -V"
    result = in_image(image, local_host, script)
    assert result.exit_code == 0, result.output


@pytest.mark.local
def test_a_host_image_shows_no_home_no_shadow_and_nothing_of_this_machines_data(
    folder: Path, local_host: LocalHost, tmp_path: Path
) -> None:
    image = build(folder, "FROM host\n", local_host, [])
    secret = tmp_path / "secret"
    secret.write_text("secret")
    result = in_image(image, local_host, f"cat {secret} /etc/shadow /etc/gshadow")
    assert result.stdout == b""
    assert result.output.count("No such file or directory") == 3
    listing = in_image(image, local_host, "ls -A /home /srv /mnt /opt /var/lib /run; ls -A /root")
    shown = {*listing.stdout.decode().split()} - {*Path(sys.base_prefix).parts}
    assert not [name for name in shown if name != "gymsuite" and not name.endswith(":")]


@pytest.mark.local
def test_a_run_step_is_a_layer_with_what_it_changed_and_nothing_else(
    folder: Path, local_host: LocalHost
) -> None:
    reports: list[str] = []
    text = (
        "FROM host\n"
        "WORKDIR /srv/app\n"
        "ENV GREETING=hello\n"
        "RUN pwd > where && echo $GREETING > /opt/greeting && rm -r /mnt && rm /etc/hostname\n"
        "RUN test ! -e /mnt && echo again >> /opt/greeting\n"
    )
    image = build(folder, text, local_host, reports)
    names = [[str(p.relative_to(layer)) for p in layer.rglob("*")] for layer in image.layers[2:]]
    assert sorted(names[0]) == [
        "etc",
        "etc/hostname",
        "mnt",
        "opt",
        "opt/greeting",
        "srv",
        "srv/app",
        "srv/app/where",
    ]
    assert sorted(names[1]) == ["opt", "opt/greeting"]
    assert lookup(image.layers, "/mnt") is None
    result = in_image(image, local_host, "pwd; cat where /opt/greeting; ls -d /mnt")
    assert result.stdout == b"/srv/app\n/srv/app\nhello\nagain\n"
    again: list[str] = []
    assert build(folder, text, local_host, again) == image
    assert (len(reports), again) == (4, [])


@pytest.mark.local
def test_a_run_step_that_fails_is_the_authors_and_is_shown(
    folder: Path, local_host: LocalHost
) -> None:
    with pytest.raises(DefinitionError) as caught:
        build(folder, "FROM host\n\nRUN echo some; echo cause >&2; exit 3\n", local_host, [])
    message = str(caught.value)
    assert message.startswith(f"{folder}/Dockerfile:3: RUN echo some;")
    assert message.endswith("exit code 3; its last lines:\nsome\ncause")


@pytest.mark.local
@pytest.mark.skipif(os.getuid() != 0, reason="only root can mount a small disk")
def test_a_disk_that_fills_up_in_the_middle_of_a_layer_is_said_and_leaves_nothing(
    tmp_path: Path,
) -> None:
    cache, registry = tmp_path / "cache", make_suite(tmp_path)
    cache.mkdir()
    for name, step in (
        ("run", "RUN cat /workspace/* /dev/zero > /opt/big"),
        ("copy", "COPY big /"),
    ):
        folder = tmp_path / "sandboxes" / name
        folder.mkdir(parents=True)
        (folder / "Dockerfile").write_text(f"FROM host\n{step}\n")
        (folder / "big").write_bytes(bytes(20 << 20))
    # A mount in a namespace of its own ends with the process.
    mounted = (
        f'mount -t tmpfs -o size=16m,mode=755 tmpfs {cache} && "$@"; code=$?; ls {cache}/layers'
    )
    for name in ("run", "copy"):
        build = command("sandbox", "build", name, "--registry", registry, "--cache", cache)
        done = subprocess.run(
            ["unshare", "-m", "sh", "-c", f"{mounted}; exit $code", "sh", *build],
            capture_output=True,
            text=True,
            env=variables(),
            check=False,
        )
        assert done.returncode == 3, done.stderr
        assert "No space left on device" in done.stderr
        assert "Traceback" not in done.stderr
        assert len(done.stdout.split()) == 1, "the base alone"
        assert not done.stdout.startswith(".partial")


@pytest.mark.local
def test_two_processes_that_build_an_image_at_once_build_it_once(
    folder: Path, local_host: LocalHost
) -> None:
    (folder / "Dockerfile").write_text("FROM host\nRUN sleep 0.5; date +%N > /opt/when\n")
    both = [another_process(folder) for _ in range(2)]
    lines = [line for process in both for line in process.communicate()[0].splitlines()]
    digests = [line for line in lines if line.startswith("digest ")]
    assert len(digests) == 2
    assert len(set(digests)) == 1
    assert sum(line.startswith("image: RUN") for line in lines) == 1


@pytest.mark.local
def test_a_builder_killed_midway_leaves_no_process_and_a_usable_store(
    folder: Path, local_host: LocalHost
) -> None:
    marker = f"2.{os.getpid()}{time.monotonic_ns()}"
    recipe = f"FROM host\nRUN sleep {marker} && echo whole > /opt/file\n"
    (folder / "Dockerfile").write_text(recipe)
    builder = another_process(folder)
    while not running(marker):
        assert builder.poll() is None
        time.sleep(0.05)
    builder.send_signal(signal.SIGKILL)
    builder.communicate()
    while running(marker):
        time.sleep(0.05)
    image = build(folder, recipe, local_host, [])
    found = lookup(image.layers, "/opt/file")
    assert found is not None
    assert found.path.read_text() == "whole\n"
    layers = folder.parent.parent / "cache/layers"
    assert {path / "tree" for path in layers.iterdir()} == set(image.layers)


def running(marker: str) -> bool:
    """Whether a process of this machine has the marker among its words."""
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            if marker.encode() in path.read_bytes().split(b"\0"):
                return True
    return False


@pytest.mark.skipif(os.getuid() != 0, reason="only root can become somebody else")
def test_a_debian_image_for_an_ordinary_user_is_refused_with_the_way_out() -> None:
    # Not below pytest's directory, which an ordinary user may not enter.
    with tempfile.TemporaryDirectory() as directory:
        root = Path(directory)
        (root / "image").mkdir()
        (root / "image/Dockerfile").write_text("ARG BASE\nFROM ${BASE}\n")
        root.chmod(0o777)
        done = subprocess.run(
            [sys.executable, "-c", AS_NOBODY, root, root / "cache"],
            capture_output=True,
            text=True,
            check=False,
        )
    assert "only root can run; use the host base" in done.stdout, done.stderr
    assert done.stdout.endswith("False\n")


@pytest.mark.local
@pytest.mark.docker
@pytest.mark.slow
def test_a_debian_image_is_the_same_in_both_providers(docker_roots: tuple[Path, ...]) -> None:
    if os.getuid() != 0:
        missing("debootstrap", "only root can run it")

    async def look(provider_name: str) -> list[object]:
        script = (
            "python3 -V; python -V; git --version; id -u; stat -c '%a %u %g %n' /tmp /root"
            " /workspace/plain.txt /usr/bin/python3 /etc/passwd; cat /etc/passwd"
            " layered.txt binary.dat tree/.git/config | sha256sum; readlink link;"
            " find /usr /opt /srv -type f | LC_ALL=C sort | sha256sum;"
            " find / -xdev -perm /6000 | grep -v ^/proc"
        )
        async with open_provider(
            provider_name, image_roots=docker_roots, cache=default_cache()
        ) as provider:
            image = await provider.ensure("fixture")
            async with provider.open(SandboxSpec(image="fixture")) as sandbox:
                result = await sandbox.exec(script, timeout=PATIENCE)
                made = await venv(sandbox)
        return [image, image.python, result.stdout.decode(), result.stderr, made]

    async def venv(sandbox: Sandbox) -> str:
        script = "python3 -m venv /tmp/v && /tmp/v/bin/pip --version"
        return (await sandbox.exec(script, timeout=PATIENCE)).output

    local, docker = (asyncio.run(look(name)) for name in ("local:debian", "docker"))
    assert local == docker
    assert str(local[2]).startswith(f"Python {local[1]}\nPython {local[1]}\ngit version")
    assert str(local[4]).startswith("pip ")


@pytest.mark.docker
def test_a_provider_that_cannot_run_a_host_image_says_who_can(tmp_path: Path) -> None:
    async def main() -> None:
        async with open_provider("docker", image_roots=[tmp_path], cache=tmp_path) as provider:
            await provider.ensure("image")

    (tmp_path / "image").mkdir()
    (tmp_path / "image/Dockerfile").write_text("FROM host\n")
    try:
        with pytest.raises(DefinitionError, match="only the local provider can run"):
            asyncio.run(main())
    except SandboxError as error:
        missing("the docker provider", str(error))


@pytest.mark.local
def test_the_smallest_image_of_the_suite_builds(tmp_path: Path) -> None:
    async def main() -> ExecResult:
        roots = [suite_root() / "sandboxes"]
        async with (
            open_provider("local", image_roots=roots, cache=tmp_path) as provider,
            provider.open(SandboxSpec(image="base")) as sandbox,
        ):
            return await sandbox.exec("pwd", timeout=PATIENCE)

    assert asyncio.run(main()).output == "/workspace\n"
