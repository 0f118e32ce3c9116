"""Every limit that a description names fires, is told, and leaves the sandbox alive."""

from collections.abc import Mapping

from gymsuite.sandbox.conformance.case import (
    Case,
    alive,
    done,
    expect,
    inside,
    over,
    python,
    same,
    shell,
)
from gymsuite.sandbox.protocol import ExecResult, OpenSandbox, Sandbox, SandboxStats
from gymsuite.types import SandboxSpec

GROUP = "limits"
_MIB = 1 << 20
_FORKS = """
import os, sys, time
for number in range(100_000):
    try:
        if os.fork() == 0:
            time.sleep(600)
    except OSError as error:
        sys.exit(f"{type(error).__name__} after {number}")
"""
KEYS = ("network", "pids", "memory_bytes", "cpus", "disk_bytes", "inodes")


def declared(sandbox: Sandbox) -> Mapping[str, object]:
    """What a description says of limits; what it does not name is not enforced."""
    limits = sandbox.description.get("limits")
    return limits if isinstance(limits, Mapping) else {}


def _within(stats: SandboxStats, memory_bytes: int) -> None:
    # A provider that counts process by process counts what was in memory before, too.
    peak = stats.peak_memory_bytes or 0
    expect(peak <= memory_bytes + 16 * _MIB, f"{peak} bytes of {memory_bytes}")


async def a_description_says_what_is_enforced_limit_by_limit(
    open_sandbox: OpenSandbox, spec: SandboxSpec
) -> None:
    async with open_sandbox(spec.model_copy(update={"pids": 99})) as sandbox:
        limits = declared(sandbox)
        same(set(KEYS) - set(limits), set())
        disk = min(spec.disk_bytes, spec.memory_bytes // 2)
        for key, promised in (
            ("network", ("none",)),
            ("pids", (99,)),
            ("memory_bytes", (spec.memory_bytes,)),
            ("cpus", (spec.cpus,)),
            ("disk_bytes", (spec.disk_bytes, disk)),
            ("inodes", (spec.inodes,)),
        ):
            expect(limits[key] in (None, *promised), f"{key}: {limits[key]} for {promised}")


async def memory_that_runs_out_kills_the_command_and_not_the_sandbox(sandbox: Sandbox) -> None:
    result = await python(sandbox, f"bytearray({1024 * _MIB})")
    same((result.exit_code, result.oom), (128 + 9, True))
    stats = await sandbox.stats()
    expect(stats.oom_kills is None or stats.oom_kills > 0, stats)
    _within(stats, 128 * _MIB)
    result = await shell(sandbox, "echo alive")
    same((result.stdout, result.oom), (b"alive\n", False))


async def _forks(sandbox: Sandbox) -> ExecResult:
    result = await python(sandbox, _FORKS)
    expect(result.stderr.startswith(b"BlockingIOError after "), result)
    expect(int(result.stderr.split()[-1]) <= 50, result)
    return result


async def forks_end_at_their_limit(sandbox: Sandbox) -> None:
    await _forks(sandbox)
    await sandbox.changes("/workspace")
    await alive(sandbox)


async def forks_that_are_refused_are_told(sandbox: Sandbox) -> None:
    result = await _forks(sandbox)
    expect(result.pids, result)
    await sandbox.changes("/workspace")
    result = await shell(sandbox, "echo alive")
    same((result.stdout, result.pids), (b"alive\n", False))


async def a_full_disk_is_told_and_can_be_emptied(sandbox: Sandbox) -> None:
    result = await shell(sandbox, "head -c 15M /dev/zero > f && echo fits")
    same((result.stdout, result.disk_full), (b"fits\n", False))
    result = await shell(sandbox, "head -c 2M /dev/zero > g")
    expect(result.disk_full and b"No space left on device" in result.stderr, result)
    result = await shell(sandbox, "rm f g; echo > f")
    same((result.exit_code, result.disk_full), (0, False))


async def inodes_run_out_as_a_full_disk(sandbox: Sandbox) -> None:
    result = await shell(sandbox, "seq 2000 | xargs touch; ls | wc -l")
    expect(result.disk_full and b"No space left on device" in result.stderr, result)
    expect(900 <= int(result.stdout) <= 1010, result)


async def what_is_written_anywhere_leaves_memory_to_run_with(sandbox: Sandbox) -> None:
    for place in ("/dev/shm", "/tmp", "/workspace", "/root"):
        await shell(sandbox, f"head -c 90M /dev/zero > {place}/f")
    _within(await sandbox.stats(), 64 * _MIB)
    await alive(sandbox)
    await done(sandbox, "python3 -c pass")


async def a_spin_gets_the_processor_time_that_was_granted(sandbox: Sandbox) -> None:
    before = (await sandbox.stats()).cpu_seconds
    result = await shell(sandbox, "while :; do :; done & while :; do :; done", timeout=2)
    expect(result.timed_out, result)
    used = ((await sandbox.stats()).cpu_seconds - before) / result.wall_seconds
    expect(used < 0.45, f"{used:.2f} of a processor for 0.3")


CASES: tuple[Case, ...] = (
    over(GROUP, a_description_says_what_is_enforced_limit_by_limit),
    *(
        inside(GROUP, body, needs=needs, limits=limits)
        for body, needs, limits in (
            (
                memory_that_runs_out_kills_the_command_and_not_the_sandbox,
                ("memory_bytes",),
                {"memory_bytes": 128 * _MIB},
            ),
            (forks_end_at_their_limit, ("pids",), {"pids": 50}),
            # Who cannot count the memory of all processes together cannot count these either.
            (forks_that_are_refused_are_told, ("pids", "memory_bytes"), {"pids": 50}),
            (a_full_disk_is_told_and_can_be_emptied, ("disk_bytes",), {"disk_bytes": 16 * _MIB}),
            (inodes_run_out_as_a_full_disk, ("inodes",), {"inodes": 1000}),
            (
                what_is_written_anywhere_leaves_memory_to_run_with,
                ("memory_bytes", "disk_bytes"),
                {"memory_bytes": 64 * _MIB},
            ),
            (a_spin_gets_the_processor_time_that_was_granted, ("cpus",), {"cpus": 0.3}),
        )
    ),
)
