"""The frames of the exec server: values to bytes and back, without I/O.

A frame is a little-endian u32 length of what follows, a u32 request id, a u8 type and a payload.
The other end is `exec_server/channel.h`.
"""

import struct
from collections.abc import Mapping, Sequence
from enum import IntEnum
from typing import NamedTuple

from gymsuite.errors import UsageError
from gymsuite.sandbox.protocol import ExecResult, SandboxStats

VERSION = 1
MAX_FRAME = 256 << 20
MAX_OUTPUT = MAX_FRAME // 4
MAX_FILE = MAX_FRAME // 2
MAX_SECONDS = 4_000_000.0

LENGTH = struct.Struct("<I")
_HEAD = struct.Struct("<IIB")
_BODY_HEAD = struct.Struct("<IB")
_MIN_FRAME = _BODY_HEAD.size
_FLAG = struct.Struct("<B")
_EXEC_REPLY = struct.Struct("<iBQQI")
_READ_REPLY = struct.Struct("<BI")
_STATE_REPLY = struct.Struct("<BII")
_STATS_REPLY = struct.Struct("<QQ")
_MOST_ERRNO = 4095
_TIMED_OUT, _TRUNCATED = 1, 2


class Request(IntEnum):
    """What the server can be asked."""

    EXEC = 1
    CANCEL = 2
    READ = 3
    WRITE = 4
    STATS = 5
    KILL_ALL = 6
    STATE = 7
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


class ReadStatus(IntEnum):
    """How a file read ended."""

    OK = 0
    ABSENT = 1
    TOO_LARGE = 2
    FAILED = 3


class Found(NamedTuple):
    """What is at a path: its lstat mode, 0 where there is nothing.

    `data` are a file's bytes or a link's target; None where there is neither, where it is too
    large, or where it cannot be read.
    """

    mode: int
    data: bytes | None


class Unsendable(UsageError):  # noqa: N818 - a state of the text, told to whoever wrote it
    """What no request can carry: a text with a NUL character, or more bytes than a frame has."""


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


def exec_request(
    argv: Sequence[str], cwd: str, env: Mapping[str, str], limits: tuple[int, int]
) -> bytes:
    """An EXEC payload up to the command's stdin; `limits` are milliseconds and output bytes."""
    variables = [text(f"{name}={value}") for name, value in env.items()]
    arguments = [text(argument) for argument in argv]
    return b"".join(
        (
            struct.pack("<II", *limits),
            text(cwd),
            number(len(arguments)),
            *arguments,
            number(len(variables)),
            *variables,
        )
    )


def checked_length(length: int) -> int:
    """The length of a frame that is to come."""
    if not _MIN_FRAME <= length <= MAX_FRAME:
        raise MalformedError(f"a frame of {length} bytes")
    return length


def parse_frame(body: bytes) -> Reply:
    """What came behind a length."""
    request, kind = _BODY_HEAD.unpack_from(body)
    if kind < _REPLY:
        raise MalformedError(f"a frame of type {kind}, which is no reply")
    return Reply(request, kind - _REPLY, memoryview(body)[_MIN_FRAME:])


def _unpack(form: struct.Struct, payload: memoryview, *, exact: bool) -> tuple[int, ...]:
    if len(payload) < form.size or (exact and len(payload) != form.size):
        raise MalformedError(f"a reply of {len(payload)} bytes where {form.size} were due")
    return form.unpack_from(payload)


def checked_errno(error: int) -> int:
    """An errno as the kernel has them."""
    if error > _MOST_ERRNO:
        raise MalformedError(f"an errno of {error}")
    return error


def hello_version(reply: Reply) -> int:
    """The protocol version of the greeting."""
    if reply.kind or reply.request:
        raise MalformedError("it did not say hello")
    return _unpack(LENGTH, reply.payload, exact=True)[0]


def exec_result(payload: memoryview) -> ExecResult:
    """A command's outcome."""
    code, flags, wall_us, cpu_us, split = _unpack(_EXEC_REPLY, payload, exact=False)
    output = payload[_EXEC_REPLY.size :]
    if split > len(output):
        raise MalformedError(f"{split} bytes of stdout in {len(output)} bytes of output")
    return ExecResult(
        exit_code=code,
        stdout=bytes(output[:split]),
        stderr=bytes(output[split:]),
        timed_out=bool(flags & _TIMED_OUT),
        truncated=bool(flags & _TRUNCATED),
        wall_seconds=wall_us / 1e6,
        cpu_seconds=cpu_us / 1e6,
    )


def read_result(payload: memoryview) -> tuple[ReadStatus, int, bytes]:
    """A file read: how it ended, its errno, and the data."""
    status, error = _unpack(_READ_REPLY, payload, exact=False)
    if status not in list(ReadStatus):
        raise MalformedError(f"a read that ended as {status}")
    return ReadStatus(status), checked_errno(error), bytes(payload[_READ_REPLY.size :])


def state_result(payload: memoryview) -> Found:
    """A path's state."""
    status, _, mode = _unpack(_STATE_REPLY, payload, exact=False)
    data = bytes(payload[_STATE_REPLY.size :])
    return Found(mode, data if status == ReadStatus.OK else None)


def errno_result(payload: memoryview) -> int:
    """A write's errno, 0 when it worked."""
    return checked_errno(_unpack(LENGTH, payload, exact=True)[0])


def stats_result(payload: memoryview) -> SandboxStats:
    """What the sandbox used; its peak memory is that of its largest process."""
    cpu_us, peak = _unpack(_STATS_REPLY, payload, exact=True)
    return SandboxStats(cpu_us / 1e6, peak or None)


def flag_result(payload: memoryview) -> bool:
    """A single byte, 0 for good."""
    return _unpack(_FLAG, payload, exact=True)[0] == 0
