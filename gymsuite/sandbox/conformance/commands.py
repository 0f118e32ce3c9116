"""What a command in a sandbox can rely on."""

import asyncio

from gymsuite.sandbox.conformance.case import (
    PATIENCE,
    Case,
    alive,
    done,
    expect,
    inside,
    python,
    same,
    shell,
)
from gymsuite.sandbox.conformance.waiting import appears, words_vanish
from gymsuite.sandbox.protocol import Sandbox

GROUP = "commands"


async def a_command_has_its_exit_code_and_its_two_streams_apart(sandbox: Sandbox) -> None:
    result = await shell(sandbox, "echo out; echo err >&2; exit 3")
    same(result[:5], (3, b"out\n", b"err\n", False, False))
    expect(result.wall_seconds > 0, result)


async def a_command_starts_in_the_workdir_with_the_environment_it_is_given(
    sandbox: Sandbox,
) -> None:
    script = 'pwd; echo "$HOME $GREETING"'
    result = await sandbox.exec(script, timeout=PATIENCE, env={"GREETING": "hi"})
    same(result.stdout, b"/workspace\n/root hi\n")


async def a_list_is_a_program_with_arguments_that_no_shell_reads(sandbox: Sandbox) -> None:
    result = await sandbox.exec(["echo", "$HOME", "a  b"], timeout=PATIENCE, cwd="/usr")
    same(result.stdout, b"$HOME a  b\n")


async def a_signal_is_128_and_its_number(sandbox: Sandbox) -> None:
    same((await shell(sandbox, "kill -TERM $$")).exit_code, 128 + 15)


async def a_command_that_exits_124_is_not_a_timeout(sandbox: Sandbox) -> None:
    exited = await shell(sandbox, "exit 124")
    same((exited.exit_code, exited.timed_out), (124, False))
    late = await shell(sandbox, "echo before; sleep 1000", timeout=0.2)
    expect(late.timed_out and late.exit_code != 0, late)
    same(late.stdout, b"before\n")


async def commands_run_at_the_same_time(sandbox: Sandbox) -> None:
    await done(sandbox, "mkfifo here there")
    # Each waits for the other, so neither could end alone.
    first, second = await asyncio.gather(
        shell(sandbox, "echo a > here; cat there"), shell(sandbox, "cat here; echo b > there")
    )
    same((first.stdout, second.stdout), (b"b\n", b"a\n"))


async def a_missing_program_is_127_and_one_that_may_not_run_126(sandbox: Sandbox) -> None:
    names = ("no-such-program", "/no/such", "/etc/passwd")
    missing, gone, forbidden = [await sandbox.exec([name], timeout=PATIENCE) for name in names]
    same((missing.exit_code, gone.exit_code, forbidden.exit_code), (127, 127, 126))
    expect(b"no-such-program" in missing.stderr, missing)
    expect(b"Permission denied" in forbidden.stderr, forbidden)


async def a_missing_working_directory_is_told_to_the_command(sandbox: Sandbox) -> None:
    missing = await sandbox.exec("echo never", cwd="/no/such", timeout=PATIENCE)
    expect(missing.exit_code != 0 and b"/no/such" in missing.stderr, missing)
    same(missing.stdout, b"")
    await alive(sandbox)


async def a_command_that_no_system_call_can_carry_is_refused_without_harm(
    sandbox: Sandbox,
) -> None:
    nul = await shell(sandbox, "echo a\0b")
    long = await shell(sandbox, "true " + "x" * 3_000_000)
    lone = await shell(sandbox, "echo \udc80\ud800")
    same((nul.exit_code, long.exit_code, lone.exit_code), (126, 126, 0))
    expect(b"NUL" in nul.stderr, nul)
    expect(b"too long" in long.stderr, long)


async def cpu_time_counts_whole_trees(sandbox: Sandbox) -> None:
    burn = "i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done"
    result = await shell(sandbox, f"sh -c '{burn}'")
    stats = await sandbox.stats()
    expect(result.cpu_seconds > 0.01, result)
    expect(stats.cpu_seconds >= result.cpu_seconds, stats)
    expect(stats.peak_memory_bytes is None or stats.peak_memory_bytes > 100_000, stats)


async def a_program_can_have_a_terminal_of_its_own(sandbox: Sandbox) -> None:
    result = await python(sandbox, "import pty; pty.spawn(['tty'])")
    same((result.exit_code, result.stdout.startswith(b"/dev/pts/")), (0, True))


async def a_cancelled_command_is_killed_and_the_sandbox_goes_on(sandbox: Sandbox) -> None:
    task = asyncio.create_task(shell(sandbox, "touch up; sleep 4341"))
    await appears(sandbox, "up")
    task.cancel()
    _, pending = await asyncio.wait([task], timeout=PATIENCE)
    expect(not pending and task.cancelled(), "the cancelled command did not end as cancelled")
    await words_vanish(sandbox, "4341")
    await alive(sandbox)


CASES: tuple[Case, ...] = tuple(
    inside(GROUP, body)
    for body in (
        a_command_has_its_exit_code_and_its_two_streams_apart,
        a_command_starts_in_the_workdir_with_the_environment_it_is_given,
        a_list_is_a_program_with_arguments_that_no_shell_reads,
        a_signal_is_128_and_its_number,
        a_command_that_exits_124_is_not_a_timeout,
        commands_run_at_the_same_time,
        a_missing_program_is_127_and_one_that_may_not_run_126,
        a_missing_working_directory_is_told_to_the_command,
        a_command_that_no_system_call_can_carry_is_refused_without_harm,
        cpu_time_counts_whole_trees,
        a_program_can_have_a_terminal_of_its_own,
        a_cancelled_command_is_killed_and_the_sandbox_goes_on,
    )
)
