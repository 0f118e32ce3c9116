"""Containers that are being made, written down, so that one is found whose asker was killed.

The Engine makes what it was asked for, also when nobody waits for it any more: until then it is in
no list, and could come after whoever tidies up has looked.
"""

import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from gymsuite.errors import SandboxError
from gymsuite.sandbox.owner import is_gone, this_process

_FOLDER = "creations"
# No Engine takes as long, and a process of an earlier boot is never said to be gone.
_OLD_SECONDS = 3600.0


@contextmanager
def creating(cache: Path, name: str) -> Iterator[None]:
    """Write down that a container of that name is being made, for as long as the block runs."""
    path = cache / _FOLDER / name
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(this_process())
    except OSError as error:
        raise SandboxError(f"cannot write below {cache}: {error}") from error
    try:
        yield
    finally:
        path.unlink(missing_ok=True)


def abandoned(cache: Path) -> list[str]:
    """Name the containers that processes were making when they died."""
    return sorted(path.name for path in (cache / _FOLDER).glob("*") if _is_abandoned(path))


def forget(cache: Path, name: str) -> None:
    """Cross out a container that is there, or will never be."""
    (cache / _FOLDER / name).unlink(missing_ok=True)


def _is_abandoned(path: Path) -> bool:
    with suppress(FileNotFoundError):
        age = time.time() - path.stat().st_mtime
        return age > _OLD_SECONDS or is_gone(path.read_text())
    return False
