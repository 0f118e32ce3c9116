"""What a build needs of the host to reach a package index: resolver, certificates, settings."""

import re
from collections.abc import Iterator
from pathlib import Path

_SHARED = (
    "/etc/resolv.conf",
    "/etc/ssl/certs",
    "/usr/share/ca-certificates",
    "/usr/local/share/ca-certificates",
    "/etc/pip.conf",
    "/etc/xdg/pip",
)
_PIP_FILES = ("/etc/pip.conf", "/etc/xdg/pip/pip.conf")
_LOCAL_PATH = re.compile(r"(?:(?<=[\s=])|file://)(/[^\s,]+)")
_READABLE = 0o004


def network_binds() -> Iterator[tuple[Path, str]]:
    """Yield host paths, and where they appear to a build."""
    home = Path.home()
    mine = (home / ".config/pip/pip.conf", home / ".pip/pip.conf")
    for name in _SHARED:
        if Path(name).exists():
            yield Path(name).resolve(), name
    for path in mine:
        if _readable(path):
            yield path, str(Path("/root") / path.relative_to(home))
    for path in (*map(Path, _PIP_FILES), *mine):
        # Settings name wheels, indexes and constraints that lie on this machine.
        for named in _named(path) if _readable(path) else ():
            yield named, str(named)


def _named(settings: Path) -> Iterator[Path]:
    for match in _LOCAL_PATH.findall(settings.read_text(errors="replace")):
        path = Path(match)
        if path.name == "simple":
            # The pages of an index point to files that lie beside them.
            path = path.parent
        covered = any(path.is_relative_to(shared) for shared in _SHARED)
        if path.exists() and not covered:
            yield path


def _readable(path: Path) -> bool:
    return path.is_file() and bool(path.stat().st_mode & _READABLE)
