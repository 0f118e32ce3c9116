"""Which limit a command hit, and as whom it ran."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from gymsuite import ExecResult, Sandbox, SandboxError, SandboxSpec, UsageError

from .conftest import InSandbox, Provider

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


def test_a_command_is_the_user_that_it_should_be_or_says_why_not(in_sandbox: InSandbox) -> None:
    async def body(sandbox: Sandbox) -> Any:
        said = []
        for user in ("nobody", "65534", "1234:5678"):
            try:
                script = "id -u; id -g; grep -h ^Cap /proc/self/status"
                result = await sandbox.exec(script, timeout=PATIENCE, user=user)
            except SandboxError as error:
                return sandbox.description["provider"], error.retryable, str(error)
            said.append(result.stdout.split())
        return said

    said = in_sandbox(body)
    if isinstance(said, tuple):
        assert said[:2] == ("local", False)
        assert "cannot change users" in said[2]
    else:
        without = [
            b"%s:" % name for name in (b"CapInh", b"CapPrm", b"CapEff", b"CapBnd", b"CapAmb")
        ]
        none = [word for name in without for word in (name, b"0" * 16)]
        assert [line[:2] for line in said] == [[b"65534"] * 2] * 2 + [[b"1234", b"5678"]]
        assert [line[2:] for line in said] == [none] * 3


def test_root_is_a_user_that_every_sandbox_has(in_sandbox: InSandbox) -> None:
    async def body(sandbox: Sandbox) -> Any:
        names = ("root", "0", "root:root", "0:0")
        results = [await sandbox.exec("id -u", timeout=PATIENCE, user=name) for name in names]
        process = await sandbox.spawn("id -g", user="root")
        return [result.stdout for result in results], await process.read()

    assert in_sandbox(body) == ([b"0\n"] * 4, b"0\n")


@pytest.mark.parametrize("user", ["nobody-such", " ", ":", "root:nogroup-such", "-1", "9" * 12])
def test_a_user_that_there_is_not_is_an_error_and_the_sandbox_lives(
    in_sandbox: InSandbox, user: str
) -> None:
    async def body(sandbox: Sandbox) -> Any:
        with pytest.raises(SandboxError, match="no such"):
            await sandbox.exec("id", timeout=PATIENCE, user=user)
        with pytest.raises(SandboxError, match="no such"):
            await sandbox.spawn("id", user=user)
        return (await sandbox.exec("echo alive", timeout=PATIENCE)).stdout

    assert in_sandbox(body) == b"alive\n"


def test_what_another_user_runs_ends_at_its_deadline_and_with_all_others(
    in_sandbox: InSandbox,
) -> None:
    async def body(sandbox: Sandbox) -> Any:
        tree = "setsid sleep 1000 & exec sleep 1000"
        try:
            late = await sandbox.exec(tree, timeout=0.3, user="nobody")
        except SandboxError:
            return None
        process = await sandbox.spawn(tree, user="nobody")
        await sandbox.changes("/workspace")
        script = "cat /proc/[0-9]*/cmdline"
        left = (await sandbox.exec(script, timeout=PATIENCE)).stdout.count(b"sleep")
        return late.timed_out, (await process.wait()).exit_code, left

    assert in_sandbox(body) in (None, (True, 137, 0))


def test_a_user_without_a_name_is_not_root(in_sandbox: InSandbox) -> None:
    async def body(sandbox: Sandbox) -> None:
        with pytest.raises(UsageError, match="no name"):
            await sandbox.exec("id", timeout=PATIENCE, user="")

    in_sandbox(body)


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
