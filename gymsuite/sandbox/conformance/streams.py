"""What comes out of a command, and what goes in: bytes as they are, in bounded memory."""

from gymsuite.sandbox.conformance.case import PATIENCE, Case, expect, inside, same, shell
from gymsuite.sandbox.protocol import Sandbox, Stream

GROUP = "streams"
ALL_BYTES = bytes(range(256))
_MIB = 1 << 20


async def nul_and_invalid_utf8_come_back_as_they_are(sandbox: Sandbox) -> None:
    same((await sandbox.exec(["cat"], stdin=ALL_BYTES, timeout=PATIENCE)).stdout, ALL_BYTES)


async def no_stdin_is_an_end_of_file_at_once(sandbox: Sandbox) -> None:
    result = await shell(sandbox, "cat; echo done")
    same((result.stdout, result.timed_out), (b"done\n", False))


async def a_large_stdin_arrives_whole_or_is_left_unread(sandbox: Sandbox) -> None:
    data = b"x" * 20_000_000
    counted = await sandbox.exec(["wc", "-c"], stdin=data, timeout=PATIENCE)
    same(counted.stdout.strip(), b"20000000")
    unread = await sandbox.exec("exit 5", stdin=data, timeout=PATIENCE)
    same((unread.exit_code, unread.timed_out), (5, False))


async def a_hundred_megabytes_keep_their_head_and_tail_in_bounded_memory(
    sandbox: Sandbox,
) -> None:
    result = await sandbox.exec("seq 1 12000000", timeout=2 * PATIENCE, max_output=_MIB)
    same((result.exit_code, result.truncated, len(result.stdout)), (0, True, _MIB))
    expect(result.stdout.startswith(b"1\n2\n3\n"), result.stdout[:20])
    expect(result.stdout.endswith(b"\n11999999\n12000000\n"), result.stdout[-20:])
    status = (await sandbox.read("/proc/1/status") or b"").splitlines()
    for line in status:
        if line.startswith(b"VmHWM"):
            expect(int(line.split()[1]) < 16_000, f"the first process took {line!r}")


async def output_of_exactly_the_limit_is_not_truncated(sandbox: Sandbox) -> None:
    script = "printf 12345; printf 123456 >&2"
    whole, cut, nothing = [
        await sandbox.exec(script, timeout=PATIENCE, max_output=most) for most in (6, 5, 0)
    ]
    same((whole.stdout, whole.stderr, whole.truncated), (b"12345", b"123456", False))
    same((cut.stdout, cut.stderr, cut.truncated), (b"12345", b"12456", True))
    same((nothing.stdout, nothing.stderr, nothing.truncated), (b"", b"", True))


async def output_is_told_while_the_command_runs_also_what_the_result_leaves_out(
    sandbox: Sandbox,
) -> None:
    told: dict[Stream, bytes] = {Stream.STDOUT: b"", Stream.STDERR: b""}

    def hear(stream: Stream, data: bytes) -> None:
        told[stream] += data

    script = "seq 1 50000; echo err >&2"
    result = await sandbox.exec(script, timeout=PATIENCE, max_output=100, on_output=hear)
    expect(result.truncated, result)
    whole = b"".join(b"%d\n" % number for number in range(1, 50_001))
    same(told, {Stream.STDOUT: whole, Stream.STDERR: b"err\n"})


CASES: tuple[Case, ...] = tuple(
    inside(GROUP, body)
    for body in (
        nul_and_invalid_utf8_come_back_as_they_are,
        no_stdin_is_an_end_of_file_at_once,
        a_large_stdin_arrives_whole_or_is_left_unread,
        a_hundred_megabytes_keep_their_head_and_tail_in_bounded_memory,
        output_of_exactly_the_limit_is_not_truncated,
        output_is_told_while_the_command_runs_also_what_the_result_leaves_out,
    )
)
