"""What becomes of processes: at a deadline, in the background, and when the sandbox is lost."""

import asyncio
from collections.abc import Awaitable
from typing import Any

import pytest

from gymsuite import Sandbox, SandboxSpec
from gymsuite.errors import SandboxDead

from .conftest import InSandbox, Provider

SPEC = SandboxSpec(image="fixture")
PATIENCE = 30.0
ALL_BYTES = bytes(range(256))


async def command_lines(sandbox: Sandbox) -> list[str]:
    """The words of all command lines in the sandbox."""
    script = "cat /proc/[0-9]*/cmdline 2>/dev/null"
    return (await sandbox.exec(script, timeout=PATIENCE)).stdout.decode().split("\0")


async def zombies(sandbox: Sandbox) -> list[bytes]:
    """The state lines of all zombies in the sandbox."""
    result = await sandbox.exec("cat /proc/[0-9]*/stat 2>/dev/null", timeout=PATIENCE)
    return [line for line in result.stdout.splitlines() if b") Z " in line]


async def appears(sandbox: Sandbox, path: str) -> None:
    while await sandbox.read(path) is None:  # noqa: ASYNC110 - it is in another world
        await asyncio.sleep(0.01)


def test_a_timeout_kills_a_whole_tree_and_spares_its_neighbours(in_sandbox: InSandbox) -> None:
    async def body(sandbox: Sandbox) -> Any:
        tree = "setsid sleep 4321 & (setsid sh -c 'sleep 4322 & sleep 4323' &) ; sleep 4324"
        neighbour = asyncio.create_task(
            sandbox.exec("sleep 1; echo unharmed", timeout=PATIENCE),
        )
        result = await sandbox.exec(tree, timeout=0.5)
        return result, await command_lines(sandbox), await neighbour

    result, words, neighbour = in_sandbox(body)
    assert result.timed_out
    assert not {"4321", "4322", "4323", "4324"} & set(words)
    assert neighbour.stdout == b"unharmed\n"


def test_a_tree_that_forks_without_end_dies_at_its_deadline(in_sandbox: InSandbox) -> None:
    async def body(sandbox: Sandbox) -> Any:
        # The shell itself becomes the sleep: it may not be able to fork once more.
        bomb = "b() { b | b & }; { b; } & exec sleep 1000"
        result = await sandbox.exec(bomb, timeout=1)
        after = await sandbox.exec("echo alive", timeout=PATIENCE)
        return result, after

    result, after = in_sandbox(body)
    assert result.timed_out
    assert after.stdout == b"alive\n"


def test_a_background_process_outlives_its_command_and_does_not_hold_it_up(
    in_sandbox: InSandbox,
) -> None:
    async def body(sandbox: Sandbox) -> Any:
        # Both hold the command's stdout; one is a session of its own.
        script = "sleep 4351 & setsid sleep 4352 & echo started"
        result = await sandbox.exec(script, timeout=PATIENCE)
        await sandbox.exec("sleep 0.2", timeout=PATIENCE)
        return result, await command_lines(sandbox)

    result, words = in_sandbox(body)
    assert (result.stdout, result.timed_out) == (b"started\n", False)
    assert {"4351", "4352"} <= set(words)


def test_a_background_process_may_go_on_writing_to_a_stream_that_nobody_reads(
    in_sandbox: InSandbox,
) -> None:
    async def body(sandbox: Sandbox) -> Any:
        script = "(sleep 0.3; seq 1 100000; touch wrote) & echo started"
        result = await sandbox.exec(script, timeout=PATIENCE)
        await asyncio.wait_for(appears(sandbox, "wrote"), PATIENCE)
        return result

    assert in_sandbox(body).stdout == b"started\n"


@pytest.mark.parametrize("first", ["true", "kill -9 $PPID"])
def test_orphans_leave_no_zombies_while_other_commands_run(
    in_sandbox: InSandbox, first: str
) -> None:
    async def body(sandbox: Sandbox) -> Any:
        wait = "until [ -e stop ]; do sleep 0.1; done"
        busy = asyncio.create_task(sandbox.exec(wait, timeout=2 * PATIENCE))
        orphans = f"{first}; i=0; while [ $i -lt 100 ]; do (sleep 0.25 &); i=$((i+1)); done"
        await sandbox.exec(orphans, timeout=PATIENCE)
        async with asyncio.timeout(PATIENCE):
            while "0.25" in await command_lines(sandbox) or await zombies(sandbox):  # noqa: ASYNC110
                await asyncio.sleep(0.1)
        still_busy = not busy.done()
        await sandbox.write("stop", b"")
        return still_busy, await busy

    still_busy, busy = in_sandbox(body)
    assert still_busy
    assert not busy.timed_out


