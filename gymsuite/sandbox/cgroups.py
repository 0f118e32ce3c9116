"""How limits are written to cgroups of either version, how use is read there, and how they go."""

import os
import secrets
import signal
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from gymsuite.sandbox.owner import start_time

_PERIOD_US = 100_000
_LEAST_QUOTA_US = 1_000
_SOCKETS_PART = 8
_PREFIX = "gymsuite"
_REMOVE_TRIES = 50


class Setting(NamedTuple):
    """A value for a file of a sandbox's cgroup in one hierarchy."""

    hierarchy: int
    file: str
    value: str


class Usage(NamedTuple):
    """What the processes of a cgroup have used; None where it is not counted."""

    cpu_seconds: float | None
    peak_memory_bytes: int | None
    oom_kills: int | None


@dataclass(frozen=True)
class Cgroups:
    """The directories in which this process may make cgroups, one for each hierarchy.

    `controllers` says which hierarchy limits what: "cpu", "memory", "pids", and "cpuacct", which
    counts. `version` is 1 or 2, or 0 where there are none. With `swap`, swap can be limited too.
    With `sockets`, what waits in sockets of the internet is no part of memory, but has a limit.
    """

    version: int = 0
    parents: tuple[Path, ...] = ()
    controllers: Mapping[str, int] = field(default_factory=dict)
    swap: bool = False
    sockets: bool = False

    def names(self) -> tuple[Path, ...]:
        """Name the directories of another keeper of this process."""
        pid = os.getpid()
        own = secrets.token_hex(4)
        name = f"{_PREFIX}-{_pid_namespace()}-{pid}-{start_time(pid)}-{own}"
        return tuple(parent / name for parent in self.parents)

    def settings(
        self, *, cpus: float | None, memory_bytes: int | None, pids: int | None
    ) -> tuple[Setting, ...]:
        """Write down limits, as far as they can be enforced here."""
        settings: list[Setting] = []
        if cpus is not None and "cpu" in self.controllers:
            quota = max(_LEAST_QUOTA_US, round(cpus * _PERIOD_US))
            settings += self._cpu(self.controllers["cpu"], quota)
        if memory_bytes is not None and "memory" in self.controllers:
            settings += self._memory(self.controllers["memory"], memory_bytes)
        if pids is not None and "pids" in self.controllers:
            settings.append(Setting(self.controllers["pids"], "pids.max", str(pids)))
        return tuple(settings)

    def _cpu(self, at: int, quota: int) -> Iterator[Setting]:
        if self.version == 1:
            yield Setting(at, "cpu.cfs_period_us", str(_PERIOD_US))
            yield Setting(at, "cpu.cfs_quota_us", str(quota))
        else:
            yield Setting(at, "cpu.max", f"{quota} {_PERIOD_US}")

    def _memory(self, at: int, size: int) -> Iterator[Setting]:
        if self.version == 1:
            yield Setting(at, "memory.limit_in_bytes", str(size))
            if self.swap:
                yield Setting(at, "memory.memsw.limit_in_bytes", str(size))
            if self.sockets:
                yield sockets_setting(at, size)
        else:
            yield Setting(at, "memory.max", str(size))
            if self.swap:
                yield Setting(at, "memory.swap.max", "0")

    @property
    def events(self) -> Mapping[str, tuple[int, str]]:
        """Where it is counted how often the limit of memory or of pids was hit."""
        memory = "memory.oom_control" if self.version == 1 else "memory.events"
        files = {"memory": memory, "pids": "pids.events"}
        return {
            name: (self.controllers[name], file)
            for name, file in files.items()
            if name in self.controllers
        }

    def usage(self, bases: Sequence[Path], number: int) -> Usage:
        """Read what a sandbox's cgroups counted."""

        def file(controller: str, name: str) -> Path:
            return bases[self.controllers[controller]] / str(number) / name

        cpu = peak = kills = None
        if "cpuacct" in self.controllers:
            if self.version == 1:
                nanoseconds = _number(file("cpuacct", "cpuacct.usage"))
                cpu = None if nanoseconds is None else nanoseconds / 1e9
            else:
                microseconds = _keyed(file("cpuacct", "cpu.stat"), "usage_usec")
                cpu = None if microseconds is None else microseconds / 1e6
        if "memory" in self.controllers:
            name = "memory.max_usage_in_bytes" if self.version == 1 else "memory.peak"
            peak = _number(file("memory", name))
            kills = _keyed(file("memory", self.events["memory"][1]), "oom_kill")
        return Usage(cpu, peak, kills)

    def remove(self, bases: Sequence[Path]) -> None:
        """Remove directories that a keeper could not remove itself, and end what lives there."""
        for base in bases:
            _remove(base)

    def remove_stale(self, *, dry_run: bool = False) -> tuple[str, ...]:
        """Remove the directories of processes that have ended, and return them."""
        found: list[str] = []
        for parent in self.parents:
            with suppress(OSError):
                for path in sorted(parent.glob(f"{_PREFIX}-*")):
                    if _is_stale(path.name):
                        found.append(str(path))
                        if not dry_run:
                            _remove(path)
        return tuple(found)


def sockets_setting(at: int, memory_bytes: int) -> Setting:
    """Write down the limit of what waits in sockets of the internet, which is no part of memory."""
    return Setting(at, "memory.kmem.tcp.limit_in_bytes", str(memory_bytes // _SOCKETS_PART))


def _number(path: Path) -> int | None:
    try:
        return int(path.read_text())
    except (OSError, ValueError):
        return None


def _keyed(path: Path, key: str) -> int | None:
    """Read one number of a file of "key number" lines."""
    try:
        lines = path.read_text().splitlines()
    except OSError:
        return None
    for line in lines:
        name, _, value = line.partition(" ")
        if name == key and value.isdigit():
            return int(value)
    return None


def _pid_namespace() -> int:
    return Path("/proc/self/ns/pid").stat().st_ino


def _is_stale(name: str) -> bool:
    """Whether the process that a directory is named after has ended; others' ids say nothing."""
    _, namespace, pid, started, *_ = [*name.split("-"), "", "", "", ""]
    if namespace != str(_pid_namespace()) or not pid.isdigit():
        return False
    return start_time(int(pid)) != started


def _remove(base: Path) -> None:
    with suppress(OSError):
        for path in base.iterdir():
            if path.is_dir():
                _remove_group(path)
    _remove_group(base)


def _remove_group(path: Path) -> None:
    for _ in range(_REMOVE_TRIES):
        try:
            path.rmdir()
        except FileNotFoundError:
            return
        except OSError:
            _kill(path)
            time.sleep(0.002)
        else:
            return


def _kill(path: Path) -> None:
    with suppress(OSError, ValueError):
        for pid in (path / "cgroup.procs").read_text().split():
            os.kill(int(pid), signal.SIGKILL)
