"""Tells a full disk from other trouble with files."""

import errno
import os
from pathlib import Path

from gymsuite.errors import ModelError

NO_ROOM = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})


def cannot_write(number: int, folder: Path) -> ModelError:
    """The error for a file that could not be written below `folder`, by the system's number."""
    way_out = (
        "make room, or name another directory with --cache"
        if number in NO_ROOM
        else "the cache must be a directory that you can write; name another with --cache"
    )
    message = f"cannot write to {folder}: {os.strerror(number)}; {way_out}"
    return ModelError(message, retryable=False)
