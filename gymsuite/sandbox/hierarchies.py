"""Finds where on this machine the cgroups of sandboxes can be made.

There are two versions, and machines with both, with some controllers, or with none that can be
used: what cannot be limited is said, and never assumed.
"""

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from gymsuite.sandbox.cgroups import Cgroups, sockets_setting

_WANTED = ("memory", "pids", "cpu")


def find(proc: Path = Path("/proc/self")) -> Cgroups:
    """Find what this process may use: version 2 where it has the memory controller, or 1."""
    try:
        mounts = list(_mounts(proc / "mountinfo"))
        own = dict(_memberships(proc / "cgroup"))
    except (OSError, ValueError):
        return Cgroups()
    second = _find_second(mounts, own)
    return second if "memory" in second.controllers else _find_first(mounts, own) or second


def limit_sockets(pid: int, memory_bytes: int, proc: Path = Path("/proc")) -> None:
    """Limit what waits in sockets of the internet for the cgroup of a process; see `Cgroups`.

    Where they are part of its memory there is nothing to do, and without root it cannot be done.
    """
    with suppress(OSError, ValueError, KeyError):
        own = dict(_memberships(proc / str(pid) / "cgroup"))
        for mount in _mounts(proc / "self/mountinfo"):
            if mount.kind == "cgroup" and "memory" in mount.controllers:
                setting = sockets_setting(0, memory_bytes)
                (_place(mount, own["memory"]) / setting.file).write_text(setting.value)
                return


class _Mount(NamedTuple):
    kind: str
    root: str
    point: Path
    controllers: frozenset[str]


def _mounts(path: Path) -> Iterator[_Mount]:
    for line in path.read_text(errors="replace").splitlines():
        before, _, after = line.partition(" - ")
        fields, (kind, *_, options) = before.split(" "), after.split(" ")
        if kind in {"cgroup", "cgroup2"}:
            point = Path(fields[4].encode().decode("unicode_escape"))
            yield _Mount(kind, fields[3], point, frozenset(options.split(",")))


def _memberships(path: Path) -> Iterator[tuple[str, str]]:
    """Yield each controller with this process's place in its hierarchy; "" is version 2."""
    for line in path.read_text(errors="replace").splitlines():
        _, controllers, place = line.split(":", 2)
        for controller in controllers.split(","):
            yield controller, place


def _place(mount: _Mount, place: str) -> Path:
    """Find a process's cgroup below a mount, which may show a part of the hierarchy only."""
    if mount.root != "/" and (place + "/").startswith(mount.root + "/"):
        place = place[len(mount.root) :]
    elif mount.root != "/":
        place = ""
    return mount.point / place.lstrip("/")


def _find_first(mounts: Sequence[_Mount], own: Mapping[str, str]) -> Cgroups | None:
    parents: list[Path] = []
    controllers: dict[str, int] = {}
    for controller in ("memory", "pids", "cpu", "cpuacct"):
        for mount in mounts:
            if mount.kind != "cgroup" or controller not in mount.controllers:
                continue
            parent = _place(mount, own.get(controller, "/"))
            if not os.access(parent, os.W_OK):
                continue
            if parent not in parents:
                parents.append(parent)
            controllers[controller] = parents.index(parent)
            break
    if not parents:
        return None

    def limits(file: str) -> bool:
        return "memory" in controllers and (parents[controllers["memory"]] / file).exists()

    swap, sockets = "memory.memsw.limit_in_bytes", "memory.kmem.tcp.limit_in_bytes"
    return Cgroups(1, tuple(parents), controllers, swap=limits(swap), sockets=limits(sockets))


def _find_second(mounts: Sequence[_Mount], own: Mapping[str, str]) -> Cgroups:
    """Take the nearest cgroup of this process's, or above it, that can be divided."""
    for mount in mounts:
        if mount.kind != "cgroup2":
            continue
        place = _place(mount, own.get("", "/"))
        while place.is_relative_to(mount.point):
            found = _divisible(place)
            if found:
                controllers = dict.fromkeys((*found, "cpuacct"), 0)
                return Cgroups(2, (place,), controllers, swap=_limits_swap(place))
            place = place.parent
    return Cgroups()


def _divisible(place: Path) -> tuple[str, ...]:
    """Say which controllers the cgroups below one have, as far as they can be had."""
    if not (os.access(place, os.W_OK) and os.access(place / "cgroup.procs", os.W_OK)):
        return ()
    with suppress(OSError):
        offered = (place / "cgroup.controllers").read_text().split()
        control = place / "cgroup.subtree_control"
        for controller in set(_WANTED) & set(offered) - set(control.read_text().split()):
            # It cannot be where processes live in this very cgroup; one above may do.
            with suppress(OSError):
                control.write_text(f"+{controller}")
        enabled = control.read_text().split()
        return tuple(name for name in _WANTED if name in enabled)
    return ()


def _limits_swap(place: Path) -> bool:
    """Look at a cgroup below a place: the topmost one has no limits of its own."""
    trial = place / f"gymsuite-trial-{os.getpid()}"
    try:
        trial.mkdir()
    except OSError:
        return False
    try:
        return (trial / "memory.swap.max").exists()
    finally:
        trial.rmdir()
