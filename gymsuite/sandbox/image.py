"""The file system that a sandbox starts from, as layers on this machine's disk."""

import platform
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from gymsuite.errors import SandboxError


@dataclass(frozen=True, eq=False)
class Frozen:
    """What a sandbox had changed when it was frozen; given up when nothing refers to it any more.

    `key` is what its provider calls it, and `keeper` which of the provider's keepers has it.
    `descriptor` is its directory, where it can be read from outside.
    """

    key: str
    keeper: str = ""
    descriptor: int = -1
    size_bytes: int = 0
    inodes: int = 0


@dataclass(frozen=True)
class Image:
    """A built image. Its digest is a hash of its recipe and of all that went into it.

    `layers` are directories, lowest first, to be stacked by overlayfs; a deleted file is an
    overlay whiteout. `binds` are read-only host paths that appear at the same path inside; only a
    `host` image has any, and only the `local` provider can run it. `hides` are directories below
    them that show empty: what is installed on the host is no part of an image. `python` is the
    version of the interpreter inside ("3.11.7"), or "" where there is none. `user` is whom
    commands run as, and whose all files are: a name or number, or name:group. `frozen` is what
    lies above the layers of a snapshot, lowest first: all of it is a change of the image that was
    built.
    """

    name: str
    digest: str
    base: str
    layers: tuple[Path, ...]
    binds: tuple[Path, ...] = ()
    hides: tuple[Path, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    workdir: str = "/workspace"
    architecture: str = field(default_factory=platform.machine)
    python: str = ""
    user: str = "root"
    frozen: tuple[Frozen, ...] = ()

    def check_architecture(self) -> None:
        """Raise `SandboxError` where the exec server could not run beside what is in the image."""
        if self.architecture != platform.machine():
            raise SandboxError(
                f"image {self.name!r} is for {self.architecture}, and this machine, with its exec "
                f"server, is {platform.machine()}; build the image here, or run it on its own kind",
                retryable=False,
            )
