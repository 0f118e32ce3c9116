"""What a command in a sandbox can rely on, whatever the provider."""

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


async def appears(sandbox: Sandbox, path: str) -> None:
    while await sandbox.read(path) is None:  # noqa: ASYNC110 - it is in another world
        await asyncio.sleep(0.01)


def test_a_command_has_its_exit_code_and_its_two_streams_apart(in_sandbox: InSandbox) -> None:
    async def body(sandbox: Sandbox) -> Any:
        return await sandbox.exec("echo out; echo err >&2; exit 3", timeout=PATIENCE)

    result = in_sandbox(body)
    assert result[:3] == (3, b"out\n", b"err\n")
    assert not result.timed_out
    assert not result.truncated
    assert result.wall_seconds > 0


def test_a_command_starts_in_the_workdir_with_the_environment_it_is_given(
    in_sandbox: InSandbox,
) -> None:
    async def body(sandbox: Sandbox) -> Any:
        script = 'pwd; echo "$HOME $GREETING"'
        return await sandbox.exec(script, timeout=PATIENCE, env={"GREETING": "hi"})

    assert in_sandbox(body).stdout == b"/workspace\n/root hi\n"


def test_a_list_is_a_program_with_arguments_that_no_shell_reads(in_sandbox: InSandbox) -> None:
    async def body(sandbox: Sandbox) -> Any:
        return await sandbox.exec(["echo", "$HOME", "a  b"], timeout=PATIENCE, cwd="/usr")

    assert in_sandbox(body).stdout == b"$HOME a  b\n"


def test_a_signal_is_128_and_its_number(in_sandbox: InSandbox) -> None:
    async def body(sandbox: Sandbox) -> Any:
        return await sandbox.exec("kill -TERM $$", timeout=PATIENCE)

    assert in_sandbox(body).exit_code == 128 + 15


def test_a_command_that_exits_124_is_not_a_timeout(in_sandbox: InSandbox) -> None:
    async def body(sandbox: Sandbox) -> Any:
        exited = await sandbox.exec("exit 124", timeout=PATIENCE)
        timed_out = await sandbox.exec("echo before; sleep 1000", timeout=0.2)
        return exited, timed_out

    exited, timed_out = in_sandbox(body)
    assert (exited.exit_code, exited.timed_out) == (124, False)
    assert timed_out.timed_out
    assert timed_out.exit_code != 0
    assert timed_out.stdout == b"before\n"


def test_commands_run_at_the_same_time(in_sandbox: InSandbox) -> None:
    async def body(sandbox: Sandbox) -> Any:
        await sandbox.exec("mkfifo here there", timeout=PATIENCE)
        # Each waits for the other, so neither could end alone.
        return await asyncio.gather(
            sandbox.exec("echo a > here; cat there", timeout=PATIENCE),
            sandbox.exec("cat here; echo b > there", timeout=PATIENCE),
        )

    first, second = in_sandbox(body)
    assert (first.stdout, second.stdout) == (b"b\n", b"a\n")


def test_nul_and_invalid_utf8_come_back_as_they_are(in_sandbox: InSandbox) -> None:
    async def body(sandbox: Sandbox) -> Any:
        return await sandbox.exec(["cat"], stdin=ALL_BYTES, timeout=PATIENCE)

    assert in_sandbox(body).stdout == ALL_BYTES


def test_no_stdin_is_an_end_of_file_at_once(in_sandbox: InSandbox) -> None:
    async def body(sandbox: Sandbox) -> Any:
        return await sandbox.exec("cat; echo done", timeout=PATIENCE)

    result = in_sandbox(body)
    assert result.stdout == b"done\n"
    assert not result.timed_out


def test_a_large_stdin_arrives_whole_or_is_left_unread(in_sandbox: InSandbox) -> None:
    async def body(sandbox: Sandbox) -> Any:
        data = b"x" * 20_000_000
        counted = await sandbox.exec(["wc", "-c"], stdin=data, timeout=PATIENCE)
        unread = await sandbox.exec("exit 5", stdin=data, timeout=PATIENCE)
        return counted, unread

    counted, unread = in_sandbox(body)
    assert counted.stdout.strip() == b"20000000"
    assert (unread.exit_code, unread.timed_out) == (5, False)


