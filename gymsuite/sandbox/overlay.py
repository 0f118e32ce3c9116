"""What a sandbox changed, read from its overlay's upper directory.

The directory was filled by an adversary, who is dead by now: nothing in it moves any more. No link
is followed, nothing is opened that is not a regular file, and all that is returned has a bound.
"""

import os
import stat
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path, PurePosixPath

from gymsuite.errors import SandboxError
from gymsuite.sandbox.image import Image
from gymsuite.sandbox.layers import before_state, is_whiteout, lookup, resolve, walk
from gymsuite.sandbox.protocol import Change, Changes, FileState

_DEEPEST = 128
_MOST_ENTRIES = 100_000
_ENTRY_BYTES = 256
_OPEN_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW
_OPEN_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK
_OPAQUE = ("user.overlay.opaque", "trusted.overlay.opaque")
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


def remove_mount_points(upper: Path, targets: Iterable[str]) -> None:
    """Remove the empty files and directories that were made for mounts to lie on."""
    for target in targets:
        place = upper / target.lstrip("/")
        with suppress(OSError):
            if stat.S_ISREG(place.lstat().st_mode) and not place.lstat().st_size:
                place.unlink()
                place = place.parent
            while place != upper:
                place.rmdir()
                place = place.parent


class _TooManyError(Exception):
    """There are more entries than anyone should look at."""


class _Comparison:
    """One walk. `hidden` are places where nothing of the image shows any more."""

    def __init__(self, image: Image, max_bytes: int) -> None:
        self.changed: dict[str, Change] = {}
        self.omitted: set[str] = set()
        self._hidden: list[PurePosixPath] = []
        self._present: set[str] = set()
        self._image = image
        self._left = max_bytes
        self._seen = 0
        self._mounts = {*map(PurePosixPath, _MOUNTS), *map(PurePosixPath, image.binds)}

    def descend(self, uppers: Sequence[int], root: PurePosixPath) -> None:
        """Go down to `root`, which the sandbox may have replaced by something else."""
        with ExitStack() as stack:
            folders = [_entered(upper) for upper in uppers]
            place = PurePosixPath("/")
            for name in root.parts[1:]:
                place /= name
                status = next(filter(None, (_status(folder, name) for folder in folders)), None)
                if status is None:
                    return
                if not stat.S_ISDIR(status.st_mode):
                    self._hidden.append(root)
                    return
                folders = self._merged(stack, folders, place, hidden=root)
            self._directory(folders, root, 0)

    def delete_hidden(self) -> None:
        """Add what the image had in hidden places, and is not there again."""
        layers = self._image.layers
        for place in self._hidden:
            entry = lookup(layers, str(place))
            if entry is not None and not stat.S_ISDIR(entry.status.st_mode):
                self._delete(place)
            for name, below in walk(layers, str(place)):
                if not stat.S_ISDIR(below.status.st_mode):
                    self._delete(PurePosixPath(name))

    def _merged(
        self, stack: ExitStack, folders: Sequence[int], path: PurePosixPath, hidden: PurePosixPath
    ) -> list[int]:
        """Open the directories that lie over each other at a path, the latest first.

        The first one is there. Where the last says that nothing below it shows, `hidden` is noted.
        """
        merged: list[int] = []
        for folder in folders:
            status = _status(folder, path.name)
            if status is None:
                continue
            covers = not stat.S_ISDIR(status.st_mode)
            if not covers:
                merged.append(stack.enter_context(_opened(path.name, folder)))
                covers = _is_opaque(merged[-1])
            if covers:
                self._hidden.append(hidden)
                break
        return merged

    def _directory(self, folders: Sequence[int], path: PurePosixPath, depth: int) -> None:
        for name, folder in self._names(folders):
            inside = path / name
            if name == ".git" or inside in self._mounts:
                continue
            try:
                self._entry(folders, folder, inside, depth)
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

    def _entry(self, folders: Sequence[int], folder: int, path: PurePosixPath, depth: int) -> None:
        mode = os.stat(path.name, dir_fd=folder, follow_symlinks=False)
        if is_whiteout(mode):
            self._hidden.append(path)
        elif stat.S_ISDIR(mode.st_mode):
            self._subdirectory(folders, path, depth + 1)
        elif stat.S_ISREG(mode.st_mode) or stat.S_ISLNK(mode.st_mode):
            self._file(folder, path, mode)
        else:
            self._omit(path)

    def _subdirectory(self, folders: Sequence[int], path: PurePosixPath, depth: int) -> None:
        if depth > _DEEPEST:
            self._omit(path)
            return
        with ExitStack() as stack:
            self._directory(self._merged(stack, folders, path, hidden=path), path, depth)

    def _file(self, folder: int, path: PurePosixPath, status: os.stat_result) -> None:
        name = str(path)
        self._present.add(name)
        entry = lookup(self._image.layers, name)
        if entry is not None and stat.S_ISDIR(entry.status.st_mode):
            self._hidden.append(path)
        size = status.st_size + (entry.status.st_size if entry else 0) + _ENTRY_BYTES
        if size > self._left or not _is_text(name):
            self._omit(path)
            return
        after = _state(folder, path.name, status)
        before = before_state(self._image, name, max_bytes=self._left)
        if before != after:
            self._left -= size
            self.changed[name] = Change(name, before, after)

    def _delete(self, path: PurePosixPath) -> None:
        name = str(path)
        if ".git" in path.parts or name in self._present or name in self.changed:
            return
        self._count()
        entry = lookup(self._image.layers, name)
        size = (entry.status.st_size if entry else 0) + _ENTRY_BYTES
        if size > self._left:
            self._omit(path)
            return
        self._left -= size
        before = before_state(self._image, name, max_bytes=size)
        self.changed[name] = Change(name, before, None)

    def _omit(self, path: PurePosixPath) -> None:
        self._present.add(str(path))
        self.omitted.add(os.fsencode(path).decode(errors="backslashreplace"))

    def _count(self) -> None:
        self._seen += 1
        if self._seen > _MOST_ENTRIES:
            raise _TooManyError


@contextmanager
def _opened(path: str | Path, folder: int | None = None) -> Iterator[int]:
    descriptor = _open(path, _OPEN_DIRECTORY, folder)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _open(path: str | Path, flags: int, folder: int | None) -> int:
    """Open what is no link. It belongs to this user, who may have been denied to read it."""
    try:
        return os.open(path, flags, dir_fd=folder)
    except PermissionError:
        os.chmod(path, 0o700, dir_fd=folder)
        return os.open(path, flags, dir_fd=folder)


def _entered(folder: int) -> int:
    """Make sure that a directory that is open already can be looked into."""
    try:
        os.stat(".", dir_fd=folder)
    except PermissionError:
        os.fchmod(folder, 0o700)
    return folder


def _status(folder: int, name: str) -> os.stat_result | None:
    try:
        return os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return None


def _is_opaque(folder: int) -> bool:
    for name in _OPAQUE:
        with suppress(OSError):
            if os.getxattr(folder, name) == b"y":
                return True
    return False


def _is_text(name: str) -> bool:
    return os.fsencode(name).decode(errors="ignore") == name


def _state(folder: int, name: str, status: os.stat_result) -> FileState:
    if stat.S_ISLNK(status.st_mode):
        return FileState(0o120000, os.readlink(os.fsencode(name), dir_fd=folder))
    descriptor = _open(name, _OPEN_FILE, folder)
    with os.fdopen(descriptor, "rb") as file:
        data = file.read(status.st_size)
    mode = 0o100755 if status.st_mode & stat.S_IXUSR else 0o100644
    return FileState(mode, data)
