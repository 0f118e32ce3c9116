"""Writes a directory that came from a sandbox onto this machine: every member is an adversary's.

All goes into a new directory beside the target, which takes the target's place at the end. Each
name is made once, below directories that were made here, so nothing is ever written through a link.
"""

import errno
import os
import secrets
import shutil
import stat
import threading
from collections.abc import Iterable
from pathlib import Path

from gymsuite.errors import PathRefused, SandboxError, UsageError
from gymsuite.sandbox.archive import Data, Entry, Record

_LONGEST_NAME = 255
_LONGEST_PATH = 3000
_LONGEST_TARGET = 4095
_DIRECTORY_MODE = 0o755
# The member cannot have such a name here, or not so deep: its doing, not this machine's.
_UNNAMEABLE = frozenset((errno.ENAMETOOLONG, errno.EILSEQ, errno.EEXIST, errno.EINVAL))
_NEW_FILE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


def check_path(path: str) -> str:
    """Say what is wrong with a member's name, or "": it has to lead below its directory."""
    parts = path.split("/")
    if path.startswith("/"):
        return "its path is absolute"
    if ".." in parts:
        return "its path leads out"
    if "" in parts or "." in parts or "\0" in path:
        return "its path is malformed"
    if len(encoded(path)) > _LONGEST_PATH or any(len(encoded(p)) > _LONGEST_NAME for p in parts):
        return "its path is too long"
    return ""


def check_link(path: str, target: str) -> str:
    """Say what is wrong with a link, or "": it must not leave the directory that it is a member of.

    A `..` behind a name could leave by way of another link, so it may only come first.
    """
    if not target or "\0" in target or len(encoded(target)) > _LONGEST_TARGET:
        return "its target is malformed"
    if target.startswith("/"):
        return f"it links to {target[:200]!r}, an absolute path"
    parts = [part for part in target.split("/") if part not in {"", "."}]
    ups = 0
    while ups < len(parts) and parts[ups] == "..":
        ups += 1
    if ups > path.count("/") or ".." in parts[ups:]:
        return f"it links to {target[:200]!r}, out of the directory"
    return ""


def encoded(path: str) -> bytes:
    """Return a path as this machine's kernel takes it."""
    return path.encode("utf-8", "surrogateescape")


class Extraction:
    """One directory on its way to `target`. Its methods block; one thread at a time is let in."""

    def __init__(self, target: Path, *, max_bytes: int, max_files: int) -> None:
        self._target = target.absolute()
        self._place = self._target.parent / f".{target.name[:100]}.{secrets.token_hex(8)}"
        self._max_files = max_files
        self._bytes_left = max_bytes
        self._names: set[str] = set()
        self._directories = {""}
        self._member = ""
        self._file = -1
        self._is_link = False
        self._lock = threading.Lock()
        self._over = False

    def begin(self) -> None:
        """Make room for it. Raises `UsageError` where something is in its place already."""
        with self._lock:
            if os.path.lexists(self._target):
                raise UsageError(f"{self._target} exists; name a place where nothing is")
            try:
                self._place.mkdir(mode=0o700, parents=True)
            except OSError as error:
                raise UsageError(f"cannot make {self._target}: {error}") from error

    def add(self, records: Iterable[Record]) -> None:
        """Write some more. Raises `PathRefused` that names the member which cannot be."""
        with self._lock:
            try:
                for record in () if self._over else records:
                    self._add(record)
            except OSError as error:
                raise self._failure(error) from error

    def finish(self) -> None:
        """Let the directory appear at its target."""
        with self._lock:
            try:
                self._end_member()
                self._place.chmod(_DIRECTORY_MODE)
                # It replaces nothing but an empty directory.
                self._place.rename(self._target)
            except OSError as error:
                raise self._failure(error) from error
            self._over = True

    def discard(self) -> None:
        """Leave nothing, unless it is finished. Idempotent."""
        with self._lock:
            self._over = True
            self._close_file()
            shutil.rmtree(self._place, ignore_errors=True)

    def _add(self, record: Record) -> None:
        if isinstance(record, Entry):
            self._end_member()
            self._admit(record.path)
            self._make(record.path, record.mode)
        elif isinstance(record, Data):
            self._take(record.data)
        else:
            raise refusal(record.path, os.strerror(record.error))

    def _admit(self, path: str) -> None:
        if complaint := check_path(path):
            raise refusal(path, complaint)
        if path in self._names:
            raise refusal(path, "it comes twice")
        if path.rpartition("/")[0] not in self._directories:
            raise refusal(path, "what it lies in is no directory")
        if len(self._names) == self._max_files:
            raise refusal(path, f"there are more than {self._max_files} members")
        self._names.add(path)
        self._member = path
        self._spend(len(path))

    def _make(self, path: str, mode: int) -> None:
        kind = stat.S_IFMT(mode)
        # Modes are set on what was made: the caller's umask has no say in them.
        if kind == stat.S_IFDIR:
            os.mkdir(self._at(path), 0o700)  # noqa: PTH102 - a Path has no bytes
            os.chmod(self._at(path), mode & 0o755 | 0o700)  # noqa: PTH101 - the same
            self._directories.add(path)
        elif kind == stat.S_IFREG:
            self._file = os.open(self._at(path), _NEW_FILE, 0o600)
            os.fchmod(self._file, mode & 0o755 | 0o400)
        elif kind == stat.S_IFLNK:
            self._is_link = True
        else:
            raise refusal(path, "it is no file, directory or link")

    def _take(self, data: memoryview) -> None:
        self._spend(len(data))
        if self._is_link:
            target = str(data, "utf-8", "surrogateescape")
            if complaint := check_link(self._member, target):
                raise refusal(self._member, complaint)
            os.symlink(encoded(target), self._at(self._member))  # noqa: PTH211 - the same
            self._is_link = False
        elif self._file >= 0:
            while data:
                data = data[os.write(self._file, data) :]
        else:
            raise refusal(self._member, "it has contents, and is no file")

    def _spend(self, size: int) -> None:
        self._bytes_left -= size
        if self._bytes_left < 0:
            raise refusal(self._member, "with it, all is larger than allowed")

    def _end_member(self) -> None:
        self._close_file()
        if self._is_link:
            raise refusal(self._member, "it is a link without a target")

    def _close_file(self) -> None:
        if self._file >= 0:
            os.close(self._file)
        self._file = -1

    def _at(self, path: str) -> bytes:
        return os.fsencode(self._place) + b"/" + encoded(path)

    def _failure(self, error: OSError) -> SandboxError:
        if error.errno in _UNNAMEABLE:
            return refusal(self._member, os.strerror(error.errno or 0))
        return SandboxError(f"cannot write {self._member[:200]!r} to this machine: {error}")


def refusal(path: str, complaint: str) -> PathRefused:
    """Name the member that is not taken over."""
    return PathRefused(f"cannot take over {path[:200]!r}: {complaint}", retryable=False)
