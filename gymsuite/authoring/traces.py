"""What this process's sandboxes could leave behind: processes, mounts, directories, containers."""

import os
from collections.abc import Iterator
from pathlib import Path

from gymsuite.sandbox.reaper import held
from gymsuite.worlds import sqlchild

_STAYING = {"gymsuite-keeper", "gymsuite-spare", sqlchild.NAME}
"""What holds the sandboxes of a process, what waits to become the next of them, and what carries
out queries of all its episodes: they end with it."""


async def traces(cache: Path, provider: str) -> set[str]:
    """Everything of that kind that is there now, each in words."""
    containers = await held() if provider.startswith("docker") else []
    return _on_this_machine(cache) | {f"container {name}" for name in containers}


def _on_this_machine(cache: Path) -> set[str]:
    live = cache / "live"
    own = [str(path) for path in live.glob(f"{os.getpid()}-*")] if live.is_dir() else []
    mounts = (line.split()[4] for line in Path("/proc/self/mountinfo").read_text().splitlines())
    return (
        {f"process {number} ({name})" for number, name in _descendants() if name not in _STAYING}
        | {f"mount {mount}" for mount in mounts if Path(mount).is_relative_to(live)}
        | {f"directory {path}" for path in own}
    )


def _descendants() -> Iterator[tuple[int, str]]:
    waiting = list(_children("self"))
    while waiting:
        number = waiting.pop()
        try:
            name = Path(f"/proc/{number}/comm").read_text().strip()
        except OSError:
            continue
        yield number, name
        waiting += _children(str(number))


def _children(number: str) -> Iterator[int]:
    for path in Path(f"/proc/{number}/task").glob("*/children"):
        try:
            yield from map(int, path.read_text().split())
        except OSError:
            continue
