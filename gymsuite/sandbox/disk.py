"""How much of the disk the store may have: its limit, and the room that is left."""

import os
import re
import shutil
from pathlib import Path

from pydantic import ValidationError

from gymsuite.errors import SandboxError, UsageError
from gymsuite.sandbox.records import write_whole
from gymsuite.types import Model

DEFAULT_LIMIT_BYTES = 20 << 30
_SHARE = 4
_SPARE_BYTES = 64 << 20
_NOTHING_BYTES = 1 << 20
_UNITS = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}
_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*([kmgt]?)(?:i?b)?", re.IGNORECASE)


class _Setting(Model):
    limit_bytes: int


def limit_of(cache: Path) -> int:
    """How many bytes the layers of a cache may take.

    What was set, or else 20 GiB or a quarter of the disk, whichever is less.
    """
    try:
        return _Setting.model_validate_json(_file(cache).read_bytes()).limit_bytes
    except (OSError, ValidationError):
        return min(DEFAULT_LIMIT_BYTES, shutil.disk_usage(_existing(cache)).total // _SHARE)


def set_limit(cache: Path, limit_bytes: int) -> None:
    """Set how many bytes the layers may take, for every process that uses this cache."""
    try:
        cache.mkdir(parents=True, exist_ok=True)
        write_whole(_file(cache), _Setting(limit_bytes=limit_bytes).model_dump_json())
    except OSError as error:
        raise SandboxError(f"cannot write {_file(cache)}: {error}", retryable=False) from error


def require_space(cache: Path, wanted_bytes: int, what: str) -> None:
    """Raise `SandboxError` where the disk has no room for this, before anything is written."""
    free = free_bytes(cache)
    if free < wanted_bytes:
        raise SandboxError(
            f"{what} takes {show_size(wanted_bytes)}, and the disk of {cache} has"
            f" {show_size(free)} left; remove images (`gymsuite cache clean`), or use another disk"
            " (--cache)",
            retryable=False,
        )


def free_bytes(cache: Path) -> int:
    """How much may be written: what the disk has left, but for a little."""
    return max(shutil.disk_usage(_existing(cache)).free - _SPARE_BYTES, 0)


def is_full(path: Path) -> bool:
    """Whether next to nothing can be written there."""
    status = os.statvfs(path)
    return status.f_bavail * status.f_frsize < _NOTHING_BYTES or status.f_favail == 0


def read_size(text: str) -> int:
    """Read a number of bytes, such as 500M, 20GiB or 1048576. Raises `UsageError`."""
    match = _SIZE.fullmatch(text.strip())
    if match is None:
        raise UsageError(f"'{text}' is no size; write bytes, or a number with K, M, G or T: 20G")
    return int(float(match[1]) * _UNITS[match[2].lower()])


def show_size(size_bytes: float) -> str:
    """Write a number of bytes for a person."""
    size = float(size_bytes)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if size < 1024:  # noqa: PLR2004 - the step between units
            return f"{size:.0f} {unit}" if unit == "B" else f"{size:.1f} {unit}"
        size /= 1024
    return f"{size:.1f} TiB"


def _file(cache: Path) -> Path:
    return cache / "limit.json"


def _existing(path: Path) -> Path:
    while not path.exists():
        path = path.parent
    return path
