"""What FROM can name: the lowest layer of an image, and how it is made."""

import hashlib
import json
import platform
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

FORMAT = 1
"""Part of every digest: raising it makes all layers anew."""

ARCHITECTURE = platform.machine()

ENV: Mapping[str, str] = MappingProxyType(
    {
        "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
        "HOME": "/root",
        "LANG": "C.UTF-8",
    }
)
"""What commands see where an image says nothing else."""


@dataclass(frozen=True)
class Base:
    """A base. `make` fills an empty tree and returns the version of the Python inside.

    `identity` is all that the tree depends on, and its hash the layer's digest. `binds` are the
    host's paths that show at the same place inside, but for the directories in `hides`.
    """

    name: str
    identity: tuple[str, ...]
    make: Callable[[Path], Awaitable[str]]
    env: Mapping[str, str]
    binds: tuple[Path, ...] = ()
    hides: tuple[Path, ...] = ()

    @property
    def digest(self) -> str:
        """The digest of the base's layer."""
        return digest_of("base", self.name, ARCHITECTURE, *self.identity)


def digest_of(*parts: str) -> str:
    """Hash a sequence of strings, so that no two sequences look alike."""
    return hashlib.sha256(json.dumps([FORMAT, *parts]).encode()).hexdigest()


def write_accounts(tree: Path) -> None:
    """Write the files that name users and hosts: ours, never the host's."""
    for name, text in _ETC.items():
        path = tree / "etc" / name
        path.parent.mkdir(exist_ok=True)
        path.unlink(missing_ok=True)
        path.write_text(text)


_ETC = {
    "passwd": (
        "root:x:0:0:root:/root:/bin/bash\n"
        "nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n"
    ),
    "group": "root:x:0:\nnogroup:x:65534:\n",
    "hosts": "127.0.0.1 localhost\n::1 localhost\n",
    "hostname": "sandbox\n",
    "nsswitch.conf": "passwd: files\ngroup: files\nhosts: files dns\n",
}
