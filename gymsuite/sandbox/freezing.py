"""What the places of a container held at one moment, on this machine's disk: a docker snapshot.

It is one file with the entries that make those places anew, in the exec server's own words. No file
of the container's ever becomes a file of this machine's.
"""

import asyncio
import stat
import struct
import weakref
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO, NamedTuple

from gymsuite.errors import SandboxError
from gymsuite.sandbox import transfer
from gymsuite.sandbox.archive import Data, Entry, Kind, Record, Skipped, WalkState, link, made
from gymsuite.sandbox.channel import Channel
from gymsuite.sandbox.gathering import BATCH_BYTES
from gymsuite.sandbox.image import Frozen, Image
from gymsuite.sandbox.looking import MOST_NAMES, Look
from gymsuite.sandbox.scratch import Scratches, remove_stale
from gymsuite.sandbox.threads import in_thread
from gymsuite.sandbox.wire import Request
from gymsuite.sandbox.writable import Writable

FROZEN = "frozen"
"""Where in the cache snapshots lie, a directory for each owner."""

_LENGTH = struct.Struct("<I")
_NAME_BYTES = 4096


class Contents(NamedTuple):
    """What was frozen: where, in which places, and what of it is a change of the built image."""

    built: Image
    path: Path
    places: frozenset[str]
    changed: frozenset[str]

    def batches(self) -> Iterator[bytes]:
        """Yield the entries to make below "/", in pieces. Blocks."""
        with self.path.open("rb") as file:
            while head := file.read(_LENGTH.size):
                yield file.read(_LENGTH.unpack(head)[0])


class Freezer:
    """All that is frozen, each for as long as anybody holds it."""

    def __init__(self, parent: Path) -> None:
        """Use a directory below `parent`, and remove those of owners that are dead."""
        remove_stale(parent)
        self._scratches = Scratches(parent)
        self._contents: dict[str, Contents] = {}

    def contents(self, frozen: Sequence[Frozen]) -> Contents | None:
        """What an image's snapshot holds, or None for an image that was built."""
        return self._contents[frozen[-1].key] if frozen else None

    def keep(self, contents: Contents) -> Frozen:
        """Keep a file until nothing refers to what is returned."""
        frozen = Frozen(str(contents.path))
        self._contents[frozen.key] = contents
        weakref.finalize(frozen, _release, self._contents, frozen.key)
        return frozen

    async def freeze(self, channel: Channel, places: Sequence[Writable]) -> tuple[Path, Look]:
        """Write what places hold to a file, and say how they look. No process may be alive.

        Raises `SandboxError`, also where something cannot be read.
        """
        directory = await in_thread(self._scratches.fresh)
        path = directory / "entries"
        try:
            return path, await _write(channel, places, path)
        except BaseException:
            await asyncio.shield(in_thread(lambda: _remove(path)))
            raise

    def close(self) -> None:
        """Remove all files."""
        self._scratches.close()


def _release(contents: dict[str, Contents], key: str) -> None:
    _remove(contents.pop(key).path)


def _remove(path: Path) -> None:
    path.unlink(missing_ok=True)
    if path.parent.is_dir():
        path.parent.rmdir()


async def _write(channel: Channel, places: Sequence[Writable], path: Path) -> Look:
    entries: dict[str, Entry] = {}
    try:
        with path.open("xb") as file:
            for place in places:
                writer = _Writer(file, place.path)
                limits = place.inodes + MOST_NAMES, place.size_bytes + place.inodes * _NAME_BYTES
                state = await transfer.receive(
                    channel, Request.PACK, place.path, limits, writer.take
                )
                await in_thread(writer.finish)
                if state is not WalkState.DONE:
                    raise SandboxError(f"{place.path} cannot be frozen: there is too much of it")
                entries |= writer.entries
    except OSError as error:
        raise SandboxError(f"a snapshot cannot be written to {path}: {error.strerror}") from error
    return Look(entries, frozenset(), complete=True)


@dataclass
class _Writer:
    """Turns what a pack of one place finds into entries to make."""

    file: BinaryIO
    root: str
    entries: dict[str, Entry] = field(default_factory=dict)
    _batch: bytearray = field(default_factory=bytearray)
    _later: list[bytes] = field(default_factory=list)
    _open: Entry | None = None
    _data: bytearray = field(default_factory=bytearray)
    _begun: bool = False

    async def take(self, records: list[Record]) -> None:
        """Add what was found, in the order in which it came."""
        await in_thread(lambda: self._add(records))

    def finish(self) -> None:
        """Write what is left."""
        self._end()
        for mode in reversed(self._later):
            self._put(mode)
        self._flush()

    def _add(self, records: list[Record]) -> None:
        for record in records:
            match record:
                case Data(data):
                    self._data += data
                    if len(self._data) >= BATCH_BYTES:
                        self._put_data()
                case Entry():
                    self._end()
                    self._begin(record)
                case Skipped(path):
                    raise SandboxError(
                        f"{self.root}/{path} cannot be frozen: it cannot be read; make it readable"
                        " for root, or remove it",
                        retryable=False,
                    )

    def _begin(self, entry: Entry) -> None:
        path, mode = f"{self.root}/{entry.path}".lstrip("/"), stat.S_IMODE(entry.mode)
        self.entries[f"/{path}"] = entry
        if stat.S_ISDIR(entry.mode):
            self._put(made(Kind.DIRECTORY, mode | stat.S_IRWXU, path))
            if mode & stat.S_IRWXU != stat.S_IRWXU:
                # It is filled first.
                self._later.append(made(Kind.MODE, mode, path))
        elif stat.S_ISREG(entry.mode) or stat.S_ISLNK(entry.mode):
            self._open, self._begun = entry, False

    def _end(self) -> None:
        if self._open is None:
            return
        path, mode = f"{self.root}/{self._open.path}".lstrip("/"), self._open.mode
        if stat.S_ISLNK(mode):
            self._put(link(path, self._data.decode(errors="surrogateescape")))
            self._data.clear()
        else:
            if self._data or not self._begun:
                self._put_data()
            if not mode & stat.S_IWUSR:
                self._put(made(Kind.MODE, stat.S_IMODE(mode), path))
        self._open = None

    def _put_data(self) -> None:
        if self._open is None:
            raise SandboxError(f"{self.root} cannot be frozen: there are contents of no file")
        path = f"{self.root}/{self._open.path}".lstrip("/")
        kind = Kind.MORE if self._begun else Kind.FILE
        mode = 0 if self._begun else stat.S_IMODE(self._open.mode) | stat.S_IWUSR
        self._put(made(kind, mode, path, bytes(self._data)))
        self._begun = True
        self._data.clear()

    def _put(self, entry: bytes) -> None:
        self._batch += entry
        if len(self._batch) >= BATCH_BYTES:
            self._flush()

    def _flush(self) -> None:
        self.file.write(_LENGTH.pack(len(self._batch)) + self._batch)
        self._batch.clear()
