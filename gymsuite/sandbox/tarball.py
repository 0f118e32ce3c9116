"""An image's layers as one tar stream, the form in which Docker imports a file system."""

import io
import stat
import tarfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from gymsuite.sandbox.accounts import ROOT, Account
from gymsuite.sandbox.layers import Entry, walk

_CHUNK_BYTES = 1 << 20


def tar_stream(layers: Sequence[Path], owner: Account = ROOT) -> Iterator[bytes]:
    """Yield a tar of what the layers show together, all of it of one owner.

    Holds no more than one file in memory.
    """
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w|", format=tarfile.PAX_FORMAT) as tar:
        for path, entry in walk(layers):
            _add(tar, path.lstrip("/"), entry, owner)
            if buffer.tell() >= _CHUNK_BYTES:
                yield _take(buffer)
    yield _take(buffer)


def _add(tar: tarfile.TarFile, name: str, entry: Entry, owner: Account) -> None:
    member = tar.gettarinfo(str(entry.path), name)
    member.uid, member.gid = owner.uid, owner.gid
    member.uname = member.gname = ""
    if stat.S_ISREG(entry.status.st_mode) and member.isreg():
        with entry.path.open("rb") as file:
            tar.addfile(member, file)
    else:
        tar.addfile(member)


def _take(buffer: io.BytesIO) -> bytes:
    data = buffer.getvalue()
    buffer.seek(0)
    buffer.truncate()
    return data
