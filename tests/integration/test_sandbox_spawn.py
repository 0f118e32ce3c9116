"""What is said to processes, and heard of them, while they run."""

import asyncio
import resource
from typing import Any

import pytest

from gymsuite import Sandbox, SandboxSpec
from gymsuite.errors import SandboxDead, UsageError
from gymsuite.sandbox.protocol import Process, Stream

from .conftest import InSandbox, Provider

PATIENCE = 60.0
FLOOD_BYTES = 300 << 20
MODEST_BYTES = 48 << 20


async def read_all(process: Process) -> bytes:
    data = bytearray()
    while piece := await process.read():
        data += piece
    return bytes(data)


async def server_bytes(sandbox: Sandbox) -> int:
    """The memory of the sandbox's first process."""
    result = await sandbox.exec("grep VmHWM /proc/1/status", timeout=PATIENCE)
    return int(result.stdout.split()[1]) << 10


async def running(sandbox: Sandbox, word: str) -> int:
    """How many processes have a command line that starts with a word."""
    script = f"for f in /proc/[0-9]*/cmdline; do grep -aq '^{word}' $f && echo; done 2>/dev/null"
    return len((await sandbox.exec(script, timeout=PATIENCE)).stdout)


async def becomes(sandbox: Sandbox, word: str, count: int) -> None:
    """Wait until so many processes have that command line."""
    while await running(sandbox, word) != count:  # noqa: ASYNC110 - they are in another world
        await asyncio.sleep(0.01)


def test_output_is_told_while_the_command_runs(in_sandbox: InSandbox) -> None:
    async def body(sandbox: Sandbox) -> Any:
        first = asyncio.Event()
        told: list[tuple[Stream, bytes]] = []

        def listen(stream: Stream, data: bytes) -> None:
            told.append((stream, data))
            first.set()

        script = "echo one; while [ ! -e go ]; do sleep 0.01; done; echo two >&2"
        task = asyncio.create_task(sandbox.exec(script, timeout=PATIENCE, on_output=listen))
        await asyncio.wait_for(first.wait(), PATIENCE)
        await sandbox.write("go", b"")
        return (await task)[:3], told

    told = [(Stream.STDOUT, b"one\n"), (Stream.STDERR, b"two\n")]
    assert in_sandbox(body) == ((0, b"one\n", b"two\n"), told)


def test_all_output_is_told_in_order_also_what_the_result_leaves_out(in_sandbox: InSandbox) -> None:
    async def body(sandbox: Sandbox) -> Any:
        told = bytearray()
        result = await sandbox.exec(
            "seq 1 400000",
            timeout=PATIENCE,
            max_output=100,
            on_output=lambda stream, data: told.extend(data),
        )
        return result.truncated, len(result.stdout), bytes(told)

    numbers = b"".join(b"%d\n" % number for number in range(1, 400_001))
    assert in_sandbox(body) == (True, 100, numbers)


def test_what_on_output_raises_ends_the_command_and_not_the_sandbox(in_sandbox: InSandbox) -> None:
    def complain(stream: Stream, data: bytes) -> None:
        raise LookupError(data.decode())

    async def body(sandbox: Sandbox) -> Any:
        with pytest.raises(LookupError, match="word"):
            await sandbox.exec("echo word; exec sleep 1000", timeout=1000, on_output=complain)
        await becomes(sandbox, "sleep", 0)
        return (await sandbox.exec("echo alive", timeout=PATIENCE)).stdout

    assert in_sandbox(body) == b"alive\n"


def test_a_process_is_talked_to_until_its_stdin_is_closed(in_sandbox: InSandbox) -> None:
    async def body(sandbox: Sandbox) -> Any:
        process = await sandbox.spawn("while read line; do echo got $line; done; exit 5")
        heard = []
        for word in (b"one\n", b"two\n"):
            await process.write(word)
            heard.append(await process.read())
        await process.close_stdin()
        return [*heard, await process.read(), await process.read_error(), await process.wait()]

    *heard, result = in_sandbox(body)
    assert heard == [b"got one\n", b"got two\n", b"", b""]
    assert (result.exit_code, result.timed_out) == (5, False)


def test_bytes_of_any_kind_go_both_ways_at_once(in_sandbox: InSandbox) -> None:
    data = bytes(range(256)) * (3 << 12)

    async def body(sandbox: Sandbox) -> Any:
        process = await sandbox.spawn(["cat"], env={"A": "b"}, cwd="/")

        async def feed() -> None:
            await process.write(data)
            await process.close_stdin()

        _, echoed = await asyncio.gather(feed(), read_all(process))
        return echoed == data, (await process.wait()).exit_code

    assert in_sandbox(body) == (True, 0)


