"""Reading and writing files: within the sandbox, of any name, never waiting, always answered."""

import asyncio
import tempfile
from collections.abc import Awaitable
from contextlib import suppress
from pathlib import Path

from gymsuite.errors import PathRefused
from gymsuite.sandbox.conformance.case import (
    PATIENCE,
    Case,
    NotKept,
    alive,
    done,
    expect,
    inside,
    same,
    shell,
)
from gymsuite.sandbox.protocol import Sandbox

GROUP = "files"
ALL_BYTES = bytes(range(256))
_MIB = 1 << 20


async def refused(verb: Awaitable[object], saying: str = "") -> None:
    """Raise `NotKept` unless a verb raises `PathRefused`, soon, with some words in it."""
    try:
        async with asyncio.timeout(PATIENCE):
            found = await verb
    except PathRefused as error:
        expect(saying in str(error), f"refused with {error}, and not with {saying!r}")
        return
    except TimeoutError:
        raise NotKept("it waits, and does not answer") from None
    raise NotKept(f"not refused, but {str(found)[:200]!r}")


async def a_file_comes_back_as_it_was_written_with_parents_and_mode(sandbox: Sandbox) -> None:
    await sandbox.write("new/deep/file.bin", ALL_BYTES, mode=0o750)
    await sandbox.write("/root/empty", b"")
    same(await done(sandbox, "stat -c %a new/deep/file.bin"), b"750\n")
    same(await sandbox.read("/workspace/new/deep/file.bin"), ALL_BYTES)
    same(await sandbox.read("/root/empty"), b"")


async def a_shorter_file_replaces_a_longer_one(sandbox: Sandbox) -> None:
    await sandbox.write("file", b"a long text")
    await sandbox.write("file", b"short", mode=0o600)
    same(await sandbox.read("file"), b"short")


async def a_large_file_makes_the_round_trip(sandbox: Sandbox) -> None:
    data = ALL_BYTES * 100_000
    await sandbox.write("large", data)
    expect(await sandbox.read("large") == data, "what was read is not what was written")


async def what_is_no_regular_file_reads_as_none_and_never_waits(sandbox: Sandbox) -> None:
    await done(sandbox, "mkfifo fifo; ln -s loop loop; ln -s fifo away")
    names = ("fifo", "away", "loop", "absent", "tree", "plain.txt/below", "/dev/zero", "a\0b")
    async with asyncio.timeout(PATIENCE):
        same([await sandbox.read(name) for name in names], [None] * 8)


async def a_link_leads_nowhere_but_within_the_sandbox(sandbox: Sandbox) -> None:
    with tempfile.NamedTemporaryFile() as secret:
        secret.write(b"of the host")
        secret.flush()
        await sandbox.exec(["ln", "-s", secret.name, "out"], timeout=PATIENCE)
        same((await sandbox.read("out"), await sandbox.read("link")), (None, b"plain\n"))
        await sandbox.write("out", b"inside")
        same(_contents(secret.name), b"of the host")


def _contents(path: str) -> bytes:
    return Path(path).read_bytes()


async def a_file_larger_than_asked_for_is_refused_and_the_sandbox_lives(sandbox: Sandbox) -> None:
    await refused(sandbox.read("plain.txt", max_bytes=5), "larger than 5 bytes")
    same(await sandbox.read("plain.txt", max_bytes=6), b"plain\n")


async def a_write_that_cannot_be_says_why_and_the_sandbox_lives(sandbox: Sandbox) -> None:
    await done(sandbox, "mkfifo fifo")
    for path in ("tree", "plain.txt/below", "/proc/none", "fifo"):
        await refused(sandbox.write(path, b"x"), "cannot write")
    await alive(sandbox)


async def a_pseudo_file_that_cannot_be_read_or_written_is_refused(sandbox: Sandbox) -> None:
    await done(sandbox, "ln -s /proc/self/mem planted")
    for path in ("/proc/self/mem", "/proc/1/mem", "planted"):
        await refused(sandbox.read(path))
        await refused(sandbox.write(path, b"x"))


async def a_file_system_that_a_command_filled_is_no_full_disk(sandbox: Sandbox) -> None:
    await shell(sandbox, "head -c 100000000 /dev/zero > /dev/shm/fill; ln -s /dev/shm/c planted")
    for path in ("/dev/shm/a", "/dev/shm/b/below", "planted"):
        await refused(sandbox.write(path, b"x" * 100_000), "No space left")


