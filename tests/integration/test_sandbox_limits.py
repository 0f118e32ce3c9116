"""Which limit a command hit, and who it is where the list of users is hostile."""

import asyncio
import os
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from gymsuite import ExecResult, Sandbox, SandboxError, SandboxSpec

from .conftest import Provider

PATIENCE = 60.0
SMALL = SandboxSpec(image="fixture", memory_bytes=256 << 20, disk_bytes=32 << 20, pids=48)


def in_small(provider: Provider, body: Callable[[Sandbox], Awaitable[Any]]) -> Any:
    async def main() -> Any:
        async with provider.open(SMALL) as sandbox:
            return await body(sandbox)

    return asyncio.run(main())


async def is_counted(sandbox: Sandbox) -> bool:
    """Whether this machine has cgroups that a sandbox is in."""
    return (await sandbox.stats()).oom_kills is not None


def flags(result: ExecResult) -> tuple[bool, bool, bool]:
    return result.oom, result.disk_full, result.pids


def test_a_command_that_eats_all_memory_is_told_of_and_the_sandbox_lives(
    provider: Provider,
) -> None:
    async def body(sandbox: Sandbox) -> Any:
        if not await is_counted(sandbox):
            pytest.skip("nothing counts memory here")
        hungry = await sandbox.exec("head -c 900m /dev/zero | tail", timeout=PATIENCE)
        after = await sandbox.exec("echo alive", timeout=PATIENCE)
        kills = (await sandbox.stats()).oom_kills
        return flags(hungry), flags(after), after.stdout, kills

    *told, kills = in_small(provider, body)
    assert told == [(True, False, False), (False, False, False), b"alive\n"]
    assert kills >= 1


def test_memory_eaten_again_and_again_never_takes_the_exec_server(provider: Provider) -> None:
    async def body(sandbox: Sandbox) -> Any:
        if not await is_counted(sandbox):
            pytest.skip("nothing counts memory here")
        hogs = "for i in 1 2 3 4; do (head -c 900m /dev/zero | tail) & done; wait"
        return [(await sandbox.exec(hogs, timeout=PATIENCE)).oom for _ in range(3)]

    assert in_small(provider, body) == [True] * 3


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may make a process more important")
def test_the_exec_server_comes_before_its_commands(provider: Provider) -> None:
    async def body(sandbox: Sandbox) -> Any:
        script = "cut -d ' ' -f 19 /proc/1/stat; nice; renice -n -1 $$ > /dev/null 2>&1 || echo no"
        return (await sandbox.exec(script, timeout=PATIENCE)).stdout.split()

    assert in_small(provider, body) == [b"-20", b"0", b"no"]


def test_a_full_disk_is_told_of_until_there_is_room(provider: Provider) -> None:
    async def body(sandbox: Sandbox) -> Any:
        filled = await sandbox.exec("head -c 100m /dev/zero > f", timeout=PATIENCE)
        used = (await sandbox.stats()).disk_bytes
        emptied = await sandbox.exec("rm f", timeout=PATIENCE)
        return filled.exit_code != 0, flags(filled), flags(emptied), used

    *told, used = in_small(provider, body)
    assert told == [True, (False, True, False), (False, False, False)]
    assert used is not None
    assert 30 << 20 < used < 64 << 20


def test_too_many_processes_are_told_of(provider: Provider) -> None:
    async def body(sandbox: Sandbox) -> Any:
        many = "(for i in $(seq 100); do sleep 100 & done); exec sleep 100"
        result = await sandbox.exec(many, timeout=1)
        after = await sandbox.exec("echo alive", timeout=PATIENCE)
        return result.pids or not await is_counted(sandbox), flags(after), after.stdout

    assert in_small(provider, body) == (True, (False, False, False), b"alive\n")


@pytest.mark.local
def test_a_hostile_list_of_users_confuses_nobody(local: Provider) -> None:
    lines = [b"x:" * 9, b"\0:::\n", b"a:b:99999999999:1\n", b"::\n", b"who:x:0x1:1\n", b"\n" * 999]
    hostile = b"".join(lines) * 900 + b"who:x:0:0"

    async def main() -> Any:
        async with local.open(SandboxSpec(image="fixture")) as sandbox:
            await sandbox.write("/etc/passwd", hostile[: 1 << 19] + b"\nwho:x:0:0:")
            found = await sandbox.exec("id -u", timeout=PATIENCE, user="who")
            await sandbox.exec("rm /etc/passwd; mkfifo /etc/passwd", timeout=PATIENCE)
            with pytest.raises(SandboxError, match="no such user"):
                await sandbox.exec("id -u", timeout=PATIENCE, user="who")
            await sandbox.exec("rm /etc/passwd; ln -s /dev/zero /etc/passwd", timeout=PATIENCE)
            with pytest.raises(SandboxError, match="no such user"):
                await sandbox.exec("id -u", timeout=PATIENCE, user="who")
            return found.stdout

    assert asyncio.run(main()) == b"0\n"
