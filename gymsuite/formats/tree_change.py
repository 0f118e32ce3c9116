"""What differs between two folders, and one of them made of the other: names, bytes and links."""

import hashlib
import os
import shutil
from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from gymsuite.errors import PathRefused, VerifierError


class TreeChange(NamedTuple):
    """Paths are relative. A folder or a link that replaces a file is a deletion as well."""

    files: Mapping[str, bytes] = {}
    deletions: tuple[str, ...] = ()
    folders: tuple[str, ...] = ()
    links: Mapping[str, str] = {}


def change_of(before: Path, after: Path) -> TreeChange:
    """Read both; raises `PathRefused` for a name that is no UTF-8."""
    old, new = _walk(before), _walk(after)
    changed = {path: what for path, what in new.items() if old.get(path) != what}
    return TreeChange(
        {p: (after / p).read_bytes() for p, what in changed.items() if what[0] == "file"},
        tuple(p for p, what in old.items() if what[0] != new.get(p, ("",))[0]),
        tuple(p for p, what in changed.items() if what[0] == "folder"),
        {p: str((after / p).readlink()) for p, what in changed.items() if what[0] == "link"},
    )


def apply_change(before: Path, change: TreeChange, target: Path) -> None:
    """Make `target` of `before`. Raises `VerifierError` for a path that leads elsewhere."""
    shutil.copytree(before, target, symlinks=True)
    for path in sorted(change.deletions, reverse=True):
        _remove(_inside(target, path))
    for path in sorted(change.folders):
        _inside(target, path).mkdir(parents=True, exist_ok=True)
    for path, data in change.files.items():
        place = _inside(target, path)
        place.parent.mkdir(parents=True, exist_ok=True)
        if place.is_symlink():
            place.unlink()
        place.write_bytes(data)
    for path, link in change.links.items():
        place = _inside(target, path)
        place.parent.mkdir(parents=True, exist_ok=True)
        if place.is_symlink():
            place.unlink()
        place.symlink_to(link)


def _walk(root: Path) -> dict[str, tuple[str, bytes]]:
    found: dict[str, tuple[str, bytes]] = {}
    for folder, folders, files in os.walk(root):
        for name in (*folders, *files):
            place = Path(folder) / name
            path = place.relative_to(root).as_posix()
            if not path.isprintable() and any("\ud800" <= letter <= "\udfff" for letter in path):
                raise PathRefused(f"a name that is no UTF-8: {path!r}")
            found[path] = _what(place)
    return dict(sorted(found.items()))


def _what(place: Path) -> tuple[str, bytes]:
    if place.is_symlink():
        return "link", os.fsencode(place.readlink())
    if place.is_dir():
        return "folder", b""
    with place.open("rb") as file:
        return "file", hashlib.file_digest(file, "sha256").digest()


def _inside(root: Path, path: str) -> Path:
    """The place of a path below the root, through no link."""
    parts = PurePosixPath(path).parts
    if not parts or path.startswith("/") or ".." in parts:
        raise VerifierError(f"a submission with a path that leads elsewhere: {path[:200]!r}")
    place = root
    for part in parts[:-1]:
        place /= part
        if place.is_symlink():
            raise VerifierError(f"a submission with a path through a link: {path[:200]!r}")
    return place / parts[-1]


def _remove(place: Path) -> None:
    if place.is_dir() and not place.is_symlink():
        shutil.rmtree(place)
    else:
        place.unlink(missing_ok=True)
