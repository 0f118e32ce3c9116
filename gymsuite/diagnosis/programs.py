"""What of other programs is there: the exec server, debootstrap; and the disk."""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

from gymsuite.diagnosis.finding import Finding
from gymsuite.sandbox import binary
from gymsuite.sandbox.disk import show_size

_AREA = "programs"
_LEAST_BYTES = 2 << 30
_LEAST_INODES = 50_000


def programs() -> Iterator[Finding]:
    """Look for the programs that sandboxes and images are made with."""
    yield _server()
    yield _debootstrap()


def disk(cache: Path) -> Finding:
    """Say what room the disk of the cache has."""
    place = cache.absolute()
    while not place.exists() and place != place.parent:
        place = place.parent
    try:
        status = os.statvfs(place)
    except OSError as error:
        return Finding("machine", "disk", "unknown", f"{cache}: {error.strerror}")
    free, inodes = status.f_bavail * status.f_frsize, status.f_favail
    detail = f"{cache}: {show_size(free)} and {inodes:,} inodes free"
    if not os.access(place, os.W_OK):
        fix = "name a directory that is yours by --cache or GYMSUITE_CACHE"
        return Finding("machine", "disk", "gap", f"{detail}, and not writable", fix)
    # Some file systems count no inodes, and say 0 of 0.
    if free < _LEAST_BYTES or (status.f_files and inodes < _LEAST_INODES):
        fix = "`gymsuite cache clean`, or another disk by --cache: a Debian image takes 1 GiB"
        return Finding("machine", "disk", "gap", detail, fix)
    return Finding("machine", "disk", "ok", detail)


def _server() -> Finding:
    try:
        path = binary.exec_server()
    except FileNotFoundError as error:
        text, _, fix = str(error).partition(": ")
        return Finding(_AREA, "exec server", "gap", text, fix)
    return Finding(_AREA, "exec server", "ok", f"{path.name}, {show_size(path.stat().st_size)}")


def _debootstrap() -> Finding:
    need = "only images FROM debian need it: those of docker, and of local:debian"
    if shutil.which("debootstrap") is None:
        fix = "apt-get install debootstrap, or import an image that `docker save` wrote"
        return Finding(_AREA, "debootstrap", "gap", f"not there; {need}", fix)
    if os.geteuid() != 0:
        fix = "build such images once as root, or import one that `docker save` wrote"
        return Finding(_AREA, "debootstrap", "gap", f"only root can run it; {need}", fix)
    return Finding(_AREA, "debootstrap", "ok", need)
