"""The frames of the exec server: values to bytes and back, without I/O.

A frame is a little-endian u32 length of what follows, a u32 request id, a u8 type and a payload.
The other end is `exec_server/channel.h`.
"""

import struct
from collections.abc import Iterator, Mapping, Sequence
from enum import IntEnum
from typing import NamedTuple

from gymsuite.errors import UsageError
from gymsuite.sandbox.protocol import Stream

VERSION = 2
MAX_FRAME = 256 << 20
MAX_OUTPUT = MAX_FRAME // 4
MAX_FILE = MAX_FRAME // 2
MAX_SECONDS = 4_000_000.0
INPUT_WINDOW = 256 << 10
OUTPUT_WINDOW = 256 << 10

LENGTH = struct.Struct("<I")
_HEAD = struct.Struct("<IIB")
_BODY_HEAD = struct.Struct("<IB")
_MIN_FRAME = _BODY_HEAD.size
_EXEC_HEAD = struct.Struct("<III")
_MOST_ERRNO = 4095
CREDIT = struct.Struct("<BI")


class Request(IntEnum):
    """What the server can be asked, or tells: OUTPUT, WINDOW, EXIT and GONE are about a job.

    A job's frames have the id of the EXEC or the SPAWN that started it. INPUT, WINDOW and GONE get
    no reply; with GONE each side says that it will not speak of the job again.
    """

    EXEC = 1
    CANCEL = 2
    READ = 3
    WRITE = 4
    STATS = 5
    KILL_ALL = 6
    STATE = 7
    SPAWN = 8
    INPUT = 9
    OUTPUT = 10
    WINDOW = 11
    EXIT = 12
    KILL = 13
    GONE = 14
    PING = 15
    WALK = 16
    PACK = 17
    UNPACK = 18
    NEXT = 19


_REPLY = 0x80


class MalformedError(Exception):
    """The server said something that its protocol does not allow."""


class Reply(NamedTuple):
    """A frame from the server; `kind` is the request that it answers."""

    request: int
    kind: int
    payload: memoryview


class Unsendable(UsageError):  # noqa: N818 - a state of the text, told to whoever wrote it
    """What no request can carry: a NUL character, no program, or more bytes than a frame has."""


def frame(request: int, kind: Request, *parts: bytes) -> bytes:
    """One request, ready to be written."""
    length = _MIN_FRAME + sum(map(len, parts))
    if length > MAX_FRAME:
        raise Unsendable(f"a sandbox request of {length} bytes; at most {MAX_FRAME} can be sent")
    return b"".join((_HEAD.pack(length, request, kind), *parts))


def text(value: str) -> bytes:
    """A string as the server wants it: with its length and a final NUL."""
    try:
        data = value.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        data = value.encode("utf-8", "replace")
    if b"\0" in data:
        raise Unsendable(f"a NUL character cannot be part of {value[:80]!r}")
    return LENGTH.pack(len(data) + 1) + data + b"\0"


def number(value: int) -> bytes:
    """An unsigned 32-bit number."""
    return LENGTH.pack(value)


def long_number(value: int) -> bytes:
    """An unsigned 64-bit number."""
    return struct.pack("<Q", value)


def exec_request(command: bytes, milliseconds: int, max_output: int, window: int) -> bytes:
    """An EXEC payload up to the command's stdin; a window of 0 streams nothing."""
    return _EXEC_HEAD.pack(milliseconds, max_output, window) + command


def spawn_request(command: bytes) -> bytes:
    """A SPAWN payload."""
    return LENGTH.pack(OUTPUT_WINDOW) + command


def command_text(
    command: str | Sequence[str], cwd: str, env: Mapping[str, str], user: str | None
) -> bytes:
    """A command of a request; a string goes to the shell."""
    if user == "":
        raise UsageError("a command's user has no name; leave it out to run as root")
    argv = ("/bin/sh", "-c", command) if isinstance(command, str) else command
    if not argv:
        raise Unsendable("a command is a program at least, and this one is an empty list")
    variables = [text(f"{name}={value}") for name, value in env.items()]
    return b"".join(
        (
            *(text(user or ""), text(cwd)),
            *(LENGTH.pack(len(argv)), *map(text, argv)),
            *(LENGTH.pack(len(variables)), *variables),
        )
    )


def credit(stream: Stream, size: int) -> bytes:
    """A WINDOW payload: so many bytes of an output have been read."""
    return CREDIT.pack(stream, size)


class FrameReader:
    """Cuts what comes from the server into frames, whatever the pieces are."""

    def __init__(self) -> None:
        self._rest = bytearray()

    def feed(self, data: bytes) -> Iterator[Reply]:
        """Take what came, and give the frames that are whole. Raises `MalformedError`."""
        if self._rest:
            self._rest += data
            if not self._is_whole():
                return
            data = bytes(self._rest)
            self._rest.clear()
        at, end = 0, len(data)
        view = memoryview(data)
        while end - at >= _HEAD.size:
            length, request, kind = _HEAD.unpack_from(data, at)
            stop = at + LENGTH.size + _checked(length)
            if stop > end:
                break
            if kind < _REPLY:
                raise MalformedError(f"a frame of type {kind}, which is no reply")
            yield Reply(request, kind - _REPLY, view[at + _HEAD.size : stop])
            at = stop
        if end - at >= LENGTH.size:
            _checked(LENGTH.unpack_from(data, at)[0])
        self._rest += view[at:]

    def _is_whole(self) -> bool:
        if len(self._rest) < LENGTH.size:
            return False
        return len(self._rest) >= LENGTH.size + _checked(LENGTH.unpack_from(self._rest)[0])


def _checked(length: int) -> int:
    if not _MIN_FRAME <= length <= MAX_FRAME:
        raise MalformedError(f"a frame of {length} bytes")
    return length


def unpack(form: struct.Struct, payload: memoryview, *, exact: bool) -> tuple[int, ...]:
    """The numbers at the start of a payload, or of all of it. Raises `MalformedError`."""
    if len(payload) < form.size or (exact and len(payload) != form.size):
        raise MalformedError(f"a reply of {len(payload)} bytes where {form.size} were due")
    return form.unpack_from(payload)


def checked_errno(error: int) -> int:
    """An errno as the kernel has them."""
    if error > _MOST_ERRNO:
        raise MalformedError(f"an errno of {error}")
    return error
