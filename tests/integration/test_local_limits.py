"""Every limit of a local sandbox fires, is told, and leaves the sandbox and the machine alive."""

import asyncio
import errno
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from gymsuite import ExecResult, Sandbox, SandboxDead, SandboxError, SandboxSpec
from gymsuite.errors import PathRefused
from gymsuite.sandbox import binary
from gymsuite.sandbox.cgroups import Cgroups
from gymsuite.sandbox.image import Image
from gymsuite.sandbox.keepers import Keepers
from gymsuite.sandbox.local import LocalHost, open_local

from .processes import PATIENCE, assert_nothing_is_left

pytestmark = pytest.mark.local

MIB = 1 << 20


@pytest.fixture
def no_cgroups(local_host: LocalHost) -> Iterator[LocalHost]:
    """This machine, if no cgroup could be made on it."""
    keepers = Keepers(binary.exec_server(), local_host.uid, local_host.gid, Cgroups())
    yield replace(local_host, cgroups=Cgroups(), keepers=keepers)
    keepers.close()


def needs(host: LocalHost, controller: str) -> None:
    if controller not in host.cgroups.controllers:
        pytest.skip(f"this user cannot limit {controller} here")


def spec(**limits: Any) -> SandboxSpec:
    return SandboxSpec(image="fixture", **limits)


async def python(sandbox: Sandbox, script: str, *, timeout: float = PATIENCE) -> ExecResult:
    return await sandbox.exec(["python3", "-c", script], timeout=timeout)


def test_memory_that_runs_out_kills_the_command_and_not_the_sandbox(
    local_host: LocalHost, local_image: Image
) -> None:
    needs(local_host, "memory")

    async def main() -> None:
        async with open_local(local_host, local_image, spec(memory_bytes=128 * MIB)) as sandbox:
            before = await sandbox.stats()
            result = await python(sandbox, f"bytearray({1024 * MIB})")
            assert result.exit_code == 128 + 9
            assert result.oom
            after = await sandbox.stats()
            assert (before.oom_kills, after.oom_kills) == (0, 1)
            assert 100 * MIB < (after.peak_memory_bytes or 0) <= 128 * MIB
            result = await sandbox.exec("echo alive", timeout=PATIENCE)
            assert (result.stdout, result.oom) == (b"alive\n", False)

    asyncio.run(main())


def test_what_is_written_counts_as_memory_wherever_it_can_be_written(
    local_host: LocalHost, local_image: Image
) -> None:
    needs(local_host, "memory")

    async def main() -> None:
        async with open_local(local_host, local_image, spec(memory_bytes=64 * MIB)) as sandbox:
            for path in ("/dev/shm/f", "/tmp/f", "/workspace/f"):  # noqa: S108 - inside
                await sandbox.exec(f"head -c 90M /dev/zero > {path}", timeout=PATIENCE)
            limits: Any = sandbox.description["limits"]
            assert limits["disk_bytes"] == 32 * MIB
            assert ((await sandbox.stats()).peak_memory_bytes or 0) <= 64 * MIB
            assert (await sandbox.exec("echo alive", timeout=PATIENCE)).stdout == b"alive\n"

    asyncio.run(main())


FORK_BOMB = """
import os, sys, time
for number in range(100_000):
    try:
        if os.fork() == 0:
            time.sleep(600)
    except OSError as error:
        sys.exit(f"{type(error).__name__} after {number}")
"""


def test_a_fork_bomb_ends_at_its_limit(local_host: LocalHost, local_image: Image) -> None:
    async def main() -> None:
        async with open_local(local_host, local_image, spec(pids=50)) as sandbox:
            result = await python(sandbox, FORK_BOMB)
            assert result.stderr.startswith(b"BlockingIOError after ")
            assert int(result.stderr.split()[-1]) <= 50
            if "pids" in local_host.cgroups.controllers:
                assert result.pids
            assert (await sandbox.changes("/workspace")).changed == ()
            result = await sandbox.exec("echo alive", timeout=PATIENCE)
            assert (result.stdout, result.pids) == (b"alive\n", False)

    asyncio.run(main())
    assert_nothing_is_left(local_host, set())


