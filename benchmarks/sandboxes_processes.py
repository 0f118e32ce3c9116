"""What a tree of processes of this machine uses: CPU, and memory of its own."""

import os
import time
from collections.abc import Iterable
from pathlib import Path

from gymsuite.sandbox.hierarchies import find


def children() -> dict[int, int]:
    """Every process with its parent."""
    found = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text(errors="replace").rpartition(")")[2].split()
        except OSError:
            continue
        found[int(path.parent.name)] = int(fields[1])
    return found


def descendants(root: int) -> set[int]:
    """All that descend from a process, without itself."""
    everyone = children()
    found: set[int] = {root}
    while more := {pid for pid, parent in everyone.items() if parent in found} - found:
        found |= more
    return found - {root}


class CpuMeter:
    """Counts what this process uses, with all its descendants, but not what counting takes."""

    def __init__(self) -> None:
        self._others = _descendants_seconds()
        self._own = time.process_time()

    def seconds(self) -> float:
        """What was used since; of descendants, those that live or were waited for."""
        own = time.process_time() - self._own
        return own + _descendants_seconds() - self._others


def _descendants_seconds() -> float:
    ticks = 0
    for pid in descendants(os.getpid()):
        try:
            stat = Path(f"/proc/{pid}/stat").read_text(errors="replace")
        except OSError:
            continue
        ticks += sum(map(int, stat.rpartition(")")[2].split()[11:15]))
    return ticks / os.sysconf("SC_CLK_TCK")


def pss_bytes(pids: Iterable[int]) -> int:
    """The memory of processes, with what they share divided among those who share it."""
    total = 0
    for pid in pids:
        try:
            lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
        except OSError:
            continue
        total += sum(int(line.split()[1]) << 10 for line in lines if line.startswith("Pss:"))
    return total


def kernel_bytes(groups: Iterable[Path]) -> int:
    """What the kernel keeps for control groups, in either version's words."""
    total = 0
    for group in groups:
        first = group / "memory.kmem.usage_in_bytes"
        if first.exists():
            total += int(first.read_text())
            continue
        for line in (group / "memory.stat").read_text().splitlines():
            if line.startswith("kernel "):
                total += int(line.split()[1])
    return total


def groups_of(pid: int) -> list[Path]:
    """The control groups of the sandboxes that a process keeps, where they count memory."""
    return [
        group
        for parent in find().parents
        for group in parent.glob(f"gymsuite-*-{pid}-*/[0-9]*")
        if (group / "memory.stat").exists()
    ]