@pytest.mark.parametrize("attack", ["kill -9 1", "kill -9 -1", "kill -9 $PPID", "kill -STOP $PPID"])
def test_a_command_that_kills_all_it_can_leaves_the_sandbox_usable(
    in_sandbox: InSandbox, attack: str
) -> None:
    async def body(sandbox: Sandbox) -> Any:
        first = await sandbox.exec(f"{attack}; echo survived; exit 7", timeout=2)
        return first, await sandbox.exec("echo alive", timeout=PATIENCE)

    first, after = in_sandbox(body)
    # Without its supervisor it is ended, unless it is the first to end.
    assert first.exit_code in {7, 128 + 9} or first.timed_out
    assert after.stdout == b"alive\n"


def test_a_command_that_killed_its_supervisor_still_meets_its_deadline(
    in_sandbox: InSandbox,
) -> None:
    async def body(sandbox: Sandbox) -> Any:
        script = "kill -9 $PPID; setsid sleep 4331 & sleep 4332"
        result = await sandbox.exec(script, timeout=0.5)
        return result, await command_lines(sandbox)

    result, words = in_sandbox(body)
    assert result.timed_out
    assert not {"4331", "4332"} & set(words)


def test_a_command_that_stops_its_supervisor_harms_no_neighbour(in_sandbox: InSandbox) -> None:
    async def body(sandbox: Sandbox) -> Any:
        neighbour = asyncio.create_task(sandbox.exec("sleep 2; echo unharmed", timeout=PATIENCE))
        stopped = await sandbox.exec("kill -STOP $PPID", timeout=0.2)
        return stopped, await neighbour

    stopped, neighbour = in_sandbox(body)
    assert stopped.timed_out
    assert neighbour.stdout == b"unharmed\n"


def test_cpu_time_counts_whole_trees(in_sandbox: InSandbox) -> None:
    async def body(sandbox: Sandbox) -> Any:
        burn = "i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done"
        result = await sandbox.exec(f"sh -c '{burn}'", timeout=PATIENCE)
        return result, await sandbox.stats()

    result, stats = in_sandbox(body)
    assert result.cpu_seconds > 0.01
    assert stats.cpu_seconds >= result.cpu_seconds
    assert stats.peak_memory_bytes is None or stats.peak_memory_bytes > 100_000


def test_a_lost_sandbox_is_an_error_for_waiting_and_for_later_calls(provider: Provider) -> None:
    async def main() -> tuple[object, ...]:
        async with provider.open(SPEC) as sandbox:
            waiting = asyncio.create_task(sandbox.exec("sleep 1000", timeout=PATIENCE))
            await sandbox.exec("true", timeout=PATIENCE)
            provider.kill(sandbox)
            calls = (
                waiting,
                sandbox.exec("true", timeout=PATIENCE),
                sandbox.read("plain.txt"),
                sandbox.write("new.txt", b""),
                sandbox.changes("/workspace"),
                sandbox.stats(),
            )
            return tuple([await asyncio.wait_for(caught(call), PATIENCE) for call in calls])

    async def caught(call: Awaitable[object]) -> type:
        with pytest.raises(SandboxDead) as error:
            await call
        return error.type

    assert set(asyncio.run(main())) == {SandboxDead}


def test_a_cancelled_command_is_killed_and_the_sandbox_goes_on(in_sandbox: InSandbox) -> None:
    async def body(sandbox: Sandbox) -> Any:
        task = asyncio.create_task(sandbox.exec("touch up; sleep 4341", timeout=PATIENCE))
        await appears(sandbox, "up")
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        while "4341" in await command_lines(sandbox):  # noqa: ASYNC110 - it is in another world
            await asyncio.sleep(0.01)
        return await sandbox.exec("echo alive", timeout=PATIENCE)

    assert in_sandbox(body).stdout == b"alive\n"
