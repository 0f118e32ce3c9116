"""The processes of this machine, as its own /proc shows them."""

import os
import re
import time
from collections.abc import Callable, Collection
from pathlib import Path

from gymsuite import Sandbox
from gymsuite.sandbox import hierarchies
from gymsuite.sandbox.local import LocalHost, LocalSandbox

PATIENCE = 30.0
KEPT = re.compile(r"/tmp/[0-9a-f]{16}")  # noqa: S108 - in the keeper's own mount namespace


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


def name(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/comm").read_text().strip()
    except OSError:
        return ""


def assert_gone(processes: set[int]) -> None:
    """Processes end."""
    _assert_none(lambda: processes & parents().keys())


def assert_cgroups_gone(owner: int) -> None:
    """Nothing is left of the cgroups of a process."""
    _assert_none(lambda: cgroups_of(owner))


def _assert_none(left: Callable[[], Collection[object]]) -> None:
    """Wait for something to be gone, for as long as a slow machine may take."""
    deadline = time.monotonic() + PATIENCE
    while left() and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not left()


def cgroups_of(owner: int) -> list[Path]:
    parents = hierarchies.find().parents
    return [path for parent in parents for path in parent.glob(f"gymsuite-*-{owner}-*/[0-9]*")]


def assert_nothing_is_left(host: LocalHost, processes: set[int]) -> None:
    """No process, no directory, no mount and no cgroup but those of the keeper and its spare."""
    assert_gone(processes)
    keeper = host.keeper().pid
    assert [pid for pid in children() if pid == keeper] == [keeper]
    assert {name(pid) for pid in tree(keeper)} <= {"gymsuite-keeper", "gymsuite-spare", ""}
    assert len(cgroups_of(os.getpid())) <= len(host.cgroups.parents)
    assert_released(keeper)
    assert not host.scratches.parent.exists() or not list(host.scratches.parent.glob("*/*"))
    assert str(host.scratches.parent) not in Path("/proc/self/mountinfo").read_text()


def assert_released(keeper: int) -> None:
    """A keeper has none of its snapshots: of those that are given up it hears later."""
    _assert_none(lambda: kept_by(keeper))


def kept_by(keeper: int) -> list[str]:
    mounts = Path(f"/proc/{keeper}/mountinfo").read_text().splitlines()
    return [line for line in mounts if KEPT.fullmatch(line.split()[4])]


async def busy(sandbox: Sandbox) -> set[int]:
    """Give the sandbox something to do, and return its processes."""
    assert isinstance(sandbox, LocalSandbox)
    await sandbox.exec("sleep 1000 & setsid sleep 1000 & mkdir d; echo > d/f", timeout=PATIENCE)
    processes = tree(sandbox.pid)
    assert len(processes) >= 4
    return processes
