"""Makes one layer of several: a mount takes only so many."""

import os
import stat
from collections.abc import Sequence
from pathlib import Path

from gymsuite.sandbox.layers import walk

MOST_LAYERS = 24
"""The options of one overlay mount, with all the layers' paths, fit in a page of memory."""


def join_layers(layers: Sequence[Path], tree: Path) -> None:
    """Fill an empty tree with what layers show together. Files are shared with them, not copied.

    All have to lie on one file system.
    """
    for path, entry in walk(layers):
        target = tree / path.lstrip("/")
        if stat.S_ISDIR(entry.status.st_mode):
            target.mkdir()
            target.chmod(stat.S_IMODE(entry.status.st_mode))
        else:
            os.link(entry.path, target, follow_symlinks=False)
