"""Directories on the exec server's wire: what a walk finds and what is to be made, without I/O.

The other end is `exec_server/archive.h`. Paths are relative to the directory that was asked for;
bytes that are no UTF-8 are surrogates.
"""

import struct
from enum import IntEnum
from typing import NamedTuple

from gymsuite.sandbox import wire
from gymsuite.sandbox.wire import MalformedError

_PIECE = struct.Struct("<BII")
_ENTRY = struct.Struct("<BIQQqqI")
_DATA = struct.Struct("<BI")
_SKIPPED = struct.Struct("<BII")
_MADE = struct.Struct("<BI")
_IS_ENTRY, _IS_DATA, _IS_SKIPPED = 1, 2, 3


class WalkState(IntEnum):
    """How far a walk is."""

    MORE = 0
    DONE = 1
    TOO_MANY = 2
    TOO_LARGE = 3
    FAILED = 4


class Entry(NamedTuple):
    """Something in a directory, as lstat sees it."""

    path: str
    mode: int
    inode: int
    size: int
    ctime_ns: int
    atime_ns: int


class Data(NamedTuple):
    """Some of the contents of the entry before it: of a link, its target."""

    data: memoryview


class Skipped(NamedTuple):
    """What could not be looked at, with its errno."""

    path: str
    error: int


Record = Entry | Data | Skipped


class Piece(NamedTuple):
    """One reply of a walk. `handle` names the walk in a request for the next."""

    state: WalkState
    error: int
    handle: int
    records: list[Record]


class Kind(IntEnum):
    """What can be made of a directory's entries."""

    DIRECTORY = 1
    FILE = 2
    MORE = 3
    LINK = 4
    MODE = 5


def piece(payload: memoryview) -> Piece:
    """Read one reply of a walk. Raises `MalformedError`."""
    try:
        state, error, handle = _PIECE.unpack_from(payload)
        return Piece(WalkState(state), wire.checked_errno(error), handle, _records(payload))
    except (struct.error, ValueError) as reason:
        raise MalformedError(f"a piece of a directory that cannot be read: {reason}") from reason


def unpacked(payload: memoryview) -> tuple[int, str]:
    """Read the reply to entries: an errno, 0 when all were made, and the path that failed."""
    if len(payload) < wire.LENGTH.size:
        raise MalformedError(f"a reply of {len(payload)} bytes to entries")
    error = wire.checked_errno(*wire.LENGTH.unpack_from(payload))
    return error, _text(payload[wire.LENGTH.size :])


def made(kind: Kind, mode: int, path: str, data: bytes | None = None) -> bytes:
    """Write one entry; `data` are a file's contents or a link's target, with its size before."""
    head = _MADE.pack(kind, mode) + wire.text(path)
    return head if data is None else b"".join((head, wire.number(len(data)), data))


def link(path: str, target: str) -> bytes:
    """Write a link."""
    return _MADE.pack(Kind.LINK, 0) + wire.text(path) + wire.text(target)


def _records(payload: memoryview) -> list[Record]:
    records: list[Record] = []
    at, end = _PIECE.size, len(payload)
    while at < end:
        kind = payload[at]
        if kind == _IS_ENTRY:
            _, *status, length = _ENTRY.unpack_from(payload, at)
            at += _ENTRY.size + length
            records.append(Entry(_text(payload[at - length : at]), *status))
        elif kind == _IS_DATA:
            _, length = _DATA.unpack_from(payload, at)
            at += _DATA.size + length
            records.append(Data(payload[at - length : at]))
        elif kind == _IS_SKIPPED:
            _, error, length = _SKIPPED.unpack_from(payload, at)
            at += _SKIPPED.size + length
            path = _text(payload[at - length : at])
            records.append(Skipped(path, wire.checked_errno(error)))
        else:
            raise ValueError(f"a record of type {kind}")
    if at != end:
        raise ValueError("its last record is cut off")
    return records


def _text(data: memoryview) -> str:
    return str(data, "utf-8", "surrogateescape")
