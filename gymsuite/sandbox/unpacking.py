"""Unpacks the tar of a layer into a tree, deletions in the form in which overlayfs keeps them.

Whoever made the tar may be an adversary. The tree is empty at first and nobody else writes there,
so nothing in it was not made here; no link in it is ever followed, and nothing is made outside.
Owners, times of change and extended attributes are left out, and devices and pipes: a sandbox has
none but its own.
"""

import os
import stat
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO, NamedTuple

from gymsuite.errors import UsageError
from gymsuite.sandbox.decompressing import CHUNK_BYTES, Budget, Reader
from gymsuite.sandbox.scratch import remove_tree

_WHITEOUT = ".wh."
_OPAQUE = ".wh..wh..opq"
_OPAQUE_ATTRIBUTE = "user.overlay.opaque"
_LONGEST_PATH = 2048
_LONGEST_NAME = 255
_LONGEST_TARGET = 4000
_DEEPEST = 128
_LATEST = 1 << 33

_Parts = tuple[str, ...]


class Unpacked(NamedTuple):
    """The digest of the tar, and how many members have no place in a sandbox."""

    digest: str
    left_out: int


def unpack(stream: BinaryIO, tree: Path, budget: Budget, stopped: Callable[[], bool]) -> Unpacked:
    """Unpack into an empty tree. Raises `UsageError` for a tar that cannot be trusted.

    `stopped` is asked before each member.
    """
    reader = Reader(stream, budget)
    unpacking = _Unpacking(reader, tree, budget)
    with tarfile.open(fileobj=reader, mode="r:", encoding="utf-8") as tar:  # type: ignore[call-overload]  # reads alike
        while True:
            if stopped():
                raise UsageError("the import was interrupted")
            reader.begin_header()
            member = tar.next()
            if member is None:
                break
            tar.members.clear()
            budget.take_entry()
            try:
                unpacking.add(member)
            except (UsageError, ValueError) as error:
                raise UsageError(f"member {member.name!r}: {error}") from error
    if not reader.drain():
        raise UsageError("there is something behind the end of the tar, or a member is damaged")
    unpacking.finish()
    return Unpacked(reader.digest, unpacking.left_out)


