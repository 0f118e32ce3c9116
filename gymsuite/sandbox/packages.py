"""Where a machine keeps Python packages: none of them belong to an image.

They vary from one machine to the next, and may hold what a task is about.
"""

import os
from collections.abc import Iterable, Iterator
from pathlib import Path

_NAMES = ("site-packages", "dist-packages")
_PARENTS = (
    *("/usr/lib", "/usr/lib32", "/usr/lib64", "/usr/libexec", "/usr/share", "/usr/local"),
    *("/usr/local/lib", "/usr/local/lib64", "/usr/local/share"),
)
_DEPTH = 5
# Large, and no place for a Python: without them the walk takes some twenty milliseconds.
_SKIPPED = {"doc", "man", "locale", "zoneinfo", "include", "icons", "fonts", "src", "gcc", "jvm"}


def installed(prefixes: Iterable[Path]) -> Iterator[Path]:
    """Yield the package directories of the Pythons that are installed at these prefixes."""
    for prefix in prefixes:
        for name in _NAMES:
            yield from sorted(prefix.glob(f"lib*/python3*/{name}"))


def bundled() -> Iterator[Path]:
    """Yield the folders of programs that bring a Python of their own, with its packages."""
    for parent in _PARENTS:
        for child in _folders(parent):
            ordinary = child in _PARENTS or "/python3" in child or "-linux-" in child
            if not ordinary and _has_packages(child, _DEPTH):
                yield Path(child)


def _has_packages(folder: str, depth: int) -> bool:
    return any(
        os.path.basename(child) in _NAMES or (depth and _has_packages(child, depth - 1))  # noqa: PTH119 - hot
        for child in _folders(folder)
    )


def _folders(folder: str) -> list[str]:
    try:
        with os.scandir(folder) as entries:
            return sorted(
                entry.path
                for entry in entries
                if entry.name not in _SKIPPED and entry.is_dir(follow_symlinks=False)
            )
    except OSError:
        return []