def test_a_hundred_megabytes_keep_their_head_and_tail_in_bounded_memory(
    in_sandbox: InSandbox,
) -> None:
    async def body(sandbox: Sandbox) -> Any:
        result = await sandbox.exec("seq 1 12000000", timeout=120, max_output=1 << 20)
        status = await sandbox.read("/proc/1/status")
        return result, status

    result, status = in_sandbox(body)
    assert result.exit_code == 0
    assert result.truncated
    assert len(result.stdout) == 1 << 20
    assert result.stdout.startswith(b"1\n2\n3\n")
    assert result.stdout.endswith(b"\n11999999\n12000000\n")
    peak = next(line for line in status.splitlines() if line.startswith(b"VmHWM"))
    assert int(peak.split()[1]) < 16_000, "kB of the exec server"


def test_output_of_exactly_the_limit_is_not_truncated(in_sandbox: InSandbox) -> None:
    async def body(sandbox: Sandbox) -> Any:
        script = "printf 12345; printf 123456 >&2"
        return [await sandbox.exec(script, timeout=PATIENCE, max_output=n) for n in (6, 5, 0)]

    whole, cut, nothing = in_sandbox(body)
    assert (whole.stdout, whole.stderr, whole.truncated) == (b"12345", b"123456", False)
    assert (cut.stdout, cut.stderr, cut.truncated) == (b"12345", b"12456", True)
    assert (nothing.stdout, nothing.stderr, nothing.truncated) == (b"", b"", True)


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
        bomb = "b() { b | b & }; b; sleep 1000"
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
        busy = asyncio.create_task(sandbox.exec("sleep 1.5", timeout=PATIENCE))
        orphans = f"{first}; i=0; while [ $i -lt 100 ]; do (sleep 0.2 &); i=$((i+1)); done"
        await sandbox.exec(orphans, timeout=PATIENCE)
        count = "sleep 0.7; cat /proc/[0-9]*/stat 2>/dev/null | grep -c ') Z '"
        zombies = await sandbox.exec(count, timeout=PATIENCE)
        still_busy = not busy.done()
        await busy
        return zombies, still_busy

    zombies, still_busy = in_sandbox(body)
    assert zombies.stdout == b"0\n"
    assert still_busy


@pytest.mark.parametrize("attack", ["kill -9 1", "kill -9 -1", "kill -9 $PPID", "kill -STOP $PPID"])
def test_a_command_that_kills_all_it_can_leaves_the_sandbox_usable(
    in_sandbox: InSandbox, attack: str
) -> None:
    async def body(sandbox: Sandbox) -> Any:
        first = await sandbox.exec(f"{attack}; echo survived; exit 7", timeout=2)
        return first, await sandbox.exec("echo alive", timeout=PATIENCE)

    first, after = in_sandbox(body)
    assert first.exit_code == 7 or first.timed_out
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


def test_a_missing_program_is_127_and_one_that_may_not_run_126(in_sandbox: InSandbox) -> None:
    async def body(sandbox: Sandbox) -> Any:
        return [
            await sandbox.exec([name], timeout=PATIENCE)
            for name in ("no-such-program", "/no/such", "/etc/passwd")
        ]

    missing, gone, forbidden = in_sandbox(body)
    assert (missing.exit_code, gone.exit_code, forbidden.exit_code) == (127, 127, 126)
    assert b"no-such-program" in missing.stderr
    assert b"Permission denied" in forbidden.stderr


def test_a_missing_working_directory_is_told_to_the_command(in_sandbox: InSandbox) -> None:
    async def body(sandbox: Sandbox) -> Any:
        missing = await sandbox.exec("echo never", cwd="/no/such", timeout=PATIENCE)
        return missing, await sandbox.exec("echo alive", timeout=PATIENCE)

    missing, after = in_sandbox(body)
    assert missing.exit_code != 0
    assert b"/no/such" in missing.stderr
    assert missing.stdout == b""
    assert after.stdout == b"alive\n"


def test_a_command_that_no_system_call_can_carry_is_refused_without_harm(
    in_sandbox: InSandbox,
) -> None:
    async def body(sandbox: Sandbox) -> Any:
        nul = await sandbox.exec("echo a\0b", timeout=PATIENCE)
        long = await sandbox.exec("true " + "x" * 3_000_000, timeout=PATIENCE)
        lone = await sandbox.exec("echo \udc80\ud800", timeout=PATIENCE)
        return nul, long, lone

    nul, long, lone = in_sandbox(body)
    assert (nul.exit_code, long.exit_code, lone.exit_code) == (126, 126, 0)
    assert b"NUL" in nul.stderr
    assert b"too long" in long.stderr


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
