"""What one sandbox may use, how this machine enforces it, and what it does not enforce."""

import os
import resource
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from gymsuite.sandbox.cgroups import Cgroups
from gymsuite.sandbox.image import Frozen
from gymsuite.types import SandboxSpec

_EVENT_DESCRIPTORS = {"memory": 10, "pids": 11}
_PER_PROCESS = {"memory_bytes": resource.RLIMIT_DATA, "file_bytes": resource.RLIMIT_FSIZE}
_SHM_BYTES = 64 << 20
_LEAST_DESCRIPTORS = 1024
_MOST_DESCRIPTORS = 1 << 16
_LEAST_BYTES = 1 << 20
_LEAST_INODES = 256
_OVERLAY_INODES = 5
"""Of the directories that an overlay needs, and that are none of the sandbox's."""
_BESIDE_COMMANDS = 2
"""What started it, and its exec server: they are in its cgroup, and no processes of its own."""


@dataclass(frozen=True)
class Quota:
    """Limits as they are asked for; None is no limit.

    `disk_bytes` and `inodes` hold for what lies in memory, `file_bytes` for one file on a disk.
    """

    pids: int
    cpus: float | None = None
    memory_bytes: int | None = None
    disk_bytes: int | None = None
    inodes: int | None = None
    file_bytes: int | None = None

    @classmethod
    def of(cls, spec: SandboxSpec) -> "Quota":
        """What a specification asks for, as far as this machine has it."""
        disk = min(spec.disk_bytes, spec.memory_bytes // 2)
        cpus = min(spec.cpus, os.cpu_count() or 1)
        return cls(spec.pids, cpus, spec.memory_bytes, disk, spec.inodes)

    @property
    def shm_bytes(self) -> int:
        """What /dev/shm may hold: files fill at most five eighths of the memory, or nothing ran."""
        return min(_SHM_BYTES, (self.memory_bytes or _SHM_BYTES * 8) // 8)

    @property
    def shm_inodes(self) -> int:
        """How many files may be there; 0 is no limit."""
        return (self.inodes and max(_LEAST_INODES, self.inodes // 8)) or 0

    def on_disk(self) -> "Quota":
        """As far as it can be kept by a sandbox that writes to a disk."""
        return replace(self, disk_bytes=None, inodes=None, file_bytes=self.disk_bytes)

    def room(self, frozen: Iterable[Frozen]) -> tuple[int, int]:
        """Bytes and inodes that are left above what was frozen; 0 is no limit."""
        below = tuple(frozen)
        size = self.disk_bytes and max(
            _LEAST_BYTES, self.disk_bytes - sum(layer.size_bytes for layer in below)
        )
        inodes = self.inodes and _OVERLAY_INODES + max(
            _LEAST_INODES, self.inodes - sum(layer.inodes for layer in below)
        )
        return size or 0, inodes or 0


@dataclass(frozen=True)
class Enforcement:
    """A quota on a machine with some cgroups, with others, or with none."""

    quota: Quota
    cgroups: Cgroups

    def settings(self) -> list[str]:
        """Words for the keeper: what it writes to the sandbox's cgroups."""
        pids = self.quota.pids + _BESIDE_COMMANDS
        quota = self.quota
        settings = self.cgroups.settings(
            cpus=quota.cpus, memory_bytes=quota.memory_bytes, pids=pids
        )
        return [word for at, file, value in settings for word in ("set", str(at), file, value)]

    def own(self) -> list[str]:
        """Words for the sandbox's first process: what it opens, and how it limits itself."""
        words = [
            word
            for name, (at, file) in self.cgroups.events.items()
            for word in ("event", str(_EVENT_DESCRIPTORS[name]), str(at), file)
        ]
        words += ["limit", str(resource.RLIMIT_NOFILE), str(_descriptors(self.quota.pids))]
        for name, value in self._per_process.items():
            words += ["limit", str(_PER_PROCESS[name]), str(value)]
        return words

    def server(self) -> Sequence[str]:
        """Arguments of the exec server: limits of its own, and where others are counted."""
        own = 0 if "pids" in self.cgroups.controllers else self.quota.pids
        memory = self.quota.memory_bytes
        events = [
            word
            for name in self.cgroups.events
            for word in (f"--{name}-events", str(_EVENT_DESCRIPTORS[name]))
        ]
        return [str(own), *events, *(("--memory", str(memory)) if memory else ())]

    @property
    def _per_process(self) -> Mapping[str, int]:
        limits = {}
        if self.quota.memory_bytes is not None and "memory" not in self.cgroups.controllers:
            limits["memory_bytes"] = self.quota.memory_bytes
        if self.quota.file_bytes is not None:
            limits["file_bytes"] = self.quota.file_bytes
        return limits

    def description(self, network: str) -> Mapping[str, object]:
        """What a rollout's record says: None is a limit that is not enforced."""
        controllers = self.cgroups.controllers
        limits: dict[str, object] = {
            "network": network,
            "pids": self.quota.pids,
            "memory_bytes": self.quota.memory_bytes if "memory" in controllers else None,
            "cpus": self.quota.cpus if "cpu" in controllers else None,
            "disk_bytes": self.quota.disk_bytes,
            "inodes": self.quota.inodes,
        }
        per_process = self._per_process
        return {"limits": limits, **({"per_process": per_process} if per_process else {})}


def _descriptors(pids: int) -> int:
    """How many descriptors a process may have, so that a sandbox leaves half of the machine's."""
    machine = int(Path("/proc/sys/fs/file-max").read_text())
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = min(_MOST_DESCRIPTORS, max(_LEAST_DESCRIPTORS, machine // (2 * pids)))
    return wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
