"""Where build sandboxes keep what they write: one directory per process, made at its first build.

Those of owners that ended without tidying up are removed when the next one starts.
"""

import fcntl
import os
import tempfile
import threading
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from itertools import count
from pathlib import Path


@dataclass(frozen=True)
class Scratch:
    """This process's directory, held by a lock that ends with the process."""

    path: Path
    lock: int

    @classmethod
    def make(cls, parent: Path) -> "Scratch":
        """Make a directory below `parent`, and remove those of owners that are dead."""
        parent.mkdir(parents=True, exist_ok=True)
        remove_stale(parent)
        path = Path(tempfile.mkdtemp(prefix=f"{_identity(os.getpid())}-", dir=parent))
        lock = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
        fcntl.flock(lock, fcntl.LOCK_EX)
        return cls(path, lock)

    def close(self) -> None:
        """Remove the directory; what cannot be removed is left to the next process."""
        with suppress(OSError):
            remove_tree(self.path)
        with suppress(OSError):
            os.close(self.lock)


class Scratches:
    """This process's directory, made when it is first needed; a forked process has its own."""

    def __init__(self, parent: Path) -> None:
        self.parent = parent
        self._lock = threading.Lock()
        self._made: tuple[int, Scratch] | None = None

    def fresh(self) -> Path:
        """Make a directory for one sandbox."""
        with self._lock:
            if self._made is None or self._made[0] != os.getpid():
                self._made = os.getpid(), Scratch.make(self.parent)
            return Path(tempfile.mkdtemp(dir=self._made[1].path))

    def close(self) -> None:
        """Remove what this process made. Idempotent."""
        with self._lock:
            if self._made is not None and self._made[0] == os.getpid():
                self._made[1].close()
            self._made = None


def remove_stale(parent: Path, *, dry_run: bool = False) -> tuple[str, ...]:
    """Remove the directories of owners that are dead, and return their names."""
    try:
        found = sorted(parent.iterdir())
    except (FileNotFoundError, NotADirectoryError):
        return ()
    return tuple(old.name for old in found if _remove_stale(old, dry_run=dry_run))


def _identity(pid: int) -> str:
    """A process by its id and, as ids are used again, its start time: "" once it is gone."""
    try:
        line = Path(f"/proc/{pid}/stat").read_bytes()
    except OSError:
        return f"{pid}-"
    return f"{pid}-{line.rpartition(b')')[2].split()[19].decode()}"


def _remove_stale(path: Path, *, dry_run: bool) -> bool:
    owner = path.name.partition("-")[0]
    if not owner.isdigit() or path.name.startswith(f"{_identity(int(owner))}-"):
        return False
    # An owner in another container has a process id that means nothing here, but its lock holds.
    try:
        lock = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    except OSError:
        return False
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if not dry_run:
            remove_tree(path)
    except OSError:
        return False
    finally:
        os.close(lock)
    return True


def remove_tree(top: Path) -> None:
    """Remove a directory that an adversary filled, whatever its depth and its permissions.

    What lies too deep for recursion is moved to the top first. Nothing to remove is fine.
    """
    try:
        root = os.open(top, _OPEN_DIRECTORY)
    except FileNotFoundError:
        return
    try:
        numbers = count()
        while _entries(root):
            _empty(root, root, numbers, _DEEPEST)
    finally:
        os.close(root)
    top.rmdir()


_OPEN_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW
_DEEPEST = 64
_MOVED = "\N{BULLET}moved-"


def _empty(root: int, folder: int, numbers: Iterator[int], depth: int) -> None:
    for name, is_directory in _entries(folder):
        if not is_directory:
            os.unlink(name, dir_fd=folder)
            continue
        # To move a directory is to write its "..", which takes as much permission as to empty it.
        os.chmod(name, 0o700, dir_fd=folder)
        if depth:
            inner = os.open(name, _OPEN_DIRECTORY, dir_fd=folder)
            try:
                _empty(root, inner, numbers, depth - 1)
            finally:
                os.close(inner)
            os.rmdir(name, dir_fd=folder)
        else:
            os.rename(name, f"{_MOVED}{next(numbers)}", src_dir_fd=folder, dst_dir_fd=root)


def _entries(folder: int) -> list[tuple[str, bool]]:
    with os.scandir(folder) as entries:
        return [(entry.name, entry.is_dir(follow_symlinks=False)) for entry in entries]
