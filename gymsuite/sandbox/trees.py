"""What the tree of a layer may hold."""

import os
import stat
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from gymsuite.sandbox.layers import is_whiteout


class Owner(NamedTuple):
    """Whom the files of layers belong to: overlayfs shows all others as unmapped."""

    uid: int
    gid: int


def settle(tree: Path, owner: Owner | None) -> int:
    """Leave only files, directories, links and whiteouts, all of one owner; return their bytes.

    Modes lose setuid and setgid, and the owner can read everything.
    """
    size = _settle(tree, tree.lstat(), owner)
    tree.chmod(0o755)
    for directory, names, files in os.walk(tree):
        for name in [*names, *files]:
            path = Path(directory, name)
            size += _settle(path, path.lstat(), owner)
    return size


def remove_mount_points(upper: Path, targets: Iterable[str]) -> None:
    """Remove the empty files and directories that were made for mounts to lie on."""
    upper = upper.resolve()
    for target in targets:
        place = upper / target.lstrip("/")
        # A step may have left a link above it, which leads to what is this machine's.
        if place.parent.resolve() != place.parent:
            continue
        with suppress(OSError):
            if stat.S_ISREG(place.lstat().st_mode) and not place.lstat().st_size:
                place.unlink()
                place = place.parent
            while place != upper:
                place.rmdir()
                place = place.parent


def _settle(path: Path, status: os.stat_result, owner: Owner | None) -> int:
    mode = status.st_mode
    if is_whiteout(status):
        return 0
    if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode) or stat.S_ISLNK(mode)):
        path.unlink()
        return 0
    if owner is not None and (status.st_uid, status.st_gid) != owner:
        os.lchown(path, *owner)
    if not stat.S_ISLNK(mode):
        readable = 0o700 if stat.S_ISDIR(mode) else 0o400
        wanted = stat.S_IMODE(mode) & 0o1777 | readable
        path.chmod(wanted)
    return status.st_blocks * 512
