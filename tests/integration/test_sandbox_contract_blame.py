"""What a path can be made to answer is the doing of whoever made it, never a broken sandbox."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from gymsuite import Sandbox, SandboxSpec
from gymsuite.errors import PathRefused

from .conftest import InSandbox, Provider

PATIENCE = 30.0


@pytest.mark.parametrize("path", ["/proc/self/mem", "/proc/1/mem", "planted"])
def test_a_pseudo_file_that_cannot_be_read_or_written_is_refused(
    in_sandbox: InSandbox, path: str
) -> None:
    async def body(sandbox: Sandbox) -> None:
        await sandbox.exec("ln -s /proc/self/mem planted", timeout=PATIENCE)
        with pytest.raises(PathRefused):
            await sandbox.read(path)
        with pytest.raises(PathRefused):
            await sandbox.write(path, b"x")

    in_sandbox(body)


@pytest.mark.parametrize("path", ["/dev/shm/new", "/dev/shm/new/below", "planted"])  # noqa: S108 - the sandbox's own
def test_a_file_system_that_a_command_filled_is_no_full_disk(
    in_sandbox: InSandbox, path: str
) -> None:
    async def body(sandbox: Sandbox) -> None:
        fill = "head -c 100000000 /dev/zero > /dev/shm/fill; ln -s /dev/shm/new planted"
        await sandbox.exec(fill, timeout=PATIENCE)
        with pytest.raises(PathRefused, match="cannot write .*No space left"):
            await sandbox.write(path, b"x" * 100_000)

    in_sandbox(body)


@pytest.mark.parametrize("fill", ["head -c 1G /dev/zero > fill", "seq 1000000 | xargs touch"])
def test_a_disk_that_a_command_filled_refuses_writes_and_can_be_emptied(
    provider: Provider, fill: str, tmp_path: Path
) -> None:
    spec = SandboxSpec(image="fixture", disk_bytes=32 << 20, inodes=5000)
    (tmp_path / "file").write_bytes(b"x" * 100_000)

    async def main() -> bytes | None:
        async with provider.open(spec) as sandbox:
            await sandbox.exec(f"mkdir full; cd full; {fill}", timeout=PATIENCE)
            with pytest.raises(PathRefused, match="No space left"):
                await sandbox.write("new", b"x" * 100_000)
            with pytest.raises(PathRefused, match="No space left"):
                await sandbox.upload(tmp_path, "up")
            await sandbox.exec("rm -r full", timeout=PATIENCE)
            await sandbox.upload(tmp_path, "up")
            return await sandbox.read("up/file")

    assert asyncio.run(main()) == b"x" * 100_000


def test_more_than_a_request_can_carry_is_refused_and_the_sandbox_lives(
    in_sandbox: InSandbox,
) -> None:
    async def body(sandbox: Sandbox) -> Any:
        huge = "x" * (260 << 20)
        with pytest.raises(PathRefused, match="at most"):
            await sandbox.write("huge", huge.encode())
        with pytest.raises(PathRefused, match="NUL"):
            await sandbox.write("a\0b", b"")
        refused = await sandbox.exec(["echo", huge], timeout=PATIENCE)
        return refused, await sandbox.exec("echo alive", timeout=PATIENCE)

    refused, alive = in_sandbox(body)
    assert refused.exit_code == 126
    assert b"at most" in refused.stderr
    assert alive.stdout == b"alive\n"


def test_sockets_reach_no_further_than_the_sandbox(in_sandbox: InSandbox) -> None:
    """A virtual machine's own channel to its host, AF_VSOCK, belongs to no network namespace."""
    script = (
        "import socket\n"
        "for family in range(1, 46):\n"
        "    for kind in (1, 2, 3):\n"
        "        try:\n"
        "            socket.socket(family, kind).close()\n"
        "            print(family)\n"
        "            break\n"
        "        except OSError:\n"
        "            pass\n"
    )

    async def body(sandbox: Sandbox) -> Any:
        return await sandbox.exec(["python3", "-c", script], timeout=PATIENCE)

    unix, inet, inet6, netlink = "1", "2", "10", "16"
    found = set(in_sandbox(body).stdout.decode().split())
    assert {unix, inet} <= found <= {unix, inet, inet6, netlink}


def test_many_refusals_leave_the_sandbox_alive(in_sandbox: InSandbox) -> None:
    async def body(sandbox: Sandbox) -> Any:
        paths = [f"/proc/{name}" for name in ("self/fd/3", "self/fd/4", "kcore", "self/attr/exec")]
        for path in paths:
            for verb in (sandbox.read(path), sandbox.write(path, b"x")):
                try:
                    await asyncio.wait_for(verb, PATIENCE)
                except PathRefused:
                    continue
        return await sandbox.exec("echo alive", timeout=PATIENCE)

    assert in_sandbox(body).stdout == b"alive\n"


HOLD_MEMORY = """
import os
held = os.memfd_create("held", 0)
for _ in range(90):
    os.write(held, b"x" * 1_000_000)
os.set_inheritable(held, True)
if os.fork() == 0:
    os.setsid()
    for stream in (1, 2):
        os.dup2(os.open("/dev/null", os.O_RDWR), stream)
    os.execv("/bin/sleep", ["sleep", "1000"])
"""


@pytest.mark.docker
def test_memory_that_a_small_process_holds_is_not_paid_for_by_the_exec_server(
    docker: Provider,
) -> None:
    async def body() -> Any:
        async with docker.open(SandboxSpec(image="fixture", memory_bytes=128 << 20)) as sandbox:
            await sandbox.exec("head -c 60000000 /dev/zero > big", timeout=PATIENCE)
            await sandbox.exec(["python3", "-c", HOLD_MEMORY], timeout=PATIENCE)
            data = await sandbox.read("big")
            return len(data or b""), await sandbox.exec("echo alive", timeout=PATIENCE)

    size, alive = asyncio.run(body())
    assert size == 60_000_000
    assert alive.stdout == b"alive\n"
