"""Finds out which Python an image has, without running anything of it."""

import re
import stat
from collections.abc import Sequence
from pathlib import Path, PurePosixPath

from gymsuite.sandbox.layers import lookup, resolve

_FOLDERS = ("/usr/local/bin", "/usr/bin")
_HEADER = re.compile(r'^#define PY_VERSION\s+"(\d+\.\d+\.\d+)', re.MULTILINE)
_PACKAGE = re.compile(r"^Package: python3\.\d+\n(?:.+\n)*?Version: (\d+\.\d+\.\d+)", re.MULTILINE)
_STATUS = "/var/lib/dpkg/status"
_MOST_BYTES = 32 << 20


def python_of(layers: Sequence[Path]) -> str:
    """The version of the first python3 on the usual path, or "" where that cannot be told.

    A Python says what it is in its headers; Debian's, which come apart, in the records of dpkg.
    """
    for folder in _FOLDERS:
        try:
            program = PurePosixPath(resolve(layers, f"{folder}/python3"))
        except ValueError:
            continue
        if lookup(layers, str(program)) is None:
            continue
        header = program.parent.parent / "include" / program.name / "patchlevel.h"
        for text, pattern in ((str(header), _HEADER), (_STATUS, _PACKAGE)):
            if found := pattern.search(_text(layers, text)):
                return found[1]
    return ""


def _text(layers: Sequence[Path], path: str) -> str:
    entry = lookup(layers, path)
    if entry is None or not stat.S_ISREG(entry.status.st_mode):
        return ""
    with entry.path.open("rb") as file:
        return file.read(_MOST_BYTES).decode(errors="replace")
