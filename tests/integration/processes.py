"""The processes of this machine, as its own /proc shows them."""

import os
import time
from pathlib import Path

from gymsuite import Sandbox
from gymsuite.sandbox.bubblewrap import SERVER
from gymsuite.sandbox.local import LocalHost, LocalSandbox

PATIENCE = 30.0


def parents() -> dict[int, int]:
    """Every process of the machine that is more than a zombie, and its parent."""
    found = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, parent = path.read_text().rpartition(")")[2].split()[:2]
        except OSError:
            continue
        if state != "Z":
            found[int(path.parent.name)] = int(parent)
    return found


def tree(root: int) -> set[int]:
    """A process and all that descends from it, now."""
    found, everyone = {root}, parents()
    while more := {pid for pid, parent in everyone.items() if parent in found} - found:
        found |= more
    return found


def status(pid: int, field: str) -> list[str]:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(line for line in lines if line.startswith(f"{field}:")).split()[1:]


def children() -> list[int]:
    return [pid for pid, parent in parents().items() if parent == os.getpid()]


def command_line(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_text()
    except OSError:
        return ""


def assert_gone(processes: set[int]) -> None:
    """Wait for processes to end, for as long as a slow machine may take."""
    deadline = time.monotonic() + PATIENCE
    while (left := processes & parents().keys()) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not left


def assert_nothing_is_left(host: LocalHost, processes: set[int]) -> None:
    """No process, no directory, no mount."""
    assert list(host.scratch.path.iterdir()) == []
    assert_gone(processes)
    assert not [pid for pid in children() if SERVER in command_line(pid)]
    assert str(host.scratch.path) not in Path("/proc/self/mountinfo").read_text()


async def busy(sandbox: Sandbox) -> set[int]:
    """Give the sandbox something to do, and return its processes."""
    assert isinstance(sandbox, LocalSandbox)
    await sandbox.exec("sleep 1000 & setsid sleep 1000 & mkdir d; echo > d/f", timeout=PATIENCE)
    processes = tree(sandbox.pid)
    assert len(processes) >= 4
    return processes
