"""Names a process so that others can tell later whether it still lives."""

import os
from pathlib import Path


def this_process() -> str:
    """Name this process: its boot, its PID namespace, its id and its start time."""
    pid = os.getpid()
    return f"{_world()}/{pid}/{start_time(pid)}"


def is_gone(owner: str) -> bool:
    """Whether a process that was named here has ended.

    A process of another machine, another boot or another container is never said to be gone: its
    id means nothing here.
    """
    world, _, rest = owner.rpartition("/")
    world, _, pid = world.rpartition("/")
    return world == _world() and pid.isdigit() and start_time(int(pid)) != rest


def _world() -> str:
    boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    return f"{boot}/{Path('/proc/self/ns/pid').readlink()}"


def start_time(pid: int) -> str:
    """Read when a process started, in clock ticks since boot; "" where there is none.

    An id alone would soon belong to another process.
    """
    try:
        line = Path(f"/proc/{pid}/stat").read_text(errors="replace")
    except OSError:
        return ""
    # The name of the program, in brackets, may hold anything.
    return line.rpartition(")")[2].split()[19]