class _Unpacking:
    def __init__(self, reader: Reader, tree: Path, budget: Budget) -> None:
        self.left_out = 0
        self._reader = reader
        self._tree = tree
        self._budget = budget
        # Known to be there; what is not known is looked at.
        self._directories: set[_Parts] = {()}
        self._deleted: set[_Parts] = set()
        self._opaque: set[_Parts] = set()

    def add(self, member: tarfile.TarInfo) -> None:
        parts = _parts(member.name)
        if parts and parts[-1].startswith(_WHITEOUT):
            self._delete(parts)
        elif member.isdir():
            self._directory(parts, member)
        elif not parts:
            raise UsageError("the root of a layer is a directory")
        elif member.ischr() or member.isblk() or member.isfifo():
            self.left_out += 1
        elif member.issparse() or not (member.isreg() or member.issym() or member.islnk()):
            raise UsageError(f"members of type {member.type!r} are not supported")
        else:
            self._file(parts, member)

    def finish(self) -> None:
        """Delete below: what the layer itself brings is on top of its own deletions."""
        for parts in self._opaque:
            self._parent((*parts, ""))
            os.setxattr(self._path(parts), _OPAQUE_ATTRIBUTE, b"y")
        for parts in self._deleted:
            self._parent(parts)
            path = self._path(parts)
            if not os.path.lexists(path):
                os.mknod(path, stat.S_IFCHR, os.makedev(0, 0))
            elif self._is_directory(parts):
                os.setxattr(path, _OPAQUE_ATTRIBUTE, b"y")

    def _delete(self, parts: _Parts) -> None:
        *parent, last = parts
        name = last.removeprefix(_WHITEOUT)
        if last == _OPAQUE:
            if not parent:
                raise UsageError("a layer that hides all others is not supported")
            self._opaque.add(tuple(parent))
        elif name in {"", ".", ".."}:
            raise UsageError("it deletes no name")
        elif not name.startswith(_WHITEOUT):  # those are bookkeeping of an old file system
            self._deleted.add((*parent, name))

    def _directory(self, parts: _Parts, member: tarfile.TarInfo) -> None:
        self._parent(parts)
        path = self._path(parts)
        if not self._is_directory(parts):
            self._clear(parts)
            path.mkdir()
            self._directories.add(parts)
        path.chmod(member.mode & 0o1777 | 0o700)

    def _file(self, parts: _Parts, member: tarfile.TarInfo) -> None:
        self._parent(parts)
        path = self._path(parts)
        # Found first: a name that is linked to itself would be removed.
        source = self._linked(member.linkname) if member.islnk() else None
        if source == path:
            return
        self._clear(parts)
        if source is not None:
            os.link(source, path, follow_symlinks=False)
        elif member.issym():
            if len(os.fsencode(member.linkname)) > _LONGEST_TARGET or not member.linkname:
                raise UsageError("it links to nothing, or too far")
            path.symlink_to(member.linkname)
            _set_time(path, member)
        else:
            self._regular(path, member)

    def _regular(self, path: Path, member: tarfile.TarInfo) -> None:
        self._reader.seek(member.offset_data)
        left = member.size
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
        with open(os.open(path, flags, 0o600), "wb") as file:  # noqa: PTH123 - a descriptor
            while left:
                data = self._reader.data(min(CHUNK_BYTES, left))
                if not data:
                    raise UsageError("the tar ends in the middle of it")
                file.write(data)
                left -= len(data)
        path.chmod(member.mode & 0o1777 | 0o400)
        _set_time(path, member)

    def _linked(self, name: str) -> Path:
        parts = _parts(name)
        path = self._path(parts)
        if not parts or not self._is_directory(parts[:-1]) or self._is_directory(parts):
            raise UsageError(f"it is a hard link to {name!r}, which is no file of this layer")
        if not os.path.lexists(path):
            raise UsageError(f"it is a hard link to {name!r}, which this layer does not have")
        return path

    def _parent(self, parts: _Parts) -> None:
        """Make the directories above; refuse what lies below a link or a file."""
        for end in range(1, len(parts)):
            above = parts[:end]
            if self._is_directory(above):
                continue
            path = self._path(above)
            if os.path.lexists(path):
                raise UsageError(f"{'/'.join(above)} is no directory of this layer")
            # Those that no member stands for count as well: one long name makes many.
            self._budget.take_entry()
            path.mkdir(mode=0o755)
            self._directories.add(above)

    def _clear(self, parts: _Parts) -> None:
        """Remove what an earlier member put there: the last one counts."""
        path = self._path(parts)
        if self._is_directory(parts):
            self._directories = {()}
            remove_tree(path)
        else:
            path.unlink(missing_ok=True)

    def _is_directory(self, parts: _Parts) -> bool:
        """Whether there is a directory, and nothing but directories above it."""
        for end in range(1, len(parts) + 1):
            if parts[:end] in self._directories:
                continue
            path = self._path(parts[:end])
            if not os.path.lexists(path) or not stat.S_ISDIR(path.lstat().st_mode):
                return False
            self._directories.add(parts[:end])
        return True

    def _path(self, parts: _Parts) -> Path:
        return self._tree.joinpath(*parts)


def _parts(name: str) -> _Parts:
    """Split a path that has to stay below the layer's root."""
    if name.startswith("/"):
        raise UsageError("an absolute path; it would be below the layer's root")
    parts = tuple(part for part in name.split("/") if part not in {"", "."})
    if ".." in parts:
        raise UsageError("a path with '..'; it would stay below the layer's root")
    if "\0" in name or len(parts) > _DEEPEST or len(os.fsencode(name)) > _LONGEST_PATH:
        raise UsageError("no path that a file can have here")
    if any(len(os.fsencode(part)) > _LONGEST_NAME for part in parts):
        raise UsageError(f"a name of more than {_LONGEST_NAME} bytes")
    if any(part.startswith(_WHITEOUT) for part in parts[:-1]):
        raise UsageError("it lies below the deletion of a name")
    return parts


def _set_time(path: Path, member: tarfile.TarInfo) -> None:
    # Python takes bytecode for stale when its source has another time than it had.
    seconds = min(max(int(member.mtime), 0), _LATEST)
    os.utime(path, (seconds, seconds), follow_symlinks=False)
