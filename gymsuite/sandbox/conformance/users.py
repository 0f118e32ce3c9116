"""Who a command is: whom it was told to be, with no more rights than it needs, or nobody."""

from collections.abc import Awaitable

from gymsuite.errors import GymsuiteError, SandboxDead, SandboxError, UsageError
from gymsuite.sandbox.conformance.case import (
    PATIENCE,
    Case,
    NotKept,
    NotOffered,
    alive,
    expect,
    inside,
    same,
)
from gymsuite.sandbox.protocol import ExecResult, Sandbox

GROUP = "users"


async def _as(sandbox: Sandbox, user: str, script: str, timeout: float = PATIENCE) -> ExecResult:
    try:
        return await sandbox.exec(script, timeout=timeout, user=user)
    except SandboxDead:
        raise
    except SandboxError as error:
        if error.retryable:
            raise
        raise NotOffered(str(error)) from error


async def _error(verb: Awaitable[object], kind: type[GymsuiteError], saying: str) -> None:
    try:
        found = await verb
    except kind as error:
        expect(saying in str(error), error)
        return
    raise NotKept(f"no error, but {found!r}")


async def a_command_is_the_user_that_it_should_be_without_a_capability(sandbox: Sandbox) -> None:
    none = dict.fromkeys((b"CapInh", b"CapPrm", b"CapEff", b"CapBnd", b"CapAmb"), 0)
    for user, ids in (
        ("nobody", [b"65534"] * 2),
        ("65534", [b"65534"] * 2),
        ("1234:5678", [b"1234", b"5678"]),
    ):
        script = "id -u; id -g; grep -h ^Cap /proc/self/status"
        first, second, *rest = (await _as(sandbox, user, script)).stdout.splitlines()
        same([first, second], ids)
        found = (line.partition(b":\t") for line in rest)
        same({name: int(value, 16) for name, _, value in found}, none)


async def root_is_a_user_that_every_sandbox_has(sandbox: Sandbox) -> None:
    for name in ("root", "0", "root:root", "0:0"):
        same((await sandbox.exec("id -u", timeout=PATIENCE, user=name)).stdout, b"0\n")
    same(await (await sandbox.spawn("id -g", user="root")).read(), b"0\n")


async def a_user_that_there_is_not_is_an_error_and_the_sandbox_lives(sandbox: Sandbox) -> None:
    for user in ("nobody-such", " ", ":", "root:nogroup-such", "-1", "9" * 12):
        await _error(sandbox.exec("id", timeout=PATIENCE, user=user), SandboxError, "no such")
        await _error(sandbox.spawn("id", user=user), SandboxError, "no such")
    await alive(sandbox)


async def what_another_user_runs_ends_at_its_deadline_and_with_all_others(
    sandbox: Sandbox,
) -> None:
    tree = "setsid sleep 4411 & exec sleep 4412"
    late = await _as(sandbox, "nobody", tree, 0.3)
    expect(late.timed_out, late)
    process = await sandbox.spawn(tree, user="nobody")
    await sandbox.changes("/workspace")
    same((await process.wait()).exit_code, 128 + 9)
    left = await sandbox.exec("cat /proc/[0-9]*/cmdline", timeout=PATIENCE)
    same(left.stdout.count(b"sleep"), 0)


async def a_user_without_a_name_is_not_root(sandbox: Sandbox) -> None:
    await _error(sandbox.exec("id", timeout=PATIENCE, user=""), UsageError, "no name")


CASES: tuple[Case, ...] = tuple(
    inside(GROUP, body)
    for body in (
        a_command_is_the_user_that_it_should_be_without_a_capability,
        root_is_a_user_that_every_sandbox_has,
        a_user_that_there_is_not_is_an_error_and_the_sandbox_lives,
        what_another_user_runs_ends_at_its_deadline_and_with_all_others,
        a_user_without_a_name_is_not_root,
    )
)
