"""Reads stacked layers from outside, as overlayfs would show them, without mounting anything.

Names inside a layer come from whatever ran while it was built, so no lookup ever follows a link on
this machine: a link is data, and is followed only within the image, by `resolve`.
"""

import errno
import os
import stat
from collections.abc import Iterator, Sequence
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from gymsuite.errors import SandboxError
from gymsuite.sandbox.image import Image
from gymsuite.sandbox.protocol import FileState

# The second is what a mount inside a user namespace writes.
_OPAQUE = ("trusted.overlay.opaque", "user.overlay.opaque")
_LONGEST_LINK_CHAIN = 40  # what Linux allows


class Entry(NamedTuple):
    """A file, directory or link of a layer: where it is on this machine, and its lstat."""

    path: Path
    status: os.stat_result


class Found(NamedTuple):
    """What an image shows at a path, and the directories, topmost first, that make it up there."""

    entry: Entry | None
    directories: tuple[Path, ...]


def lookup(layers: Sequence[Path], path: str) -> Entry | None:
    """Find what an image shows at an absolute path, or None. Layers are lowest first."""
    found = find(layers, path)
    return None if found is None else found.entry


def find(layers: Sequence[Path], path: str) -> Found | None:
    """Find what an image shows at an absolute path; None for one that it cannot have."""
    found = Found(None, tuple(reversed(layers)))
    for part in PurePosixPath(path).parts:
        if part == "/":
            continue
        if not found.directories or part == "..":
            return None
        found = find_below(found.directories, part)
    if found.entry is None and found.directories:
        top = found.directories[0]
        return Found(Entry(top, top.lstat()), found.directories)
    return found


def find_below(directories: Sequence[Path], name: str) -> Found:
    """Find a name in the directories, topmost first, that make up one of an image."""
    entry: Entry | None = None
    merged: list[Path] = []
    for directory in directories:
        path = directory / name
        try:
            status = path.lstat()
        except OSError as error:
            # A link may name what is longer than any name can be.
            if error.errno in {errno.ENOENT, errno.ENOTDIR, errno.ENAMETOOLONG}:
                continue
            raise
        if is_whiteout(status):
            break
        if entry is not None and not stat.S_ISDIR(status.st_mode):
            break
        entry = entry or Entry(path, status)
        if not stat.S_ISDIR(status.st_mode):
            break
        merged.append(path)
        if _is_opaque(path):
            break
    return Found(entry, tuple(merged))


def walk(layers: Sequence[Path], path: str = "/") -> Iterator[tuple[str, Entry]]:
    """Yield everything below a directory of an image, in order, parents before children."""
    found = find(layers, path)
    if found is not None:
        yield from _walk(found.directories, PurePosixPath(path))


def resolve(layers: Sequence[Path], path: str) -> str:
    """Follow the links on an absolute path, within the image, also where its end does not exist.

    Raises ValueError for a chain of links without an end.
    """
    pending = [part for part in reversed(PurePosixPath(path).parts) if part != "/"]
    done = PurePosixPath("/")
    links = 0
    while pending:
        part = pending.pop()
        if part == "..":
            done = done.parent
            continue
        entry = lookup(layers, str(done / part))
        if entry is None or not stat.S_ISLNK(entry.status.st_mode):
            done /= part
            continue
        links += 1
        if links > _LONGEST_LINK_CHAIN:
            raise ValueError(f"too many links on {path}")
        target = PurePosixPath(entry.path.readlink())
        if target.is_absolute():
            done = PurePosixPath("/")
        pending.extend(part for part in reversed(target.parts) if part != "/")
    return str(done)


def entry_state(
    image: Image, path: str, entry: Entry | None, *, max_bytes: int
) -> FileState | None:
    """Return what an image has at an absolute path, where `entry` was found.

    None where that is no file and no link. Raises `SandboxError` for a file of more than
    `max_bytes`.
    """
    if entry is None:
        return None
    mode = entry.status.st_mode
    if stat.S_ISLNK(mode):
        target = os.readlink(os.fsencode(entry.path))  # noqa: PTH115 - Path would normalise it
        return FileState(0o120000, target)
    if not stat.S_ISREG(mode):
        return None
    if entry.status.st_size > max_bytes:
        raise SandboxError(
            f"{path} of image {image.name} has {entry.status.st_size} bytes, more than {max_bytes}",
            retryable=False,
        )
    executable = mode & stat.S_IXUSR
    return FileState(0o100755 if executable else 0o100644, entry.path.read_bytes())


def is_whiteout(status: os.stat_result) -> bool:
    """Whether overlayfs would take this entry for the deletion of a name below it."""
    return stat.S_ISCHR(status.st_mode) and status.st_rdev == 0


def _walk(directories: Sequence[Path], path: PurePosixPath) -> Iterator[tuple[str, Entry]]:
    names = {entry.name for directory in directories for entry in os.scandir(directory)}
    for name in sorted(names):
        found = find_below(directories, name)
        if found.entry is not None:
            yield str(path / name), found.entry
            yield from _walk(found.directories, path / name)


def _is_opaque(path: Path) -> bool:
    return any(_attribute(path, name) == b"y" for name in _OPAQUE)


def _attribute(path: Path, name: str) -> bytes | None:
    try:
        return os.getxattr(path, name, follow_symlinks=False)
    except OSError as error:
        if error.errno in {errno.ENODATA, errno.ENOTSUP, errno.EPERM}:
            return None
        raise
