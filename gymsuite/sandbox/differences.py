"""What a container changed: of the paths that may differ, what is there now and in the image.

The result is what `overlay.difference` finds for a local sandbox. The paths and contents are an
adversary's, so all that is returned has a bound.
"""

import asyncio
import os
import stat
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from gymsuite.errors import SandboxError
from gymsuite.sandbox.contents import Listing
from gymsuite.sandbox.image import Image
from gymsuite.sandbox.layers import entry_state, resolve
from gymsuite.sandbox.looking import Look
from gymsuite.sandbox.protocol import Change, Changes, FileState
from gymsuite.sandbox.replies import Found

Reader = Callable[..., Awaitable[Found]]
"""`Channel.state`."""

_MOST_ENTRIES = 100_000
_ENTRY_BYTES = 256
_READS_AT_ONCE = 256
_READ_BYTES = 8 << 20


class Built(NamedTuple):
    """An image, and what it has in the places of a container."""

    image: Image
    listing: Listing


class Scope(NamedTuple):
    """What changes are wanted of: a directory, and how many bytes of contents altogether."""

    start: str
    max_bytes: int

    def concerns(self, path: str) -> bool:
        """Whether a path lies below the directory, and in no repository's own files."""
        above = self.start.rstrip("/") + "/"
        return path.startswith(above) and ".git" not in path[len(above) :].split("/")


def below(image: Image, root: str, max_bytes: int) -> Scope:
    """Follow the image's links on a path that changes are wanted below. Raises `SandboxError`."""
    try:
        return Scope(resolve(image.layers, root), max_bytes)
    except ValueError as error:
        raise SandboxError(f"cannot read changes below {root}: {error}", retryable=False) from error


async def differences(
    built: Built, paths: Iterable[str], now: Look, read: Reader, scope: Scope
) -> Changes:
    """Compare with the image that was built what may differ, by absolute paths.

    The scope bounds all contents together, with some bytes for each entry. No process but the exec
    server may be alive.
    """
    wanted = sorted(filter(scope.concerns, paths))
    if len(wanted) > _MOST_ENTRIES or not now.complete:
        return Changes((), (scope.start,))
    comparison = _Comparison(built, scope.max_bytes)
    comparison.omitted |= set(map(_text, filter(scope.concerns, now.skipped)))
    for batch in _batches(wanted, now):
        await comparison.add(batch, now, read)
    return Changes(tuple(sorted(comparison.changed)), tuple(sorted(comparison.omitted)))


def _batches(paths: list[str], now: Look) -> Iterator[list[str]]:
    """Few enough at a time that no more than a bound, or one file, is ever held."""
    batch: list[str] = []
    size = 0
    for path in paths:
        entry = now.entries.get(path)
        more = entry.size if entry else 0
        if batch and (len(batch) == _READS_AT_ONCE or size + more > _READ_BYTES):
            yield batch
            batch, size = [], 0
        batch.append(path)
        size += more
    if batch:
        yield batch


@dataclass
class _Comparison:
    """One comparison; `left` are the bytes that it may still return."""

    built: Built
    left: int
    changed: list[Change] = field(default_factory=list)
    omitted: set[str] = field(default_factory=set)

    async def add(self, paths: list[str], now: Look, read: Reader) -> None:
        """Compare some paths."""
        sizes = [self._size(path, now) for path in paths]
        known = [
            path for path, size in zip(paths, sizes, strict=True) if self._is_file(path, size, now)
        ]
        there = [path for path in known if _is_there(path, now)]
        found = await asyncio.gather(*(read(path, max_bytes=self.left) for path in there))
        states = dict(zip(there, found, strict=True))
        await asyncio.to_thread(self._compare_all, known, states)

    def _compare_all(self, paths: Sequence[str], states: Mapping[str, Found]) -> None:
        for path in paths:
            self._compare(path, states.get(path))

    def _is_file(self, path: str, size: int, now: Look) -> bool:
        entry = now.entries.get(path)
        odd = entry is not None and not _is_kept(entry.mode) and not stat.S_ISDIR(entry.mode)
        if odd or size > self.left or _text(path) != path:
            self.omitted.add(_text(path))
            return False
        return True

    def _size(self, path: str, now: Look) -> int:
        entry = now.entries.get(path)
        after = entry.size if entry and _is_kept(entry.mode) else 0
        return self._before_size(path) + after + _ENTRY_BYTES

    def _before_size(self, path: str) -> int:
        entry = self.built.listing.get(path)
        return entry.status.st_size if entry else 0

    def _compare(self, path: str, found: Found | None) -> None:
        if found is not None and found.data is None:
            self.omitted.add(path)
            return
        after = None if found is None or found.data is None else _state(found.mode, found.data)
        before_size = self._before_size(path)
        size = before_size + (len(after.data) if after else 0) + _ENTRY_BYTES
        if size > self.left:
            self.omitted.add(path)
            return
        there = self.built.listing.get(path)
        before = entry_state(self.built.image, path, there, max_bytes=before_size)
        if before != after:
            self.left -= size
            self.changed.append(Change(path, before, after))


def _is_there(path: str, now: Look) -> bool:
    entry = now.entries.get(path)
    return entry is not None and _is_kept(entry.mode)


def _is_kept(mode: int) -> bool:
    return stat.S_ISREG(mode) or stat.S_ISLNK(mode)


def _text(path: str) -> str:
    return os.fsencode(path).decode(errors="backslashreplace")


def _state(mode: int, data: bytes) -> FileState:
    if stat.S_ISLNK(mode):
        return FileState(0o120000, data)
    return FileState(0o100755 if mode & stat.S_IXUSR else 0o100644, data)
