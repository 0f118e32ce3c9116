"""Finds which server a TLS client asks for: in a tunnel it has to be the one that was allowed."""

from typing import Literal, NamedTuple

_RECORDS = range(0x14, 0x19)
_HANDSHAKE = 0x16
_MAJOR = 3
# The first bit, and the third and fourth byte, of a hello in the form of SSL 2, which has no names.
_OLD_RECORD = 0x80
_OLD_HELLO = b"\x01\x03"
_LONGEST_RECORD = 1 << 14
_LONGEST_HELLO = 1 << 14
_MOST_RECORDS = 32
_CLIENT_HELLO = 1
_SERVER_NAME = 0
_ENCRYPTED_HELLO = 0xFE0D


class Hello(NamedTuple):
    """What a client's first bytes are; `server_name` is of a hello, "" where it gives none."""

    kind: Literal["other", "part", "hello", "broken"]
    server_name: str = ""


def examine(data: bytes) -> Hello:
    """Read the first bytes of a connection: `part` needs more of them, `other` is not TLS."""
    if not data:
        return Hello("part")
    if data[0] & _OLD_RECORD and _OLD_HELLO.startswith(data[2:4]):
        return Hello("broken" if len(data) >= 4 else "part")  # noqa: PLR2004 - all of it is there
    # Some servers skip a warning that comes before the hello, so whatever TLS has begins it.
    if data[0] not in _RECORDS:
        return Hello("other")
    try:
        message = _message(data)
        return Hello("part") if message is None else Hello("hello", _server_name(message))
    except (_BrokenError, UnicodeDecodeError):
        return Hello("broken")


class _BrokenError(Exception):
    """It begins as TLS does, and is none; or it hides the server's name."""


class _Reader:
    def __init__(self, data: bytes) -> None:
        self._data = data

    def __bool__(self) -> bool:
        return bool(self._data)

    def take(self, count: int) -> bytes:
        if count > len(self._data):
            raise _BrokenError
        taken, self._data = self._data[:count], self._data[count:]
        return taken

    def take_all(self) -> bytes:
        return self.take(len(self._data))

    def number(self, size: int) -> int:
        return int.from_bytes(self.take(size), "big")

    def block(self, size: int) -> "_Reader":
        return _Reader(self.take(self.number(size)))


def _message(data: bytes) -> bytes | None:
    """The first handshake message, put together from as many records as it lies in."""
    message, at = b"", 0
    for _ in range(_MOST_RECORDS):
        header = data[at : at + 5]
        if len(header) < 5:  # noqa: PLR2004 - a record's type, version and length
            return None
        length = int.from_bytes(header[3:], "big")
        if header[0] != _HANDSHAKE or header[1] != _MAJOR or not 0 < length <= _LONGEST_RECORD:
            raise _BrokenError
        message += data[at + 5 : at + 5 + length]
        if message and message[0] != _CLIENT_HELLO:
            raise _BrokenError
        if len(message) >= 4:  # noqa: PLR2004 - a message's type and length
            size = 4 + int.from_bytes(message[1:4], "big")
            if size > _LONGEST_HELLO:
                raise _BrokenError
            if len(message) >= size:
                return message[4:size]
        at += 5 + length
    raise _BrokenError


def _server_name(message: bytes) -> str:
    hello = _Reader(message)
    hello.take(2 + 32)
    hello.block(1)
    hello.block(2)
    hello.block(1)
    names = []
    extensions = hello.block(2) if hello else _Reader(b"")
    while extensions:
        kind, body = extensions.number(2), extensions.block(2)
        if kind == _ENCRYPTED_HELLO:
            raise _BrokenError
        if kind == _SERVER_NAME:
            entries = body.block(2)
            while entries:
                if entries.number(1) != 0:
                    raise _BrokenError
                names.append(entries.block(2).take_all().decode("ascii").lower())
    if len(names) > 1:
        raise _BrokenError
    return names[0].removesuffix(".") if names else ""
