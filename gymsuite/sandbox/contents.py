"""What an image holds in the places of a container, which begin empty, as the exec server takes it.

Owners are left out: all belongs to root, as in the rest of the image.
"""

import os
import stat
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import PurePosixPath

from gymsuite.errors import PathRefused, SandboxError
from gymsuite.sandbox.archive import Kind, link, made
from gymsuite.sandbox.gathering import BATCH_BYTES
from gymsuite.sandbox.image import Image
from gymsuite.sandbox.layers import Entry, walk
from gymsuite.sandbox.writable import Writable

Listing = Mapping[str, Entry]
"""What an image has in some places, by absolute path, parents first."""


def listing(image: Image, places: Sequence[Writable]) -> Listing:
    """Look at what an image has in some places. Blocks."""
    found: dict[str, Entry] = {}
    for place in places:
        found |= walk(image.layers, place.path)
    return found


def outside(listed: Listing, places: Iterable[str]) -> Listing:
    """Leave out what lies in some places."""
    left_out = set(map(PurePosixPath, places))
    return {
        path: entry
        for path, entry in listed.items()
        if left_out.isdisjoint(PurePosixPath(path).parents)
    }


def contents(listed: Listing) -> Iterator[bytes]:
    """Yield the entries to make below "/", in pieces of some size. Blocks."""
    batch = bytearray()
    locked: list[bytes] = []
    for path, entry in listed.items():
        for one in _made(path.lstrip("/"), entry, locked):
            batch += one
            if len(batch) >= BATCH_BYTES:
                yield bytes(batch)
                batch.clear()
    # What nobody may write to is filled first.
    yield bytes(batch) + b"".join(reversed(locked))


def _made(path: str, entry: Entry, locked: list[bytes]) -> Iterator[bytes]:
    mode = entry.status.st_mode
    permissions = stat.S_IMODE(mode)
    if stat.S_ISLNK(mode):
        yield link(path, os.readlink(entry.path))  # noqa: PTH115 - Path would normalise it
    elif stat.S_ISDIR(mode):
        yield made(Kind.DIRECTORY, permissions | stat.S_IRWXU, path)
        if permissions & stat.S_IRWXU != stat.S_IRWXU:
            locked.append(made(Kind.MODE, permissions, path))
    elif stat.S_ISREG(mode):
        yield from _file(path, entry, permissions)


def _file(path: str, entry: Entry, permissions: int) -> Iterator[bytes]:
    with entry.path.open("rb", buffering=0) as file:
        data = file.read(BATCH_BYTES)
        if len(data) < BATCH_BYTES:
            yield made(Kind.FILE, permissions, path, data)
            return
        yield made(Kind.FILE, permissions | stat.S_IWUSR, path, data)
        while data := file.read(BATCH_BYTES):
            yield made(Kind.MORE, 0, path, data)
        yield made(Kind.MODE, permissions, path)


def does_not_fit(image: Image, reason: PathRefused) -> SandboxError:
    """What to say where a place is too small for what the image has there."""
    return SandboxError(
        f"what image {image.name!r} holds in its writable directories does not fit into the"
        f" sandbox's disk: {reason}; raise disk_bytes, inodes and memory_bytes (written data counts"
        " as memory, and may take half of it)",
        retryable=False,
    )
