"""Reads a directory of this machine into the entries that make it anew in a sandbox."""

import os
import stat
from collections.abc import Iterator
from pathlib import Path

from gymsuite.errors import UsageError
from gymsuite.sandbox.archive import Kind, link, made

BATCH_BYTES = 512 << 10
_OPEN = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_PERMISSIONS = 0o777
_OWNER = 0o700


def batches(source: Path) -> Iterator[bytes]:
    """Yield a directory's entries in pieces of some size, parents first; at least one piece.

    Blocks. Holds one piece in memory. Raises `UsageError` for what is no file, directory or link,
    and for what cannot be read.
    """
    batch = bytearray()
    for entry in _entries(source):
        batch += entry
        if len(batch) >= BATCH_BYTES:
            yield bytes(batch)
            batch.clear()
    yield bytes(batch)


def _entries(source: Path) -> Iterator[bytes]:
    locked: list[bytes] = []
    waiting = [""]
    while waiting:
        directory = waiting.pop()
        prefix = directory + "/" if directory else ""
        for name in _names(source, directory):
            path = prefix + name
            place = os.path.join(source, path)  # noqa: PTH118 - Path would cost more than the copy
            try:
                mode = os.lstat(place).st_mode
                if stat.S_ISLNK(mode):
                    yield link(path, os.readlink(place))  # noqa: PTH115 - Path would normalise it
                elif stat.S_ISDIR(mode):
                    waiting.append(path)
                    yield made(Kind.DIRECTORY, mode & _PERMISSIONS | _OWNER, path)
                    if mode & _OWNER != _OWNER:
                        # It is filled first.
                        locked.append(made(Kind.MODE, mode & _PERMISSIONS, path))
                elif stat.S_ISREG(mode):
                    yield from _file(place, path)
                else:
                    raise UsageError(f"cannot upload {place!r}: it is no file, directory or link")
            except OSError as error:
                raise UsageError(f"cannot upload {place!r}: {error.strerror}") from error
    yield from reversed(locked)


def _names(source: Path, directory: str) -> list[str]:
    place = os.path.join(source, directory)  # noqa: PTH118 - see above
    try:
        return sorted(os.listdir(place))  # noqa: PTH208 - names are all that is needed
    except OSError as error:
        raise UsageError(f"cannot upload {place!r}: {error.strerror}") from error


def _file(place: str, path: str) -> Iterator[bytes]:
    file = os.open(place, _OPEN)
    try:
        mode = os.fstat(file).st_mode
        if not stat.S_ISREG(mode):
            raise UsageError(f"cannot upload {place!r}: it became something else meanwhile")
        permissions = mode & _PERMISSIONS
        data = os.read(file, BATCH_BYTES)
        if len(data) < BATCH_BYTES:
            yield made(Kind.FILE, permissions, path, data)
            return
        yield made(Kind.FILE, permissions | 0o600, path, data)
        while data := os.read(file, BATCH_BYTES):
            yield made(Kind.MORE, 0, path, data)
        yield made(Kind.MODE, permissions, path)
    finally:
        os.close(file)
