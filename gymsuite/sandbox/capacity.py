"""What this machine has to give to sandboxes, and how much of it is free just now.

Inside a container or a systemd unit the machine is what its control group leaves of it.
"""

import math
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

_ROOT = Path("/")


@dataclass(frozen=True)
class Machine:
    """The functions read the state of the moment.

    `idle_seconds` is idle time of all processors together, since some moment in the past.
    """

    memory_bytes: float
    processors: float
    available_bytes: Callable[[], float]
    idle_seconds: Callable[[], float]

    @classmethod
    def this(cls, root: Path = _ROOT) -> "Machine":
        """The machine that this process runs on, by the /proc and /sys that lie below `root`."""
        proc = root / "proc"
        total = float(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
        groups = [group for group in _memory_groups(root) if group.limit() < total]

        def available() -> float:
            return min([_available(proc, total), *(group.available() for group in groups)])

        return cls(
            memory_bytes=min([total, *(group.limit() for group in groups)]),
            processors=min([float(len(os.sched_getaffinity(0))), *_quotas(root)]),
            available_bytes=available,
            idle_seconds=lambda: _idle_seconds(proc),
        )

    @classmethod
    def boundless(cls) -> "Machine":
        """A machine that has enough of everything."""
        return cls(math.inf, math.inf, lambda: math.inf, lambda: 0.0)


class _MemoryGroup(NamedTuple):
    """One control group: files of version 1 or 2, which say the same in other words."""

    maximum: Path
    current: Path
    statistics: Path
    cached: str

    def limit(self) -> float:
        return _number(self.maximum, math.inf)

    def available(self) -> float:
        reclaimable = _fields(self.statistics).get(self.cached, 0)
        return self.limit() - _number(self.current, 0) + reclaimable


def _memory_groups(root: Path) -> Iterator[_MemoryGroup]:
    for at in _own_groups(root, "memory"):
        statistics = at / "memory.stat"
        if (at / "memory.max").exists():
            current = at / "memory.current"
            yield _MemoryGroup(at / "memory.max", current, statistics, "inactive_file")
        elif (at / "memory.limit_in_bytes").exists():
            maximum, current = at / "memory.limit_in_bytes", at / "memory.usage_in_bytes"
            yield _MemoryGroup(maximum, current, statistics, "total_inactive_file")


def _quotas(root: Path) -> Iterator[float]:
    for directory in _own_groups(root, "cpu"):
        words = _text(directory / "cpu.max").split()
        if not words:
            words = [_text(directory / f"cpu.cfs_{part}_us") for part in ("quota", "period")]
        quota, period = (_as_number(word, -1) for word in words[:2])
        if quota > 0 and period > 0:
            yield quota / period


def _own_groups(root: Path, controller: str) -> Iterator[Path]:
    """Where the groups of this process are, from its own up to the uppermost."""
    for line in _text(root / "proc/self/cgroup").splitlines():
        _, controllers, path = line.split(":", 2)
        if controllers and controller not in controllers.split(","):
            continue
        top = root / "sys/fs/cgroup" / (controller if controllers else "")
        own = top / path.lstrip("/")
        yield from (group for group in (own, *own.parents) if group.is_relative_to(top))


def _available(proc: Path, total: float) -> float:
    kib = _fields(proc / "meminfo").get("MemAvailable:")
    return total if kib is None else kib * 1024.0


def _idle_seconds(proc: Path) -> float:
    words = _text(proc / "stat").split(maxsplit=6)
    if len(words) < 6:  # noqa: PLR2004 - cpu user nice system idle iowait
        return 0.0
    return (int(words[4]) + int(words[5])) / os.sysconf("SC_CLK_TCK")


def _fields(path: Path) -> dict[str, int]:
    lines = (line.split() for line in _text(path).splitlines())
    return {words[0]: int(words[1]) for words in lines if len(words) > 1 and words[1].isdigit()}


def _number(path: Path, default: float) -> float:
    return _as_number(_text(path), default)


def _as_number(text: str, default: float) -> float:
    try:
        return float(text)
    except ValueError:
        return default


def _text(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:
        return ""
