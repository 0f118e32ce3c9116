"""Small attacks on a sandbox's limits: each says whether the limit held, and what was seen.

They need a shell and coreutils, nothing more, and take some tenths of a second each.
"""

import os
import socket
from collections.abc import Awaitable, Callable, Mapping
from typing import NamedTuple

from gymsuite.sandbox.protocol import ExecResult, Sandbox
from gymsuite.types import SandboxSpec

_MEBIBYTE = 1 << 20
_SECONDS = 15.0
_WALL_SECONDS = 0.3
_SPIN_SECONDS = 1.0
_FEW_CPUS = 0.25
_OUTPUT_BYTES = _MEBIBYTE

SMALL = SandboxSpec(
    image="base",
    memory_bytes=128 * _MEBIBYTE,
    pids=48,
    disk_bytes=16 * _MEBIBYTE,
    inodes=2_000,
    cpus=1.0,
)
"""A sandbox whose limits are near."""

SLOW = SMALL.model_copy(update={"cpus": _FEW_CPUS})
"""The same with a share of a processor, which would slow the other trials down."""


class Seen(NamedTuple):
    """Whether a limit held, and what showed it."""

    held: bool
    text: str


class Trial(NamedTuple):
    """`limit` is its key in a sandbox's description; "" where it is no number."""

    name: str
    limit: str
    run: Callable[[Sandbox], Awaitable[Seen]]


async def _memory(sandbox: Sandbox) -> Seen:
    done = await _shell(sandbox, "dd if=/dev/zero of=/dev/null bs=256M count=1")
    return Seen(done.oom and done.exit_code != 0, _said(done, "128 MiB were not left behind"))


async def _disk(sandbox: Sandbox) -> Seen:
    done = await _shell(sandbox, "dd if=/dev/zero of=big bs=1M count=64")
    await _shell(sandbox, "rm -f big")
    return Seen(done.disk_full and done.exit_code != 0, _said(done, "64 MiB were written"))


async def _inodes(sandbox: Sandbox) -> Seen:
    make = "i=0; while [ $i -lt 4000 ]; do : > $i || exit 1; i=$((i+1)); done"
    done = await _shell(sandbox, f"mkdir many && cd many && {make}")
    await _shell(sandbox, "rm -rf many")
    return Seen(done.disk_full and done.exit_code != 0, _said(done, "4,000 files were made"))


async def _pids(sandbox: Sandbox) -> Seen:
    fork = "i=0; while [ $i -lt 120 ]; do sleep 1 & i=$((i+1)); done; echo all"
    done = await sandbox.exec(fork, timeout=3)
    # Where nothing counts the processes of a sandbox together, only the shell tells.
    refused = done.pids or b"fork" in done.stderr
    said = f"exit {done.exit_code}, refused" if refused else "120 processes were started"
    return Seen(refused and b"all" not in done.stdout, _said(done, said))


async def _output(sandbox: Sandbox) -> Seen:
    flood = "head -c 4000000 /dev/zero"
    done = await sandbox.exec(flood, timeout=_SECONDS, max_output=_OUTPUT_BYTES)
    held = done.truncated and len(done.stdout) <= _OUTPUT_BYTES
    return Seen(held, f"{len(done.stdout):,} of 4,000,000 bytes kept")


async def _wall(sandbox: Sandbox) -> Seen:
    stubborn = "trap '' TERM INT HUP; setsid sleep 987 & sleep 987 & wait; wait"
    done = await sandbox.exec(stubborn, timeout=_WALL_SECONDS)
    left = await _shell(sandbox, "cat /proc/[0-9]*/cmdline | tr '\\0' ' '")
    held = done.timed_out and b"sleep 987" not in left.stdout
    return Seen(held, _said(done, "it outlived its deadline"))