def test_a_flood_that_nobody_reads_waits_in_bounded_memory(in_sandbox: InSandbox) -> None:
    async def body(sandbox: Sandbox) -> Any:
        before = await server_bytes(sandbox)
        ours = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10
        flood = await sandbox.spawn(f"head -c {FLOOD_BYTES} /dev/zero; echo end >&2")
        read = len(await flood.read())
        await asyncio.sleep(0.5)
        others = await sandbox.exec("echo alive", timeout=PATIENCE)
        while data := await flood.read(1 << 20):
            read += len(data)
        grown = await server_bytes(sandbox) - before
        ours = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10) - ours
        return others.stdout, read, await flood.read_error(), grown, ours

    alive, read, end, grown, ours = in_sandbox(body)
    assert (alive, read, end) == (b"alive\n", FLOOD_BYTES, b"end\n")
    assert grown < MODEST_BYTES
    assert ours < MODEST_BYTES


def test_what_a_process_does_not_take_is_dropped_when_it_ends(in_sandbox: InSandbox) -> None:
    async def body(sandbox: Sandbox) -> Any:
        process = await sandbox.spawn("read line; exec <&-; sleep 0.1; exit 3")
        await process.write(b"line\n" + bytes(3 << 20))
        return (await process.wait()).exit_code

    assert in_sandbox(body) == 3


def test_writing_while_a_process_ends_harms_nobody(in_sandbox: InSandbox) -> None:
    async def chat(sandbox: Sandbox) -> int:
        process = await sandbox.spawn(["true"])
        ending = asyncio.ensure_future(
            asyncio.gather(process.wait(), process.read(), process.read_error())
        )
        while not ending.done():
            await process.write(b"x")
            await asyncio.sleep(0)
        await process.write(b"x")
        return (await process.wait()).exit_code

    async def body(sandbox: Sandbox) -> Any:
        return {await chat(sandbox) for _ in range(100)}

    assert in_sandbox(body) == {0}


def test_kill_ends_the_whole_tree_of_a_process_and_no_other(in_sandbox: InSandbox) -> None:
    async def body(sandbox: Sandbox) -> Any:
        neighbour = await sandbox.spawn("sleep 77777 & exec sleep 77777")
        tree = (
            "sleep 88888 & setsid sleep 88888 & (trap '' TERM; sleep 88888 & wait) & echo up; wait"
        )
        process = await sandbox.spawn(tree)
        await process.read()
        await becomes(sandbox, "sleep.88888", 3)
        await process.kill()
        await process.kill()
        left = await running(sandbox, "sleep.88888"), await running(sandbox, "sleep.77777")
        result = await process.wait()
        await neighbour.kill()
        return left, result.exit_code, await running(sandbox, "sleep.77777")

    assert in_sandbox(body) == ((0, 2), 137, 0)


def test_kill_reaches_what_a_process_left_behind(in_sandbox: InSandbox) -> None:
    async def body(sandbox: Sandbox) -> Any:
        process = await sandbox.spawn("setsid sleep 99999 >/dev/null 2>&1 </dev/null &")
        ended = (await process.wait()).exit_code, await process.read(), await process.read_error()
        left = await running(sandbox, "sleep.99999")
        await process.kill()
        return ended, left, await running(sandbox, "sleep.99999")

    assert in_sandbox(body) == ((0, b"", b""), 1, 0)


def test_a_process_outlives_commands_and_their_deadlines(in_sandbox: InSandbox) -> None:
    async def body(sandbox: Sandbox) -> Any:
        process = await sandbox.spawn(["cat"])
        late = await sandbox.exec("sleep 1000 & sleep 1000", timeout=0.2)
        await process.write(b"still here")
        return late.timed_out, await process.read()

    assert in_sandbox(body) == (True, b"still here")


def test_a_program_that_there_is_not_is_a_process_that_ends_with_127(in_sandbox: InSandbox) -> None:
    async def body(sandbox: Sandbox) -> Any:
        process = await sandbox.spawn(["no-such-program"])
        complaint = await process.read_error()
        return (await process.wait()).exit_code, b"no-such-program" in complaint, process.pid > 1

    assert in_sandbox(body) == (127, True, True)


