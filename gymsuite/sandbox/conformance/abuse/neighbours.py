"""Attacks on other sandboxes of the same machine, from several at once."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

from gymsuite.sandbox.conformance.abuse.attack import Attack
from gymsuite.sandbox.conformance.case import PATIENCE, alive, expect, same
from gymsuite.sandbox.protocol import OpenSandbox, Sandbox
from gymsuite.types import SandboxSpec

KIND = "neighbours"
_SPIN = "for i in $(seq 30); do (while :; do :; done) & done; wait"
_BUFFERS = """
import fcntl, os, resource, time
most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
resource.setrlimit(resource.RLIMIT_NOFILE, (min(most, 4096), most))
held = []
try:
    while True:
        held += os.pipe()
        fcntl.fcntl(held[-1], 1031, 1 << 20)
        os.write(held[-1], bytes(1 << 20))
except OSError:
    time.sleep(1000)
"""
_WATCHES = """
import ctypes, time
libc = ctypes.CDLL(None)
held = 0
while libc.inotify_init1(0) >= 0 and held < 10_000:
    held += 1
time.sleep(1000)
"""
_MIX = (
    "python3 -c 'bytearray(1 << 30)'; head -c 1G /dev/zero > f; seq 5000 | xargs touch; yes | head"
    " -c 20M; kill -9 -1; b() { b | b & }; b; sleep 1000"
)


@asynccontextmanager
async def _victim(
    open_sandbox: OpenSandbox, spec: SandboxSpec, *commands: str | tuple[str, ...]
) -> AsyncIterator[Sandbox]:
    """A sandbox beside others in which commands go on."""
    async with AsyncExitStack() as stack:
        attackers = [await stack.enter_async_context(open_sandbox(spec)) for _ in commands]
        for attacker, command in zip(attackers, commands, strict=True):
            await attacker.spawn(command)
        yield await stack.enter_async_context(open_sandbox(spec))
        for attacker in attackers:
            await attacker.changes("/nowhere")
            await alive(attacker)


async def _works(victim: Sandbox) -> None:
    for number in range(10):
        await alive(victim)
        await victim.write("file", b"%d" % number)
        same(await victim.read("file"), b"%d" % number)
    result = await victim.exec(["python3", "-c", "print(1)"], timeout=PATIENCE)
    same(result[:3], (0, b"1\n", b""))
    expect(not (result.oom or result.pids or result.disk_full or result.timed_out), result)


async def _spin(open_sandbox: OpenSandbox, spec: SandboxSpec) -> None:
    async with _victim(open_sandbox, spec, _SPIN, _SPIN) as victim:
        await _works(victim)


async def _hoard(open_sandbox: OpenSandbox, spec: SandboxSpec) -> None:
    hoards = (("python3", "-c", _BUFFERS), ("python3", "-c", _WATCHES))
    async with _victim(open_sandbox, spec, *hoards) as victim:
        await asyncio.sleep(0.5)
        await _works(victim)


async def _everything(open_sandbox: OpenSandbox, spec: SandboxSpec) -> None:
    async with _victim(open_sandbox, spec, *[_MIX] * 3) as victim:
        await _works(victim)


ATTACKS = (
    Attack(KIND, "spins in thirty processes, in two sandboxes", "a third works", _spin, alone=True),
    Attack(
        KIND,
        "holds what the kernel counts for each user: buffers of pipes, inotify",
        "another sandbox works",
        _hoard,
        alone=True,
    ),
    Attack(
        KIND,
        "does all of it at once, in three sandboxes",
        "a fourth works; none of its limits fires",
        _everything,
        ("memory_bytes", "pids", "disk_bytes"),
        alone=True,
    ),
)
