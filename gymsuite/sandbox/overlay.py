"""What a sandbox changed, read from its overlay's upper directory.

The directory was filled by an adversary, who is dead by now: nothing in it moves any more. No link
is followed, nothing is opened that is not a regular file, and all that is returned has a bound.
"""

import os
import stat
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from gymsuite.errors import SandboxError
from gymsuite.sandbox.descriptors import entered, is_opaque, opened, state, status_of
from gymsuite.sandbox.image import Image
from gymsuite.sandbox.layers import (
    Entry,
    entry_state,
    find,
    find_below,
    is_whiteout,
    lookup,
    resolve,
    walk,
)
from gymsuite.sandbox.protocol import Change, Changes

_DEEPEST = 128
_MOST_ENTRIES = 100_000
_ENTRY_BYTES = 256
_MOUNTS = ("/dev", "/proc")


def difference(uppers: Sequence[int], image: Image, root: str, max_bytes: int) -> Changes:
    """Compare what is below `root` with the image. Paths are absolute, inside the sandbox.

    `uppers` are descriptors of directories of changes, the latest first; each lies over those that
    follow. `max_bytes` bounds all contents together, with some bytes for each entry.
    """
    try:
        start = PurePosixPath(resolve(image.layers, root))
    except ValueError as error:
        raise SandboxError(f"cannot read changes below {root}: {error}", retryable=False) from error
    comparison = _Comparison(image, max_bytes)
    try:
        comparison.descend(uppers, start)
        comparison.delete_hidden()
    except _TooManyError:
        # What was found so far is not what there is.
        return Changes((), (str(start),))
    changed = sorted(comparison.changed.values())
    return Changes(tuple(changed), tuple(sorted(comparison.omitted)))


class _TooManyError(Exception):
    """There are more entries than anyone should look at."""


class _Merged(NamedTuple):
    """A directory: those of the changes, the latest first, and the image's, the topmost first."""

    folders: Sequence[int]
    below: Sequence[Path]


class _Name(NamedTuple):
    """A name in a directory of the changes, and its path inside."""

    folder: int
    name: str
    path: str


class _Comparison:
    """One walk. `hidden` are places where nothing of the image shows any more."""

    def __init__(self, image: Image, max_bytes: int) -> None:
        self.changed: dict[str, Change] = {}
        self.omitted: set[str] = set()
        self._hidden: list[str] = []
        self._present: set[str] = set()
        self._image = image
        self._left = max_bytes
        self._seen = 0
        self._mounts = {*_MOUNTS, *map(str, image.binds)}

    def descend(self, uppers: Sequence[int], root: PurePosixPath) -> None:
        """Go down to `root`, which the sandbox may have replaced by something else."""
        with ExitStack() as stack:
            folders = [entered(upper) for upper in uppers]
            for name in root.parts[1:]:
                status = next(filter(None, (status_of(folder, name) for folder in folders)), None)
                if status is None:
                    return
                if not stat.S_ISDIR(status.st_mode):
                    self._hidden.append(str(root))
                    return
                folders = self._merged(stack, folders, name, hidden=str(root))
            found = find(self._image.layers, str(root))
            below = found.directories if found else ()
            self._directory(_Merged(folders, below), str(root).rstrip("/"), 0)

    def delete_hidden(self) -> None:
        """Add what the image had in hidden places, and is not there again."""
        layers = self._image.layers
        for place in self._hidden:
            entry = lookup(layers, place)
            if entry is not None and not stat.S_ISDIR(entry.status.st_mode):
                self._delete(place, entry)
            for name, below in walk(layers, place):
                if not stat.S_ISDIR(below.status.st_mode):
                    self._delete(name, below)

    def _merged(
        self, stack: ExitStack, folders: Sequence[int], name: str, hidden: str
    ) -> list[int]:
        """Open the directories of a name that lie over each other, the latest first.

        The first one is there. Where the last says that nothing below it shows, `hidden` is noted.
        """
        merged: list[int] = []
        for folder in folders:
            status = status_of(folder, name)
            if status is None:
                continue
            covers = not stat.S_ISDIR(status.st_mode)
            if not covers:
                merged.append(stack.enter_context(opened(name, folder)))
                covers = is_opaque(merged[-1])
            if covers:
                self._hidden.append(hidden)
                break
        return merged

    def _directory(self, here: _Merged, path: str, depth: int) -> None:
        for name, folder in self._names(here.folders):
            inside = f"{path}/{name}"
            if name == ".git" or inside in self._mounts:
                continue
            try:
                self._entry(here, _Name(folder, name, inside), depth)
            except OSError:
                self._omit(inside)

    def _names(self, folders: Sequence[int]) -> list[tuple[str, int]]:
        """Every name, with the latest directory that has it."""
        names: dict[str, int] = {}
        for folder in folders:
            with os.scandir(folder) as entries:
                for entry in entries:
                    self._count()
                    names.setdefault(entry.name, folder)
        return sorted(names.items())

    def _entry(self, here: _Merged, at: _Name, depth: int) -> None:
        status = os.stat(at.name, dir_fd=at.folder, follow_symlinks=False)
        if is_whiteout(status):
            self._hidden.append(at.path)
        elif stat.S_ISDIR(status.st_mode):
            self._subdirectory(here, at, depth + 1)
        elif stat.S_ISREG(status.st_mode) or stat.S_ISLNK(status.st_mode):
            entry = find_below(here.below, at.name).entry if here.below else None
            self._file(at, status, entry)
        else:
            self._omit(at.path)

    def _subdirectory(self, here: _Merged, at: _Name, depth: int) -> None:
        if depth > _DEEPEST:
            self._omit(at.path)
            return
        below = find_below(here.below, at.name).directories if here.below else ()
        with ExitStack() as stack:
            folders = self._merged(stack, here.folders, at.name, hidden=at.path)
            self._directory(_Merged(folders, below), at.path, depth)

    def _file(self, at: _Name, status: os.stat_result, entry: Entry | None) -> None:
        self._present.add(at.path)
        if entry is not None and stat.S_ISDIR(entry.status.st_mode):
            self._hidden.append(at.path)
        size = status.st_size + (entry.status.st_size if entry else 0) + _ENTRY_BYTES
        if size > self._left or not _is_text(at.path):
            self._omit(at.path)
            return
        after = state(at.folder, at.name, status)
        before = entry_state(self._image, at.path, entry, max_bytes=self._left)
        if before != after:
            self._left -= size
            self.changed[at.path] = Change(at.path, before, after)

    def _delete(self, path: str, entry: Entry) -> None:
        if ".git" in path.split("/") or path in self._present or path in self.changed:
            return
        self._count()
        size = entry.status.st_size + _ENTRY_BYTES
        if size > self._left:
            self._omit(path)
            return
        self._left -= size
        before = entry_state(self._image, path, entry, max_bytes=size)
        self.changed[path] = Change(path, before, None)

    def _omit(self, path: str) -> None:
        self._present.add(path)
        self.omitted.add(os.fsencode(path).decode(errors="backslashreplace"))

    def _count(self) -> None:
        self._seen += 1
        if self._seen > _MOST_ENTRIES:
            raise _TooManyError


def _is_text(name: str) -> bool:
    return os.fsencode(name).decode(errors="ignore") == name
