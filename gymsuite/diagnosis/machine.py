"""What the kernel and its settings allow, read below a root so that any machine can be told of."""

import re
import resource
import time
from collections.abc import Iterator
from pathlib import Path

from gymsuite.diagnosis.finding import Finding, State
from gymsuite.diagnosis.namespaces import namespaces
from gymsuite.diagnosis.reading import text
from gymsuite.sandbox import binary, hierarchies
from gymsuite.sandbox.capacity import Machine
from gymsuite.sandbox.disk import show_size

_AREA = "machine"
_OLDEST_KERNEL = (5, 12)
"""The first to let a user without privileges mount overlays, and restrict what is mounted."""
_WANTED = ("cpu", "memory", "pids")
_LEAST_PIDS = 8_192
_LEAST_DESCRIPTORS = 4_096
_LEAST_MEMORY_BYTES = 1 << 30
_SLOW_CLOCKS = frozenset({"hpet", "acpi_pm", "jiffies"})
_DELEGATE = (
    "run as root, or in a cgroup that is yours to divide: systemd-run --user --scope -p"
    " Delegate=yes gymsuite ..."
)


def machine(root: Path) -> Iterator[Finding]:
    """Look at the machine whose /proc and /sys lie below `root`."""
    yield _system(root)
    yield from namespaces(root)
    yield _overlay(root)
    yield _cgroups(root)
    yield _memory(root)
    yield _pids(root)
    yield _descriptors()
    yield _clock(root)


def _system(root: Path) -> Finding:
    release = text(root / "proc/sys/kernel/osrelease")
    if not release:
        fix = "gymsuite needs Linux, with /proc mounted"
        return Finding(_AREA, "kernel", "unknown", "no /proc/sys/kernel/osrelease", fix)
    inside = "in a container" if (root / ".dockerenv").exists() else "not in a Docker container"
    detail = f"Linux {release}, {inside}"
    numbers = re.match(r"(\d+)\.(\d+)", release)
    if numbers and tuple(map(int, numbers.groups())) < _OLDEST_KERNEL:
        oldest = ".".join(map(str, _OLDEST_KERNEL))
        fix = f"the provider local takes Linux {oldest} or later; docker does without"
        return Finding(_AREA, "kernel", "gap", detail, fix)
    return Finding(_AREA, "kernel", "note", detail)


def _overlay(root: Path) -> Finding:
    known = text(root / "proc/filesystems")
    if "overlay" in known.split():
        return Finding(_AREA, "overlay", "ok", "the kernel has overlayfs")
    state: State = "gap" if known else "unknown"
    detail = "overlayfs is not loaded" if known else "no /proc/filesystems"
    return Finding(_AREA, "overlay", state, detail, "modprobe overlay, as root")


def _cgroups(root: Path) -> Finding:
    found = hierarchies.find(root / "proc/self")
    if not found.version:
        why = "no cgroup here can be written to: no limits of memory, cpu and processes together"
        return Finding(_AREA, "cgroups", "gap", why, _DELEGATE)
    have = [name for name in _WANTED if name in found.controllers]
    missing = [name for name in _WANTED if name not in found.controllers]
    detail = f"version {found.version}, writable: {', '.join(have) or 'none'}"
    detail += ", swap is limited" if found.swap else ", swap is not limited"
    if missing:
        return Finding(
            _AREA, "cgroups", "gap", f"{detail}; missing: {', '.join(missing)}", _DELEGATE
        )
    return Finding(_AREA, "cgroups", "ok", detail)


def _memory(root: Path) -> Finding:
    this = Machine.this(root)
    free = this.available_bytes()
    detail = f"{show_size(free)} available of {show_size(this.memory_bytes)}"
    if free < _LEAST_MEMORY_BYTES:
        fix = "end what uses it: sandboxes wait until more than the reserve is available"
        return Finding(_AREA, "memory", "gap", detail, fix)
    return Finding(_AREA, "memory", "ok", f"{detail}; {this.processors:g} processors")


def _pids(root: Path) -> Finding:
    most = text(root / "proc/sys/kernel/pid_max")
    if not most.isdigit():
        return Finding(_AREA, "pid_max", "unknown", "no /proc/sys/kernel/pid_max")
    detail = f"{int(most):,} process ids; an idle local sandbox has two"
    if int(most) < _LEAST_PIDS:
        return Finding(_AREA, "pid_max", "gap", detail, "sysctl -w kernel.pid_max=4194304, as root")
    return Finding(_AREA, "pid_max", "ok", detail)


def _descriptors() -> Finding:
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard == resource.RLIM_INFINITY or hard >= _LEAST_DESCRIPTORS:
        shown = "no limit" if hard == resource.RLIM_INFINITY else f"{hard:,}"
        return Finding(_AREA, "descriptors", "ok", f"RLIMIT_NOFILE {shown}; a sandbox needs three")
    fix = "raise it: ulimit -Hn 65536 as root, LimitNOFILE= in systemd, --ulimit nofile= in Docker"
    return Finding(_AREA, "descriptors", "gap", f"RLIMIT_NOFILE {hard:,}", fix)


def _clock(root: Path) -> Finding:
    source = text(root / "sys/devices/system/clocksource/clocksource0/current_clocksource")
    try:
        built = binary.exec_server().stat().st_mtime
    except OSError:
        built = 0.0
    if time.time() < built:
        detail = "it shows a time before gymsuite was installed here"
        return Finding(_AREA, "clock", "gap", detail, "set it: TLS and lifetimes depend on it")
    if source in _SLOW_CLOCKS:
        fix = "have the kernel use tsc or kvm-clock: each reading of the clock is a slow call now"
        return Finding(_AREA, "clock", "gap", f"its source is {source}", fix)
    return Finding(_AREA, "clock", "ok", f"its source is {source or 'not said'}")
