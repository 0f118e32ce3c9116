"""Copies directories of changes that lie over each other into one that shows the same.

They were filled by an adversary, who is dead: nothing in them moves, and no link is followed.
"""

import os
import shutil
import stat
from collections.abc import Sequence
from contextlib import ExitStack, suppress

from gymsuite.sandbox.layers import is_whiteout

_DEEPEST = 128
_OPEN_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW
_OPEN_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK
_OPAQUE = "user.overlay.opaque"
_PLAIN = "user."
_OVERLAY = "user.overlay."


def flatten(folders: Sequence[int], target: int) -> None:
    """Copy directories, the latest first, into an empty one. Raises OSError.

    What hides something below all of them still does.
    """
    _merge(folders, target, _DEEPEST)


def _merge(folders: Sequence[int], target: int, depth: int) -> None:
    if not depth:
        raise OSError("the directories are too deep")
    names: dict[str, int] = {}
    for folder in folders:
        with os.scandir(folder) as entries:
            for entry in entries:
                names.setdefault(entry.name, folder)
    for name, folder in names.items():
        status = os.stat(name, dir_fd=folder, follow_symlinks=False)
        if stat.S_ISDIR(status.st_mode):
            _directory(folders, name, status, target, depth)
        else:
            _entry(folder, name, status, target)
    _copy_attributes(folders[0], target)


def _directory(
    folders: Sequence[int], name: str, status: os.stat_result, target: int, depth: int
) -> None:
    os.mkdir(name, 0o700, dir_fd=target)
    with ExitStack() as stack:
        inner = _open(stack, name, target)
        merged, hides = _lying_over_each_other(stack, folders, name)
        _merge(merged, inner, depth - 1)
        if hides:
            os.setxattr(inner, _OPAQUE, b"y")
        os.fchown(inner, status.st_uid, status.st_gid)
        os.fchmod(inner, stat.S_IMODE(status.st_mode))
        os.utime(inner, ns=(status.st_atime_ns, status.st_mtime_ns))


def _lying_over_each_other(
    stack: ExitStack, folders: Sequence[int], name: str
) -> tuple[list[int], bool]:
    """Open the directories that show together, and say whether they hide what is below them."""
    merged: list[int] = []
    for folder in folders:
        try:
            status = os.stat(name, dir_fd=folder, follow_symlinks=False)
        except FileNotFoundError:
            continue
        if not stat.S_ISDIR(status.st_mode):
            return merged, True
        merged.append(_open(stack, name, folder))
        with suppress(OSError):
            if os.getxattr(merged[-1], _OPAQUE) == b"y":
                return merged, True
    return merged, False


def _open(stack: ExitStack, name: str, folder: int) -> int:
    try:
        descriptor = os.open(name, _OPEN_DIRECTORY, dir_fd=folder)
    except PermissionError:
        os.chmod(name, 0o700, dir_fd=folder)
        descriptor = os.open(name, _OPEN_DIRECTORY, dir_fd=folder)
    stack.callback(os.close, descriptor)
    return descriptor


def _entry(folder: int, name: str, status: os.stat_result, target: int) -> None:
    if stat.S_ISREG(status.st_mode):
        _file(folder, name, status, target)
        return
    if stat.S_ISLNK(status.st_mode):
        os.symlink(os.readlink(name, dir_fd=folder), name, dir_fd=target)
    elif is_whiteout(status):
        os.mknod(name, stat.S_IFCHR, os.makedev(0, 0), dir_fd=target)
    elif stat.S_ISFIFO(status.st_mode) or stat.S_ISSOCK(status.st_mode):
        os.mknod(name, status.st_mode, dir_fd=target)
    os.chown(name, status.st_uid, status.st_gid, dir_fd=target, follow_symlinks=False)


def _file(folder: int, name: str, status: os.stat_result, target: int) -> None:
    try:
        source = os.open(name, _OPEN_FILE, dir_fd=folder)
    except PermissionError:
        os.chmod(name, 0o600, dir_fd=folder)
        source = os.open(name, _OPEN_FILE, dir_fd=folder)
    made = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600, dir_fd=target)
    with os.fdopen(source, "rb") as reader, os.fdopen(made, "wb") as writer:
        shutil.copyfileobj(reader, writer, 1 << 20)
        writer.flush()
        _copy_attributes(source, made)
        os.fchown(made, status.st_uid, status.st_gid)
        os.fchmod(made, stat.S_IMODE(status.st_mode))
        os.utime(made, ns=(status.st_atime_ns, status.st_mtime_ns))


def _copy_attributes(source: int, target: int) -> None:
    for name in os.listxattr(source):
        if name.startswith(_PLAIN) and not name.startswith(_OVERLAY):
            os.setxattr(target, name, os.getxattr(source, name))
