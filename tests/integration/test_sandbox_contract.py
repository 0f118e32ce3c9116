"""What a command in a sandbox can rely on, whatever the provider."""

import asyncio
from typing import Any

from gymsuite import Sandbox, SandboxSpec

from .conftest import InSandbox

SPEC = SandboxSpec(image="fixture")
PATIENCE = 30.0
ALL_BYTES = bytes(range(256))


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
