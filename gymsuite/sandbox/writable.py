"""Where a container can be written to: a few directories in memory, each with limits of its own.

Docker limits no container's disk but on few file systems, so the root is read-only, and what is
written counts as memory. All places together never hold more than three quarters of it, so that
something is left to run with.
"""

import stat
from collections.abc import Sequence
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from gymsuite.sandbox.image import Image
from gymsuite.sandbox.layers import lookup
from gymsuite.sandbox.workdirs import directory, resolved, workdir
from gymsuite.types import SandboxSpec

# How the places beside the workdir share what they may hold together.
_SHARES = {
    "/tmp": 8,  # noqa: S108 - inside
    "/root": 3,
    "/dev/shm": 2,  # noqa: S108 - inside
    "/home": 1,
    "/run": 1,
    "/var/tmp": 1,  # noqa: S108 - inside
}
_EVERYBODYS = 0o1777
_MODES = {"/tmp": _EVERYBODYS, "/var/tmp": _EVERYBODYS, "/dev/shm": _EVERYBODYS}  # noqa: S108
_FEWEST_INODES = 64


class Writable(NamedTuple):
    """A writable directory: its absolute path inside, free of links, and its limits."""

    path: str
    size_bytes: int
    inodes: int
    mode: int


def disk_bytes(spec: SandboxSpec) -> int:
    """How much the workdir of a container can hold."""
    return min(spec.disk_bytes, spec.memory_bytes // 2)


def places(image: Image, spec: SandboxSpec) -> tuple[Writable, ...]:
    """Say where a container of an image can be written to, parents first.

    Raises `SandboxError` for a workdir that the image cannot have.
    """
    main = _main(image, workdir(image, spec))
    whole = disk_bytes(spec)
    rest = min(spec.memory_bytes * 3 // 4 - whole, len(_SHARES) * whole)
    shares = {resolved(image, path): share for path, share in _SHARES.items()}
    shares.pop(main, None)
    sizes = {path: rest * share // sum(shares.values()) for path, share in shares.items()}
    sizes = {path: min(size, whole) for path, size in sizes.items()} | {main: whole}
    return tuple(
        Writable(
            path,
            size,
            max(_FEWEST_INODES, spec.inodes * size // whole),
            _mode(image.layers, path),
        )
        for path, size in sorted(sizes.items())
    )


def _main(image: Image, wanted: str) -> str:
    """The directory that gets the whole limit: the image's workdir, where ours lies below it."""
    ours, images = directory(image, wanted), directory(image, image.workdir)
    if images != "/" and PurePosixPath(ours).is_relative_to(images):
        return images
    # A root cannot be put over; there, only the other places can be written to.
    return ours if ours != "/" else images if images != "/" else "/tmp"  # noqa: S108


def _mode(layers: Sequence[Path], path: str) -> int:
    entry = lookup(layers, path)
    if entry is not None and stat.S_ISDIR(entry.status.st_mode):
        return stat.S_IMODE(entry.status.st_mode)
    return _MODES.get(path, 0o755)
