"""What the keeper is told of a sandbox's namespaces and file system, in its own words.

See `exec_server/scene.c`, which reads them.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from gymsuite.sandbox.accounts import ROOT, Account

_OTHER_USERS = 1_000_000_000
"""The first of as many numbers that no account has, for users of sandboxes beside root."""
_OTHER_USER_COUNT = 65_534
_HARDWARE = ("acpi", "asound", "scsi")
_SECRETS = (
    "kcore", "keys", "key-users", "kallsyms", "kmsg", "timer_list", "timer_stats", "sched_debug",
    "latency_stats", "sysrq-trigger",
)  # fmt: skip


@dataclass(frozen=True)
class Masks:
    """What is hidden: what are empty directories, and what cannot be opened.

    Of /proc, that is what tells of the whole machine. What only the machine's root may read, or
    write, needs no mask.
    """

    empty: tuple[str, ...]
    closed: tuple[str, ...]

    @classmethod
    def find(cls, proc: Path = Path("/proc")) -> "Masks":
        """Take those that this machine has."""

        def there(names: Iterable[str], bits: int) -> tuple[str, ...]:
            paths = (proc / name for name in names)
            return tuple(
                str(path) for path in paths if path.exists() and path.stat().st_mode & bits
            )

        return cls(there(_HARDWARE, 0o777), there(_SECRETS, 0o006))


@dataclass(frozen=True)
class Scene:
    """A sandbox's namespaces and file system; `serve` are the arguments of its exec server.

    `layers` are directories, the lowest first, with what the keeper `kept` above them. What is
    written goes to the directory `scratch`, or else into memory. `upper` and `shared` limit bytes
    and inodes, of that and of /dev/shm. `binds` are read-only pairs of a path of this machine and
    one inside. A `workdir` of "" is not made. It runs as `account`, and as no other; but with
    `users`, that is root, and there are others.
    """

    layers: Sequence[Path]
    upper: tuple[int, int]
    shared: tuple[int, int]
    serve: Sequence[str]
    masks: Masks
    kept: Sequence[str] = ()
    scratch: Path | None = None
    binds: Sequence[tuple[Path, str]] = ()
    hidden: Sequence[Path] = ()
    workdir: str = ""
    network: bool = False
    account: Account = ROOT
    users: bool = False

    def words(self) -> list[str]:
        """Write it down."""
        return [*self._namespaces(), *self._files(), "serve", *self.serve]

    def _namespaces(self) -> Iterator[str]:
        if self.network:
            yield "network"
        if self.users:
            yield from ("users", str(_OTHER_USERS), str(_OTHER_USER_COUNT))
        if self.account != ROOT:
            yield from ("account", str(self.account.uid), str(self.account.gid))

    def _files(self) -> Iterator[str]:
        for layer in self.layers:
            yield from ("layer", str(layer))
        for place in self.kept:
            yield from ("kept", place)
        if self.scratch:
            yield from ("scratch", str(self.scratch))
        else:
            yield from ("upper", *map(str, self.upper))
        yield from ("shm", *map(str, self.shared))
        if self.workdir:
            yield from ("workdir", self.workdir)
        for path, target in self.binds:
            yield from ("bind", str(path), target)
        for empty in (*self.masks.empty, *map(str, self.hidden)):
            yield from ("empty", empty)
        for closed in self.masks.closed:
            yield from ("closed", closed)
