"""The COPY step: which file of the image's folder goes where, and what a change to one means.

Modes are made plain (executable or not), times are left out and links stay links, so a checkout's
umask and date make no other image.
"""

import difflib
import hashlib
import os
import posixpath
import shutil
import stat
from collections.abc import Iterator, Sequence
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from gymsuite.sandbox.image import Image
from gymsuite.sandbox.layers import lookup, resolve


class Placement(NamedTuple):
    """A file, directory or link of the folder, and its absolute path in the image."""

    source: Path
    target: str


def placements(folder: Path, sources: Sequence[str], target: str, image: Image) -> list[Placement]:
    """Say where each file goes, parents first, as Docker would place it.

    Raises ValueError, whose text says what is wrong, for a source that is missing and for a target
    that belongs to the host.
    """
    inside = resolve(image.layers, target)
    existing = lookup(image.layers, inside)
    into = target.endswith("/") or (existing is not None and stat.S_ISDIR(existing.status.st_mode))
    placed: list[Placement] = []
    for source in sources:
        path = _source(folder, source)
        if path.is_dir() and not path.is_symlink():
            placed.extend(_below(path, inside))
        else:
            name = resolve(image.layers, posixpath.join(inside, path.name)) if into else inside
            placed.append(Placement(path, name))
    for placement in placed:
        for bind in image.binds:
            if PurePosixPath(placement.target).is_relative_to(bind):
                raise ValueError(
                    f"{placement.target} lies in {bind}, which is the host's and read-only; copy"
                    " to /opt, /workspace or another directory of the image's own"
                )
    return placed


def content_digest(placed: Sequence[Placement]) -> str:
    """Hash where everything goes, and all that is copied: contents, links and execute bits."""
    total = hashlib.sha256()
    for source, target in placed:
        status = source.lstat()
        if stat.S_ISLNK(status.st_mode):
            kind, data = "link", os.fsencode(source.readlink())
        elif stat.S_ISDIR(status.st_mode):
            kind, data = "directory", b""
        else:
            kind = "executable" if status.st_mode & stat.S_IXUSR else "file"
            with source.open("rb") as file:
                data = hashlib.file_digest(file, "sha256").digest()
        for part in (kind.encode(), os.fsencode(target), data):
            total.update(len(part).to_bytes(8, "big") + part)
    return total.hexdigest()


def digest_of_folder(folder: Path) -> str:
    """Hash all that a folder holds, as far as it matters to an image."""
    return content_digest(list(_below(folder, "/")))


def copy(placed: Sequence[Placement], tree: Path, image: Image, mode: int | None) -> None:
    """Copy into the tree of a new layer above an image; `mode` is for all that is copied."""
    for source, target in placed:
        path = tree / target.lstrip("/")
        if source.is_dir() and not source.is_symlink():
            make_directory(tree, target, image)
            if mode is not None and lookup(image.layers, target) is None:
                path.chmod(mode)
            continue
        make_directory(tree, str(PurePosixPath(target).parent), image)
        path.unlink(missing_ok=True)
        shutil.copyfile(source, path, follow_symlinks=False)
        if not source.is_symlink():
            plain = 0o755 if source.stat().st_mode & stat.S_IXUSR else 0o644
            path.chmod(plain if mode is None else mode)


def make_directory(tree: Path, target: str, image: Image) -> None:
    """Make a directory in the tree of a new layer above an image.

    A directory of an upper layer hides the mode of the one below it, so that is taken over: /tmp
    has to stay everybody's.
    """
    inside = PurePosixPath(target)
    for path in [*reversed(inside.parents), inside]:
        directory = tree / path.relative_to("/")
        if directory.is_dir():
            continue
        directory.mkdir()
        below = lookup(image.layers, str(path))
        known = below is not None and stat.S_ISDIR(below.status.st_mode)
        directory.chmod(stat.S_IMODE(below.status.st_mode) if below and known else 0o755)


def _source(folder: Path, source: str) -> Path:
    path = folder / source
    if not path.resolve().is_relative_to(folder.resolve()):
        raise ValueError(f"{source} leads out of the image's folder; copy the file into the folder")
    if path.exists() or path.is_symlink():
        return path
    names = [str(p.relative_to(folder)) for p in folder.rglob("*")] if folder.is_dir() else []
    close = difflib.get_close_matches(source, names, n=1)
    hint = f"did you mean '{close[0]}'?" if close else "sources lie below the image's folder"
    raise ValueError(f"there is no '{source}' in {folder}; {hint}")


def _below(directory: Path, target: str) -> Iterator[Placement]:
    yield Placement(directory, target)
    for path in sorted(directory.rglob("*")):
        if not (path.is_symlink() or path.is_dir() or path.is_file()):
            raise ValueError(f"{path} is no file, directory or link")
        yield Placement(path, str(PurePosixPath(target) / path.relative_to(directory)))
