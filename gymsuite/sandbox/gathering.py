"""Reads a directory of this machine into the entries that make it anew in a sandbox."""

import os
import stat
from collections.abc import Iterator
from operator import attrgetter
from pathlib import Path

from gymsuite.errors import UsageError
from gymsuite.sandbox.archive import Kind, link, made

BATCH_BYTES = 256 << 10
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
    waiting = [("", str(source))]
    while waiting:
        directory, place = waiting.pop()
        for found in _scan(place):
            path = f"{directory}{found.name}"
            try:
                if found.is_symlink():
                    yield link(path, os.readlink(found.path))  # noqa: PTH115 - Path normalises
                elif found.is_dir(follow_symlinks=False):
                    mode = found.stat(follow_symlinks=False).st_mode & _PERMISSIONS
                    waiting.append((f"{path}/", found.path))
                    yield made(Kind.DIRECTORY, mode | _OWNER, path)
                    if mode & _OWNER != _OWNER:
                        # It is filled first.
                        locked.append(made(Kind.MODE, mode, path))
                elif found.is_file(follow_symlinks=False):
                    yield from _file(found.path, path)
                else:
                    raise UsageError(f"cannot upload {found.path!r}: no file, directory or link")
            except OSError as error:
                raise UsageError(f"cannot upload {found.path!r}: {error.strerror}") from error
    yield from reversed(locked)


def _scan(place: str) -> "list[os.DirEntry[str]]":
    try:
        with os.scandir(place) as entries:
            return sorted(entries, key=attrgetter("name"))
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
