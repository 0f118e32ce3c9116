"""What a container changed: the Engine names the paths, the exec server reads what is there now.

The result is what `overlay.difference` finds for a local sandbox. The paths and contents are an
adversary's, so all that is returned has a bound.
"""

import asyncio
import stat
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from pathlib import PurePosixPath

from gymsuite.errors import SandboxError
from gymsuite.sandbox.engine import Difference
from gymsuite.sandbox.image import Image
from gymsuite.sandbox.layers import before_state, lookup, resolve, walk
from gymsuite.sandbox.protocol import Change, Changes, FileState
from gymsuite.sandbox.wire import Found

Reader = Callable[..., Awaitable[Found]]
"""`Channel.state`."""

_MOST_ENTRIES = 100_000
_ENTRY_BYTES = 256
# The Engine's JSON has it in place of a byte that is no UTF-8.
_UNKNOWN = "\N{REPLACEMENT CHARACTER}"


async def differences(
    image: Image, found: Sequence[Difference], read: Reader, root: str, max_bytes: int
) -> Changes:
    """Compare what is below `root` with the image. Paths are absolute, inside the sandbox.

    `max_bytes` bounds all contents together, with some bytes for each entry. No process but the
    exec server may be alive.
    """
    try:
        start = PurePosixPath(resolve(image.layers, root))
    except ValueError as error:
        raise SandboxError(f"cannot read changes below {root}: {error}", retryable=False) from error
    below = [d for d in found if _concerns(PurePosixPath(d.path), start)]
    if len(below) > _MOST_ENTRIES:
        return Changes((), (str(start),))
    comparison = _Comparison(image, start, max_bytes)
    for difference in sorted(below):
        path = PurePosixPath(difference.path)
        if difference.deleted:
            comparison.hide(path)
        else:
            await comparison.look(path, read)
    return await asyncio.to_thread(comparison.finish)


def _concerns(path: PurePosixPath, start: PurePosixPath) -> bool:
    if path.is_relative_to(start):
        return ".git" not in path.relative_to(start).parts
    return start.is_relative_to(path)


@dataclass
class _Comparison:
    """One comparison. `hidden` are places where nothing of the image shows any more."""

    image: Image
    start: PurePosixPath
    left: int
    hidden: list[PurePosixPath] = field(default_factory=list)
    present: set[str] = field(default_factory=set)
    changed: dict[str, Change] = field(default_factory=dict)
    omitted: set[str] = field(default_factory=set)

    def hide(self, path: PurePosixPath) -> None:
        """Note that the image's content at or around a path is gone."""
        self.hidden.append(path if path.is_relative_to(self.start) else self.start)

    async def look(self, path: PurePosixPath, read: Reader) -> None:
        """See what is at a path now."""
        name = str(path)
        found = await read(name, max_bytes=self.left)
        directory = stat.S_ISDIR(found.mode)
        if directory != self._was_directory(name):
            self.hide(path)
        if directory or path == self.start or not path.is_relative_to(self.start):
            return
        if found.data is None:
            if found.mode != 0 or _UNKNOWN in name:
                self.omitted.add(name)
            return
        self.present.add(name)
        # At once, so that no more than the bound is ever held.
        await asyncio.to_thread(self._compare, name, _state(found.mode, found.data))

    def finish(self) -> Changes:
        """Add what the image had in hidden places, and is not there again."""
        for place in self.hidden:
            for name in self._files(place):
                if name not in self.present and name not in self.omitted:
                    self._compare(name, None)
        return Changes(tuple(sorted(self.changed.values())), tuple(sorted(self.omitted)))

    def _compare(self, name: str, after: FileState | None) -> None:
        entry = lookup(self.image.layers, name)
        before_bytes = entry.status.st_size if entry else 0
        size = before_bytes + (len(after.data) if after else 0) + _ENTRY_BYTES
        if size > self.left:
            self.omitted.add(name)
            return
        before = before_state(self.image, name, max_bytes=before_bytes)
        if before != after:
            self.left -= size
            self.changed[name] = Change(name, before, after)

    def _files(self, place: PurePosixPath) -> list[str]:
        """What the image has at a place and below, but for directories."""
        names = [(str(place), lookup(self.image.layers, str(place)))]
        names += walk(self.image.layers, str(place))
        return [
            name
            for name, entry in names
            if entry is not None
            and not stat.S_ISDIR(entry.status.st_mode)
            and _concerns(PurePosixPath(name), self.start)
        ]

    def _was_directory(self, name: str) -> bool:
        entry = lookup(self.image.layers, name)
        return entry is not None and stat.S_ISDIR(entry.status.st_mode)


def _state(mode: int, data: bytes) -> FileState:
    if stat.S_ISLNK(mode):
        return FileState(0o120000, data)
    return FileState(0o100755 if mode & stat.S_IXUSR else 0o100644, data)