async def _fill_and_empty(sandbox: Sandbox, fill: str) -> None:
    await shell(sandbox, f"mkdir full; cd full; {fill}")
    await refused(sandbox.write("new", b"x" * 100_000), "No space left")
    with tempfile.TemporaryDirectory() as folder:
        _fill(Path(folder))
        await refused(sandbox.upload(Path(folder), "up"), "No space left")
        await done(sandbox, "rm -r full")
        await sandbox.upload(Path(folder), "up")
    same(await sandbox.read("up/file"), b"x" * 100_000)


async def a_disk_that_a_command_filled_refuses_writes_and_can_be_emptied(sandbox: Sandbox) -> None:
    await _fill_and_empty(sandbox, "head -c 1G /dev/zero > fill")


async def a_disk_without_inodes_refuses_writes_and_can_be_emptied(sandbox: Sandbox) -> None:
    await _fill_and_empty(sandbox, "seq 20000 | xargs touch")


def _fill(folder: Path) -> None:
    (folder / "file").write_bytes(b"x" * 100_000)


async def more_than_a_request_can_carry_is_refused_and_the_sandbox_lives(sandbox: Sandbox) -> None:
    huge = "x" * (260 << 20)
    await refused(sandbox.write("huge", huge.encode()), "at most")
    await refused(sandbox.write("a\0b", b""), "NUL")
    result = await sandbox.exec(["echo", huge], timeout=PATIENCE)
    expect(result.exit_code == 126 and b"at most" in result.stderr, result.exit_code)
    await alive(sandbox)


async def many_refusals_leave_the_sandbox_alive(sandbox: Sandbox) -> None:
    for path in ("self/fd/3", "self/fd/4", "kcore", "self/attr/exec"):
        for verb in (sandbox.read(f"/proc/{path}"), sandbox.write(f"/proc/{path}", b"x")):
            with suppress(PathRefused):
                await asyncio.wait_for(verb, PATIENCE)
    await alive(sandbox)


async def a_link_to_what_the_first_process_holds_open_is_neither_read_nor_written(
    sandbox: Sandbox,
) -> None:
    links = (f"ln -s /proc/1/fd/{n} fd{n}; ln -s /proc/self/fd/{n} self{n}" for n in range(12))
    await done(sandbox, "; ".join(links))
    names = [f"{kind}{number}" for kind in ("fd", "self") for number in range(12)]
    found = [await sandbox.read(name) for name in names]
    for name in names:
        with suppress(PathRefused):
            await sandbox.write(name, b"x" * 100)
    # The counters of its cgroup have names that every command may read.
    files = ("memory.events", "memory/memory.oom_control", "pids.events", "pids/pids.events")
    counters = [await sandbox.read(f"/sys/fs/cgroup/{name}") for name in files]
    same([data for data in found if data not in (None, *counters)], [])
    await alive(sandbox)


CASES: tuple[Case, ...] = (
    *(
        inside(GROUP, body)
        for body in (
            a_file_comes_back_as_it_was_written_with_parents_and_mode,
            a_shorter_file_replaces_a_longer_one,
            a_large_file_makes_the_round_trip,
            what_is_no_regular_file_reads_as_none_and_never_waits,
            a_link_leads_nowhere_but_within_the_sandbox,
            a_file_larger_than_asked_for_is_refused_and_the_sandbox_lives,
            a_write_that_cannot_be_says_why_and_the_sandbox_lives,
            a_pseudo_file_that_cannot_be_read_or_written_is_refused,
            a_file_system_that_a_command_filled_is_no_full_disk,
            more_than_a_request_can_carry_is_refused_and_the_sandbox_lives,
            many_refusals_leave_the_sandbox_alive,
            a_link_to_what_the_first_process_holds_open_is_neither_read_nor_written,
        )
    ),
    *(
        inside(GROUP, body, needs=needs, limits={"disk_bytes": 32 * _MIB, "inodes": 5000})
        for body, needs in (
            (a_disk_that_a_command_filled_refuses_writes_and_can_be_emptied, ("disk_bytes",)),
            (a_disk_without_inodes_refuses_writes_and_can_be_emptied, ("inodes",)),
        )
    ),
)
