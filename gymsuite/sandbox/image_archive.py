"""The files of an image archive by name, be it a folder or a tar: none of them is ever unpacked."""

import io
import os
import stat
import tarfile
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import BinaryIO, NamedTuple

from gymsuite.errors import UsageError
from gymsuite.sandbox.decompressing import (
    CHUNK_BYTES,
    HEADER_BYTES,
    Budget,
    decompressed,
    is_compressed,
)

_MOST_MEMBERS = 100_000
_LONGEST_LINK_CHAIN = 8
_OPEN_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW
_OPEN_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK


@dataclass(frozen=True)
class Archive:
    """`open` returns a file of the archive, or None where it has none of that name."""

    open: Callable[[str], BinaryIO | None]


@contextmanager
def open_archive(path: Path, scratch: Path, budget: Budget) -> Iterator[Archive]:
    """Open a folder or a tar. A compressed tar is decompressed into `scratch` first.

    Raises `UsageError` for what is neither.
    """
    if path.is_dir():
        yield Archive(lambda name: _open_below(path, name))
        return
    try:
        file = path.open("rb")
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror}") from error
    with file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise UsageError(f"{path} is no file and no folder")
        if not is_compressed(file):
            yield _tar(file)
            return
        scratch.mkdir(parents=True, exist_ok=True)
        # Without a name from the start, so that nothing of it outlasts this process.
        with tempfile.TemporaryFile(dir=scratch) as plain:
            stream = decompressed(file)
            while data := stream.read(CHUNK_BYTES):
                budget.take_bytes(len(data))
                plain.write(data)
            plain.seek(0)
            yield _tar(plain)


class _Place(NamedTuple):
    offset: int
    size: int


def _tar(file: BinaryIO) -> Archive:
    places: dict[str, _Place] = {}
    links: dict[str, str] = {}
    guarded = _Guarded(file)
    with tarfile.open(fileobj=guarded, mode="r:", encoding="utf-8") as tar:  # type: ignore[call-overload]  # reads alike
        while (member := tar.next()) is not None:
            tar.members.clear()
            guarded.begin_header()
            if len(places) + len(links) > _MOST_MEMBERS:
                raise UsageError(f"it has more than {_MOST_MEMBERS} members")
            name = str(PurePosixPath(member.name))
            if member.isreg() and not member.issparse():
                places[name] = _Place(member.offset_data, member.size)
            elif member.issym() or member.islnk():
                folder = PurePosixPath(name).parent if member.issym() else PurePosixPath()
                links[name] = os.path.normpath(folder / member.linkname)
    return Archive(lambda name: _open_member(file, places, links, name))


def _open_member(
    file: BinaryIO, places: Mapping[str, _Place], links: Mapping[str, str], name: str
) -> BinaryIO | None:
    # Engines once wrote a layer that an image has twice as a link.
    for _ in range(_LONGEST_LINK_CHAIN):
        name = links.get(name, name)
    place = places.get(name)
    return None if place is None else io.BufferedReader(_Slice(file, place))


class _Slice(io.RawIOBase):
    """A part of a file."""

    def __init__(self, file: BinaryIO, place: _Place) -> None:
        self._file = file
        self._at = place.offset
        self._end = place.offset + place.size

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: "memoryview | bytearray") -> int:  # type: ignore[override]  # narrower
        self._file.seek(self._at)
        data = self._file.read(min(len(buffer), self._end - self._at))
        buffer[: len(data)] = data
        self._at += len(data)
        return len(data)


class _Guarded:
    """A file of which no more is read for one header than a header may have."""

    def __init__(self, file: BinaryIO) -> None:
        self.seek = file.seek
        self.tell = file.tell
        self._read = file.read
        self._left = HEADER_BYTES

    def begin_header(self) -> None:
        self._left = HEADER_BYTES

    def read(self, size: int = -1) -> bytes:
        if not 0 <= size <= self._left:
            raise UsageError(f"it has a header of more than {HEADER_BYTES} bytes")
        self._left -= size
        return self._read(size)


def _open_below(folder: Path, name: str) -> BinaryIO | None:
    """Open a file below a folder without following a link."""
    parts = PurePosixPath(name).parts
    if not parts or name.startswith("/") or ".." in parts or "\0" in name:
        raise UsageError(f"{name[:200]!r} leads out of {folder}")
    descriptor = os.open(folder, _OPEN_DIRECTORY)
    try:
        for part in parts[:-1]:
            inner = os.open(part, _OPEN_DIRECTORY, dir_fd=descriptor)
            os.close(descriptor)
            descriptor = inner
        file = os.fdopen(os.open(parts[-1], _OPEN_FILE, dir_fd=descriptor), "rb")
    except FileNotFoundError:
        return None
    except OSError as error:
        raise UsageError(f"{folder}/{name} is no plain file: {error.strerror}") from error
    finally:
        os.close(descriptor)
    if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
        file.close()
        raise UsageError(f"{folder}/{name} is no plain file")
    return file