def test_many_processes_and_commands_share_one_sandbox(in_sandbox: InSandbox) -> None:
    async def talk(sandbox: Sandbox, number: int) -> bytes:
        process = await sandbox.spawn(["cat"])
        await process.write(b"%d" % number)
        await process.close_stdin()
        return await read_all(process)

    async def body(sandbox: Sandbox) -> Any:
        processes = [talk(sandbox, number) for number in range(20)]
        commands = [sandbox.exec(f"echo {number}", timeout=PATIENCE) for number in range(20)]
        said, results = await asyncio.gather(asyncio.gather(*processes), asyncio.gather(*commands))
        return said, [int(result.stdout) for result in results]

    assert in_sandbox(body) == ([b"%d" % n for n in range(20)], list(range(20)))


def test_processes_that_nobody_keeps_leave_nothing_at_the_server(in_sandbox: InSandbox) -> None:
    async def body(sandbox: Sandbox) -> Any:
        before = await server_bytes(sandbox)
        for _ in range(300):
            process = await sandbox.spawn(["echo", "x" * 1000])
            await read_all(process)
            await process.read_error()
            await process.wait()
        script = "ls -d /proc/[0-9]* | wc -l"
        alive = int((await sandbox.exec(script, timeout=PATIENCE)).stdout)
        return alive, await server_bytes(sandbox) - before

    alive, grown = in_sandbox(body)
    assert alive < 12
    assert grown < 4 << 20


def test_reading_changes_ends_spawned_processes_too(in_sandbox: InSandbox) -> None:
    async def body(sandbox: Sandbox) -> Any:
        process = await sandbox.spawn("echo > made; echo up; exec sleep 1000")
        await process.read()
        changes = await sandbox.changes("/workspace")
        again = await sandbox.spawn(["echo", "again"])
        return len(changes.changed), (await process.wait()).exit_code, await again.read()

    assert in_sandbox(body) == (1, 137, b"again\n")


def test_changes_are_read_by_several_at_once_and_after_one_who_gave_up(
    in_sandbox: InSandbox,
) -> None:
    async def body(sandbox: Sandbox) -> Any:
        await sandbox.write("made", b"")
        gave_up = asyncio.create_task(sandbox.changes("/workspace"))
        await asyncio.sleep(0)
        gave_up.cancel()
        found = await asyncio.gather(*(sandbox.changes("/workspace") for _ in range(3)))
        alive = await sandbox.exec("echo alive", timeout=PATIENCE)
        return [len(changes.changed) for changes in found], alive.stdout

    assert in_sandbox(body) == ([1, 1, 1], b"alive\n")


def test_a_command_that_names_no_program_harms_nobody(in_sandbox: InSandbox) -> None:
    async def body(sandbox: Sandbox) -> Any:
        nothing = await sandbox.exec([], timeout=PATIENCE)
        with pytest.raises(UsageError, match="empty list"):
            await sandbox.spawn([])
        alive = await sandbox.exec("echo alive", timeout=PATIENCE)
        return nothing.exit_code, b"empty list" in nothing.stderr, alive.stdout

    assert in_sandbox(body) == (126, True, b"alive\n")


def test_a_spawn_that_is_cancelled_leaves_no_process(in_sandbox: InSandbox) -> None:
    async def body(sandbox: Sandbox) -> Any:
        task = asyncio.create_task(sandbox.spawn("yes & exec sleep 1000"))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await sandbox.exec("true", timeout=PATIENCE)
        await becomes(sandbox, "sleep", 0)
        await becomes(sandbox, "yes", 0)
        return (await sandbox.exec("echo alive", timeout=PATIENCE)).stdout

    assert in_sandbox(body) == b"alive\n"


def test_a_lost_sandbox_is_an_error_for_whoever_waits_for_a_process(provider: Provider) -> None:
    async def main() -> list[str]:
        async with provider.open(SandboxSpec(image="fixture")) as sandbox:
            process = await sandbox.spawn(["cat"])
            waiting = [asyncio.create_task(process.read()), asyncio.create_task(process.wait())]
            await asyncio.sleep(0)
            provider.kill(sandbox)
            reasons = []
            for work in (*waiting, process.write(b"x"), process.kill()):
                with pytest.raises(SandboxDead) as error:
                    await asyncio.wait_for(work, PATIENCE)
                reasons.append(error.value.reason)
            return reasons

    assert len(set(asyncio.run(main()))) == 1
