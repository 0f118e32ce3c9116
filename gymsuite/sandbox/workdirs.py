"""Where the commands of a sandbox start, and whether an image can have such a directory."""

import stat
from pathlib import Path, PurePosixPath

from gymsuite.errors import SandboxError
from gymsuite.sandbox.image import Image
from gymsuite.sandbox.layers import lookup, resolve
from gymsuite.types import SandboxSpec

_KERNELS = (("proc",), ("sys",), ("dev",))


def workdir(image: Image, spec: SandboxSpec) -> str:
    """Where commands start: the spec's workdir, or the image's where the spec names none."""
    return spec.workdir if "workdir" in spec.model_fields_set else image.workdir


def resolved(image: Image, path: str) -> str:
    """Follow an image's links on a path. Raises `SandboxError` for links that never end."""
    try:
        return resolve(image.layers, path)
    except ValueError as error:
        raise _error(image, path, str(error)) from error


def directory(image: Image, path: str) -> str:
    """Follow an image's links to a directory that is there or can be made, and return its path.

    Raises `SandboxError` where it can not: below a file, in what is this machine's or the kernel's.
    """
    inside = resolved(image, path)
    place = PurePosixPath(inside)
    if place.parts[1:2] in _KERNELS:
        raise _error(image, path, f"/{place.parts[1]} is the sandbox's own, and not to write to")
    bind = next((bind for bind in image.binds if place.is_relative_to(bind)), None)
    if bind is not None and (_is_hidden(image, place.parent) or not Path(inside).is_dir()):
        raise _error(image, path, f"{bind} is this machine's, and read-only")
    for above in (place, *place.parents[:-1]):
        entry = lookup(image.layers, str(above))
        if entry is not None and not stat.S_ISDIR(entry.status.st_mode):
            raise _error(image, path, f"{above} is no directory")
    return inside


def _is_hidden(image: Image, place: PurePosixPath) -> bool:
    """Whether something shows empty, so that nothing is below it."""
    return any(place.is_relative_to(path) for path in image.hides)


def _error(image: Image, path: str, reason: str) -> SandboxError:
    return SandboxError(
        f"a sandbox of image {image.name!r} cannot start commands in {path!r}: {reason}; give its"
        " spec another workdir, such as '/workspace'",
        retryable=False,
    )
