"""Looks at what an adversary left in a directory, by descriptors: no link is ever followed.

It belongs to this user, who may have been denied to read it.
"""

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from gymsuite.sandbox.protocol import FileState

_OPEN_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW
_OPEN_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK
_OPAQUE = ("user.overlay.opaque", "trusted.overlay.opaque")


@contextmanager
def opened(name: str, folder: int) -> Iterator[int]:
    """Open a directory that is in another, for the block."""
    descriptor = _open(name, _OPEN_DIRECTORY, folder)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _open(name: str, flags: int, folder: int) -> int:
    try:
        return os.open(name, flags, dir_fd=folder)
    except PermissionError:
        os.chmod(name, 0o700, dir_fd=folder)
        return os.open(name, flags, dir_fd=folder)


def entered(folder: int) -> int:
    """Make sure that a directory that is open already can be looked into."""
    try:
        os.stat(".", dir_fd=folder)
    except PermissionError:
        os.fchmod(folder, 0o700)
    return folder


def status_of(folder: int, name: str) -> os.stat_result | None:
    """Say what a name in a directory is, or None where there is none."""
    try:
        return os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return None


def is_opaque(folder: int) -> bool:
    """Whether nothing below a directory of an overlay shows through it."""
    for name in _OPAQUE:
        with suppress(OSError):
            if os.getxattr(folder, name) == b"y":
                return True
    return False


def state(folder: int, name: str, status: os.stat_result) -> FileState:
    """Read a file or a link that was looked at, and no more than it had then."""
    if stat.S_ISLNK(status.st_mode):
        return FileState(0o120000, os.readlink(os.fsencode(name), dir_fd=folder))
    descriptor = _open(name, _OPEN_FILE, folder)
    with os.fdopen(descriptor, "rb", buffering=0) as file:
        # One call reads what is small.
        data = file.read(status.st_size) or b""
        while more := file.read(status.st_size - len(data)):
            data += more
    mode = 0o100755 if status.st_mode & stat.S_IXUSR else 0o100644
    return FileState(mode, data)