@pytest.mark.parametrize("path", ["/workspace", "/tmp", "/root", "/"])  # noqa: S108 - inside
def test_a_full_disk_is_told_and_can_be_emptied(
    local_host: LocalHost, local_image: Image, path: str
) -> None:
    async def main() -> None:
        async with open_local(local_host, local_image, spec(disk_bytes=16 * MIB)) as sandbox:
            result = await sandbox.exec(
                f"cd {path}; head -c 15M /dev/zero > f && echo fits", timeout=PATIENCE
            )
            assert (result.stdout, result.disk_full) == (b"fits\n", False), result
            result = await sandbox.exec(f"head -c 2M /dev/zero > {path}/g", timeout=PATIENCE)
            assert b"No space left on device" in result.stderr
            assert result.disk_full
            assert 16 * MIB - 4096 <= ((await sandbox.stats()).disk_bytes or 0) <= 16 * MIB
            result = await sandbox.exec(f"cd {path}; rm f g; echo > f", timeout=PATIENCE)
            assert (result.exit_code, result.disk_full) == (0, False)

    asyncio.run(main())


def test_inodes_run_out_as_a_full_disk(local_host: LocalHost, local_image: Image) -> None:
    async def main() -> None:
        async with open_local(local_host, local_image, spec(inodes=1000)) as sandbox:
            result = await sandbox.exec("seq 2000 | xargs touch; ls | wc -l", timeout=PATIENCE)
            assert b"No space left on device" in result.stderr
            assert 950 <= int(result.stdout) <= 1007, "with those of the image"
            assert result.disk_full

    asyncio.run(main())


HOARD = """
import os
kept = []
try:
    while True:
        kept.append(os.open("/dev/null", os.O_RDONLY))
except OSError as error:
    print(type(error).__name__, error.errno, len(kept))
"""


def test_descriptors_run_out_before_those_of_the_machine(
    local_host: LocalHost, local_image: Image
) -> None:
    async def main() -> list[bytes]:
        async with open_local(local_host, local_image, spec(pids=512)) as sandbox:
            return (await python(sandbox, HOARD)).stdout.split()

    kind, number, count = asyncio.run(main())
    assert (kind, int(number)) == (b"OSError", errno.EMFILE)
    machine = int(Path("/proc/sys/fs/file-max").read_text())
    assert 512 * int(count) <= max(machine / 2, 512 * 1024)


TAKE_ALL = """
import ctypes, os, signal, time
signal.pthread_sigmask(signal.SIG_BLOCK, {40})
library = ctypes.CDLL(None, use_errno=True)
watches = signals = queues = 0
while library.inotify_init() >= 0:
    watches += 1
while library.sigqueue(os.getpid(), 40, 0) == 0:
    signals += 1
while library.mq_open(b"/%d" % queues, os.O_CREAT | os.O_RDWR, 0o600, None) >= 0:
    queues += 1
print(watches, signals, queues, flush=True)
time.sleep(1000)
"""


def test_what_the_kernel_counts_for_a_user_is_not_taken_by_one_sandbox_alone(
    local_host: LocalHost, local_image: Image
) -> None:
    if not local_host.users:
        pytest.skip("this user cannot limit what its sandboxes share with all it runs")

    async def main() -> list[list[int]]:
        async with (
            open_local(local_host, local_image, spec()) as greedy,
            open_local(local_host, local_image, spec()) as modest,
        ):
            taken = []
            for sandbox in (greedy, modest):
                process = await sandbox.spawn(["python3", "-c", TAKE_ALL])
                taken.append([int(word) for word in (await process.read()).split()])
            return taken

    first, second = asyncio.run(main())
    assert min(first) >= 1
    assert min(second) >= 1


@pytest.mark.parametrize(("memory_bytes", "size"), [(2048 * MIB, 64), (64 * MIB, 8)])
def test_shared_memory_is_capped(
    local_host: LocalHost, local_image: Image, memory_bytes: int, size: int
) -> None:
    async def main() -> None:
        async with open_local(local_host, local_image, spec(memory_bytes=memory_bytes)) as sandbox:
            fill = "head -c {}M /dev/zero > /dev/shm/f"
            result = await sandbox.exec(fill.format(size + 1), timeout=PATIENCE)
            assert b"No space left on device" in result.stderr
            assert (await sandbox.exec(fill.format(size), timeout=PATIENCE)).exit_code == 0

    asyncio.run(main())


def test_a_spin_gets_the_processor_time_that_was_granted(
    local_host: LocalHost, local_image: Image
) -> None:
    needs(local_host, "cpu")

    async def main() -> float:
        async with open_local(local_host, local_image, spec(cpus=0.3)) as sandbox:
            result = await sandbox.exec("while :; do :; done & while :; do :; done", timeout=2)
            assert result.timed_out
            used = (await sandbox.stats()).cpu_seconds
            return used / result.wall_seconds

    assert asyncio.run(main()) < 0.45


