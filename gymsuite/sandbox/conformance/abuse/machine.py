"""What must stay as it was on this machine while sandboxes are attacked."""

import os
import resource
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

_SETTINGS = (
    "kernel/core_pattern",
    "kernel/hostname",
    "kernel/modprobe",
    "kernel/panic",
    "kernel/sysrq",
    "kernel/randomize_va_space",
    "kernel/msgmni",
    "kernel/shmmax",
    "vm/overcommit_memory",
    "vm/swappiness",
    "vm/panic_on_oom",
    "fs/file-max",
    "fs/suid_dumpable",
    "fs/protected_symlinks",
    "net/ipv4/ip_forward",
    "user/max_user_namespaces",
)


@dataclass(frozen=True)
class Machine:
    """Settings, the clock, segments of memory, our mounts and our processes."""

    settings: tuple[tuple[str, str], ...]
    boot_seconds: int
    segments: int
    mounts: int
    children: int

    @classmethod
    def look(cls) -> "Machine":
        """Look at it now."""
        return cls(
            settings=tuple((name, _text(f"/proc/sys/{name}")) for name in _SETTINGS),
            # To the minute: machines that are far from others are set now and then.
            boot_seconds=round((time.time() - time.monotonic()) / 60),
            segments=len(_text("/proc/sysvipc/shm").splitlines()),
            mounts=_text("/proc/self/mountinfo").count("gymsuite"),
            children=len(_tree()),
        )

    def damage(self, before: "Machine") -> list[str]:
        """Say what is not as it was before: more of anything, or anything else."""
        found = [
            f"{name} was {old.strip()!r} and is {new.strip()!r}"
            for (name, old), (_, new) in zip(before.settings, self.settings, strict=True)
            if old != new
        ]
        if abs(self.boot_seconds - before.boot_seconds) > 1:
            found.append("the clock was set")
        for name in ("segments", "mounts", "children"):
            old, new = getattr(before, name), getattr(self, name)
            if new > old:
                found.append(f"{new} {name} where there were {old}")
        return found


def peak_bytes() -> int:
    """How much memory this process has had at most."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def _text(path: str) -> str:
    try:
        return Path(path).read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


def _tree() -> set[int]:
    """Every live process that descends from this one."""
    parents = dict(_parents())
    found = {os.getpid()}
    while more := {pid for pid, parent in parents.items() if parent in found} - found:
        found |= more
    return found


def _parents() -> Iterable[tuple[int, int]]:
    for path in Path("/proc").glob("[0-9]*/stat"):
        state, _, rest = _text(str(path)).rpartition(")")[2].strip().partition(" ")
        if state and state != "Z":
            yield int(path.parent.name), int(rest.split()[0])