async def _network(sandbox: Sandbox) -> Seen:
    with socket.create_server(("127.0.0.1", 0)) as door:
        done = await _shell(sandbox, "cat /proc/net/tcp; tail -n +2 /proc/net/route")
        port = f":{door.getsockname()[1]:04X} "
    lines = [line for line in done.stdout.decode(errors="replace").splitlines() if line.strip()]
    routes = [line for line in lines if not line.lstrip()[:1].isdigit() and "address" not in line]
    if port in done.stdout.decode(errors="replace"):
        return Seen(False, "this machine's sockets are visible")
    return Seen(not routes and done.exit_code == 0, f"{len(routes)} routes, no socket of this host")


async def _settings(sandbox: Sandbox) -> Seen:
    same = "f=/proc/sys/vm/swappiness; v=$(cat $f) && echo $v > $f && echo written"
    done = await _shell(sandbox, same)
    held = b"written" not in done.stdout
    return Seen(held, "/proc/sys is read-only" if held else "/proc/sys was written to")


async def _privileges(sandbox: Sandbox) -> Seen:
    done = await _shell(sandbox, "cat /proc/self/status")
    status = dict(line.split(":\t", 1) for line in done.output.splitlines() if ":\t" in line)
    wanted = {"NoNewPrivs": "1", "Seccomp": "2", "CapEff": "0" * 16}
    wrong = [f"{name} {status.get(name)}" for name in wanted if status.get(name) != wanted[name]]
    return Seen(not wrong, ", ".join(wrong) or "no capability, no new privileges, seccomp")


async def _processes(sandbox: Sandbox) -> Seen:
    done = await _shell(sandbox, "readlink /proc/self/ns/pid")
    ours = f"pid:[{os.stat('/proc/self/ns/pid').st_ino}]"  # noqa: PTH116 - no file is waited for
    held = done.exit_code == 0 and done.stdout.decode().strip() != ours
    return Seen(held, "a process namespace of its own" if held else "the host's processes show")


async def _cpus(sandbox: Sandbox) -> Seen:
    done = await sandbox.exec("while :; do :; done", timeout=_SPIN_SECONDS)
    share = done.cpu_seconds / max(done.wall_seconds, _SPIN_SECONDS)
    # A period that began before the limit was reached may count in full.
    held = share <= _FEW_CPUS + 0.15
    return Seen(held and done.timed_out, f"{share:.2f} of a processor used, {_FEW_CPUS:g} allowed")


TRIALS: tuple[Trial, ...] = (
    Trial("memory", "memory_bytes", _memory),
    Trial("disk", "disk_bytes", _disk),
    Trial("inodes", "inodes", _inodes),
    Trial("output", "", _output),
    Trial("wall time", "", _wall),
    Trial("network", "network", _network),
    Trial("/proc/sys", "", _settings),
    Trial("privileges", "", _privileges),
    Trial("processes", "", _processes),
    # The last, since what it started may be there for another second.
    Trial("pids", "pids", _pids),
)
"""They run in one sandbox of `SMALL`, one after the other."""

SLOW_TRIALS: tuple[Trial, ...] = (Trial("cpu", "cpus", _cpus),)
"""They run in one of `SLOW`."""


def unenforced(description: Mapping[str, object], trial: Trial) -> bool:
    """Whether the provider itself says that it cannot keep this limit."""
    limits = description.get("limits")
    return bool(trial.limit) and isinstance(limits, Mapping) and limits.get(trial.limit) is None


async def _shell(sandbox: Sandbox, command: str) -> ExecResult:
    return await sandbox.exec(command, timeout=_SECONDS)


def _said(done: ExecResult, otherwise: str) -> str:
    """Say which limit a result names."""
    flags = {
        "timed_out": done.timed_out,
        "oom": done.oom,
        "disk_full": done.disk_full,
        "pids": done.pids,
    }
    named = ", ".join(name for name, is_set in flags.items() if is_set)
    return f"exit {done.exit_code}, reported as {named}" if named else otherwise
