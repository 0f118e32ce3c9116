"""What a container may write, and for how long it lives."""

import asyncio
import signal
from pathlib import Path
from typing import Any

import pytest
from docker.client import DockerClient

from gymsuite import SandboxSpec
from gymsuite.errors import SandboxDead, SandboxError, UsageError
from gymsuite.sandbox import docker as engine_door
from gymsuite.sandbox.container import DockerSandbox
from gymsuite.sandbox.owner import this_process
from gymsuite.sandbox.provider import open_provider
from gymsuite.sandbox.reaper import DEADLINE_LABEL, OWNER_LABEL, reap
from gymsuite.suite import default_cache

from .conftest import Provider

pytestmark = pytest.mark.docker

PATIENCE = 60.0
MIB = 1 << 20
SMALL = SandboxSpec(image="fixture", memory_bytes=256 * MIB, disk_bytes=32 * MIB, inodes=1000)
FILL = "head -c 1G /dev/zero > {0}/filler; stat -c %s {0}/filler"


def test_a_full_workdir_is_an_error_of_the_command_and_is_told(docker: Provider) -> None:
    async def main() -> Any:
        async with docker.open(SMALL) as sandbox:
            full = await sandbox.exec(FILL.format("/workspace"), timeout=PATIENCE)
            await sandbox.exec("rm filler", timeout=PATIENCE)
            many = await sandbox.exec("seq 2000 | xargs touch", timeout=PATIENCE)
            return full, many, sandbox.description["limits"]

    full, many, limits = asyncio.run(main())
    assert b"No space left on device" in full.stderr
    assert 30 * MIB < int(full.stdout) <= 32 * MIB
    assert full.disk_full
    assert b"No space left on device" in many.stderr
    assert (limits["disk_bytes"], limits["inodes"]) == (32 * MIB, 1000)


def test_all_that_can_be_written_leaves_memory_to_run_with(docker: Provider) -> None:
    spec = SMALL.model_copy(update={"memory_bytes": 128 * MIB, "disk_bytes": 1 << 30})
    places = "/workspace /tmp /var/tmp /root /home /run /dev/shm"

    async def main() -> Any:
        async with docker.open(spec) as sandbox:
            script = f"for place in {places}; do {FILL.format('$place')}; done 2> /dev/null"
            sizes = await sandbox.exec(script, timeout=PATIENCE)
            again = await sandbox.exec(["python3", "-c", "print('alive')"], timeout=PATIENCE)
            return [int(size) for size in sizes.stdout.split()], again

    sizes, again = asyncio.run(main())
    assert len(sizes) == len(places.split())
    assert 60 * MIB < max(sizes) <= 64 * MIB
    assert sum(sizes) <= 97 * MIB
    assert again.output == "alive\n"


def test_what_is_no_place_is_read_only_and_has_no_inodes_to_take(docker: Provider) -> None:
    async def main() -> list[str]:
        async with docker.open(SMALL) as sandbox:
            commands = (
                "for f in /usr/x /etc/x /opt/x /x /dev/x; do touch $f; done",
                "ls -l /dev/.exec; echo > /dev/.exec",
            )
            return [(await sandbox.exec(c, timeout=PATIENCE)).output for c in commands]

    touched, server = asyncio.run(main())
    assert touched.count("Read-only file system") == 5
    assert "Read-only" in server or "Text file busy" in server


def test_shared_memory_does_not_outlive_its_process(docker: Provider) -> None:
    keep = "import ctypes; c = ctypes.CDLL(None); i = c.shmget(0, 1 << 20, 0o1600); print(i)"

    async def main() -> list[str]:
        async with docker.open(SMALL) as sandbox:
            made = await sandbox.exec(["python3", "-c", keep], timeout=PATIENCE)
            left = await sandbox.exec("cat /proc/sysvipc/shm | wc -l", timeout=PATIENCE)
            return [made.output, left.output]

    made, left = asyncio.run(main())
    assert int(made) >= 0
    assert left == "1\n"


def test_an_image_that_does_not_fit_is_an_error_that_names_the_way_out(docker: Provider) -> None:
    spec = SMALL.model_copy(update={"disk_bytes": 8192})

    async def main() -> None:
        async with docker.open(spec):
            pass

    with pytest.raises(SandboxError, match="'fixture' holds .* raise disk_bytes, inodes") as caught:
        asyncio.run(main())
    assert not caught.value.retryable


def test_a_container_ends_with_its_lifetime(docker: Provider, client: DockerClient) -> None:
    spec = SMALL.model_copy(update={"lifetime_seconds": 1.0})

    async def main() -> Any:
        async with docker.open(spec) as sandbox:
            assert isinstance(sandbox, DockerSandbox)
            with pytest.raises(SandboxDead) as caught:
                await sandbox.exec("sleep 600", timeout=600)
            return caught.value, sandbox.name

    error, name = asyncio.run(main())
    assert "after a lifetime of 1 seconds" in error.reason
    assert not client.api.containers(all=True, filters={"name": name})


def test_a_container_past_its_deadline_is_reaped_though_its_owner_lives(
    docker: Provider, client: DockerClient
) -> None:
    async def main() -> None:
        async with docker.open(SMALL), engine_door.connect() as engine:
            client.api.create_container(
                client.images.list("gymsuite/fixture")[0].id,
                "sleep",
                name=name,
                labels={OWNER_LABEL: this_process(), DEADLINE_LABEL: "1"},
            )
            await reap(engine, default_cache())

    name = f"gymsuite-expired-{this_process().rpartition('/')[2]}"
    asyncio.run(main())
    assert not client.api.containers(all=True, filters={"name": name})


def test_a_runtime_is_named_with_the_provider(docker_roots: tuple[Path, ...]) -> None:
    async def main(name: str) -> Any:
        opening = open_provider(name, image_roots=docker_roots, cache=default_cache())
        async with opening as provider, provider.open(SMALL) as sandbox:
            return provider.name, sandbox.description["provider"]

    assert asyncio.run(main("docker:runc")) == ("docker:runc", "docker:runc")
    with pytest.raises(UsageError, match="no runtime 'runcs'; it has: .*runc"):
        asyncio.run(main("docker:runcs"))


def test_a_killed_container_is_a_dead_sandbox(docker: Provider, client: DockerClient) -> None:
    async def main() -> None:
        async with docker.open(SMALL) as sandbox:
            assert isinstance(sandbox, DockerSandbox)
            command = asyncio.create_task(sandbox.exec("sleep 600", timeout=600))
            await sandbox.exec("true", timeout=PATIENCE)
            client.api.kill(sandbox.name, signal=signal.SIGKILL)
            with pytest.raises(SandboxDead, match="is gone"):
                await command

    asyncio.run(main())
