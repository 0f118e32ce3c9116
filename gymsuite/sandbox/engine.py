"""What a Docker Engine is asked for, and what it answers."""

from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple


class Wish(NamedTuple):
    """A container to be. `labels` say whose it is."""

    name: str
    image: str
    server: Path
    labels: Mapping[str, str]
    memory_bytes: int
    cpus: float
    pids: int


class Container(NamedTuple):
    """A container that exists, in whatever state."""

    name: str
    labels: Mapping[str, str]
    state: str


class Difference(NamedTuple):
    """A path that is not as in the image; `deleted` says that it is not there at all."""

    path: str
    deleted: bool


class Capabilities(NamedTuple):
    """What this Engine enforces, and how many processors it has."""

    memory: bool
    cpus: bool
    pids: bool
    processors: int
