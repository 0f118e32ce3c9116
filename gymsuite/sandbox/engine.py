"""What a Docker Engine is asked for, and what it answers."""

import socket
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from gymsuite.errors import SandboxError
from gymsuite.sandbox.accounts import Account
from gymsuite.sandbox.writable import Writable


class Wish(NamedTuple):
    """A container to be. `labels` say whose it is; `runtime` is "" for the Engine's default.

    `account` is whom it runs as, and whose its places are. `channel` is the socket of this
    machine's to which the exec server comes; `sockets` are others, with where they are mounted.
    """

    name: str
    image: str
    server: Path
    channel: Path
    labels: Mapping[str, str]
    runtime: str
    account: Account
    memory_bytes: int
    cpus: float
    pids: int
    places: tuple[Writable, ...]
    sockets: tuple[tuple[Path, str], ...] = ()


class Container(NamedTuple):
    """A container that exists, in whatever state."""

    name: str
    labels: Mapping[str, str]
    state: str


class Capabilities(NamedTuple):
    """What this Engine enforces, how many processors it has, and what it can run containers in."""

    memory: bool
    cpus: bool
    pids: bool
    processors: int
    runtimes: tuple[str, ...]


class Started(NamedTuple):
    """A container that runs, with the connection to its first process."""

    id: str
    connection: socket.socket


class ImageMissing(SandboxError):  # noqa: N818 - an answer rather than an error
    """The Engine has no image of that name, be it that somebody removed it just now."""


class NameTaken(SandboxError):  # noqa: N818 - an answer rather than an error
    """A container of that name is there already: somebody else's."""