def test_a_sandbox_ends_when_its_lifetime_is_over(
    local_host: LocalHost, local_image: Image
) -> None:
    async def main() -> None:
        async with open_local(local_host, local_image, spec(lifetime_seconds=0.5)) as sandbox:
            with pytest.raises(SandboxDead) as waiting:
                await sandbox.exec("sleep 1000", timeout=1000)
            assert "lifetime of 0.5 seconds" in waiting.value.reason
            with pytest.raises(SandboxDead, match="lifetime"):
                await sandbox.exec("true", timeout=PATIENCE)

    asyncio.run(main())
    assert_nothing_is_left(local_host, set())


def test_without_cgroups_it_is_said_what_is_not_enforced(
    no_cgroups: LocalHost, local_image: Image
) -> None:
    async def main() -> object:
        async with open_local(no_cgroups, local_image, spec(memory_bytes=256 * MIB)) as sandbox:
            return sandbox.description

    description: Any = asyncio.run(main())
    assert description["limits"] == {
        "network": "none",
        "pids": 512,
        "memory_bytes": None,
        "cpus": None,
        "disk_bytes": 128 * MIB,
        "inodes": 100_000,
    }
    assert description["per_process"] == {"memory_bytes": 256 * MIB}


def test_without_cgroups_each_process_has_its_limits(
    no_cgroups: LocalHost, local_image: Image
) -> None:
    limits = spec(memory_bytes=256 * MIB, pids=40, disk_bytes=16 * MIB)

    async def main() -> None:
        async with open_local(no_cgroups, local_image, limits) as sandbox:
            assert b"MemoryError" in (await python(sandbox, f"bytearray({512 * MIB})")).stderr
            assert (await python(sandbox, f"bytearray({128 * MIB})")).exit_code == 0
            assert b"BlockingIOError" in (await python(sandbox, FORK_BOMB)).stderr
            await sandbox.changes("/workspace")
            result = await sandbox.exec("head -c 20M /dev/zero > f", timeout=PATIENCE)
            assert b"No space left on device" in result.stderr
            stats = await sandbox.stats()
            assert stats.cpu_seconds > 0
            assert stats.oom_kills is None

    asyncio.run(main())


def test_on_a_disk_it_is_said_that_writing_is_not_limited_but_for_each_file(
    local_host: LocalHost, local_image: Image
) -> None:
    on_disk = replace(local_host, in_memory=False)

    async def main() -> None:
        async with open_local(on_disk, local_image, spec(disk_bytes=16 * MIB)) as sandbox:
            description: Any = sandbox.description
            assert description["limits"]["disk_bytes"] is None
            assert description["limits"]["inodes"] is None
            assert description["per_process"]["file_bytes"] == 16 * MIB
            result = await sandbox.exec("head -c 20M /dev/zero > f", timeout=PATIENCE)
            assert result.exit_code != 0
            with pytest.raises(PathRefused):
                await sandbox.write("g", bytes(17 * MIB))
            await sandbox.write("small", b"data")
            changes = await sandbox.changes("/workspace")
            assert "/workspace/small" in {change.path for change in changes.changed}
            assert (await sandbox.stats()).disk_bytes is None
            with pytest.raises(SandboxError, match="cannot be frozen"):
                await sandbox.snapshot()

    asyncio.run(main())
    assert_nothing_is_left(local_host, set())


def test_what_tells_of_the_machine_is_masked(local_host: LocalHost, local_image: Image) -> None:
    script = (
        "for f in kcore keys key-users kallsyms kmsg timer_list sched_debug sysrq-trigger; do"
        " cat /proc/$f && echo $f shows; done 2> /dev/null;"
        " for d in acpi scsi asound; do ls -A /proc/$d; done 2> /dev/null;"
        " for d in sys/kernel irq bus fs; do touch /proc/$d/x && echo $d; done 2> /dev/null;"
        " echo b > /proc/sysrq-trigger || ls -A /sys"
    )

    async def main() -> bytes:
        async with open_local(local_host, local_image, spec()) as sandbox:
            return (await sandbox.exec(script, timeout=PATIENCE)).stdout

    assert asyncio.run(main()) == b""


def test_without_cgroups_a_pipe_in_their_place_keeps_no_sandbox_from_starting(
    no_cgroups: LocalHost, local_image: Image
) -> None:
    pipes = "mkdir -p /sys/fs/cgroup; cd /sys/fs/cgroup; mkfifo memory.events pids.events"

    async def main() -> bytes:
        async with open_local(no_cgroups, local_image, spec()) as sandbox:
            await sandbox.exec(pipes, timeout=PATIENCE)
            async with asyncio.timeout(PATIENCE / 2):
                await sandbox.snapshot()
            return (await sandbox.exec("echo up", timeout=PATIENCE)).stdout

    assert asyncio.run(main()) == b"up\n"
