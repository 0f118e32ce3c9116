"""The frames of the exec server: values to bytes and back, without I/O.

A frame is a little-endian u32 length of what follows, a u32 request id, a u8 type and a payload.
The other end is `exec_server/channel.h`.
"""

import struct
from collections.abc import Iterator, Mapping, Sequence
from enum import IntEnum
from typing import NamedTuple

from gymsuite.errors import SandboxError, UsageError
from gymsuite.sandbox.protocol import ExecResult, SandboxStats, Stream

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
_FLAG = struct.Struct("<B")
_EXEC_HEAD = struct.Struct("<III")
_EXEC_REPLY = struct.Struct("<iBQQI")
_READ_REPLY = struct.Struct("<BI")
_STATE_REPLY = struct.Struct("<BII")
_MOST_ERRNO = 4095
_STATS_REPLY = struct.Struct("<QQQQBQ")
_SPAWN_REPLY = struct.Struct("<BI")
_CREDIT = struct.Struct("<BI")
_TIMED_OUT, _TRUNCATED, _OOM, _DISK_FULL, _PIDS, _REFUSED = 1, 2, 8, 16, 32, 64
_STDIN = 0


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


class RefusedError(Exception):
    """The sandbox cannot run a command as the user that was asked for."""


def refused(user: str | None, error: RefusedError) -> SandboxError:
    """What to tell of it."""
    return SandboxError(f"cannot run a command as {user!r}: {error}", retryable=False)


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
    return _CREDIT.pack(stream, size)


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


def _unpack(form: struct.Struct, payload: memoryview, *, exact: bool) -> tuple[int, ...]:
    if len(payload) < form.size or (exact and len(payload) != form.size):
        raise MalformedError(f"a reply of {len(payload)} bytes where {form.size} were due")
    return form.unpack_from(payload)


def checked_errno(error: int) -> int:
    """An errno as the kernel has them."""
    if error > _MOST_ERRNO:
        raise MalformedError(f"an errno of {error}")
    return error


def hello_version(payload: memoryview) -> int:
    """The protocol version of the greeting."""
    return _unpack(LENGTH, payload, exact=True)[0]


def exec_result(payload: memoryview) -> ExecResult:
    """A command's outcome. Raises `RefusedError`."""
    code, flags, wall_us, cpu_us, split = _unpack(_EXEC_REPLY, payload, exact=False)
    output = payload[_EXEC_REPLY.size :]
    if split > len(output):
        raise MalformedError(f"{split} bytes of stdout in {len(output)} bytes of output")
    if flags & _REFUSED:
        raise RefusedError(bytes(output[split:]).decode(errors="replace").strip())
    return ExecResult(
        code,
        bytes(output[:split]),
        bytes(output[split:]),
        flags & _TIMED_OUT != 0,
        flags & _TRUNCATED != 0,
        wall_us / 1e6,
        cpu_us / 1e6,
        flags & _OOM != 0,
        flags & _DISK_FULL != 0,
        flags & _PIDS != 0,
    )


def spawn_result(payload: memoryview) -> int:
    """The pid of a process that was started. Raises `RefusedError`."""
    refused, pid = _unpack(_SPAWN_REPLY, payload, exact=False)
    if refused:
        raise RefusedError(bytes(payload[_SPAWN_REPLY.size :]).decode(errors="replace"))
    return pid


def output(payload: memoryview) -> tuple[Stream, bytes]:
    """Some of a job's output; no bytes are its end."""
    (stream,) = _unpack(_FLAG, payload, exact=False)
    if stream not in (Stream.STDOUT, Stream.STDERR):
        raise MalformedError(f"output on stream {stream}")
    return Stream(stream), bytes(payload[_FLAG.size :])


def input_credit(payload: memoryview) -> int:
    """How much of a job's input was taken."""
    stream, size = _unpack(_CREDIT, payload, exact=True)
    if stream != _STDIN:
        raise MalformedError(f"credit for stream {stream}")
    return size


def nothing(payload: memoryview) -> None:
    """A reply that says no more than that it is one."""
    if payload:
        raise MalformedError(f"{len(payload)} bytes where none were due")


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


def stats_result(payload: memoryview, *, own_root: bool) -> SandboxStats:
    """What the sandbox used; its peak memory is that of its largest process.

    With `own_root` the file system of "/" belongs to the sandbox alone, and counts.
    """
    cpu_us, peak, in_memory, in_root, counted, kills = _unpack(_STATS_REPLY, payload, exact=True)
    disk = in_memory + (in_root if own_root else 0)
    return SandboxStats(cpu_us / 1e6, peak or None, disk or None, kills if counted else None)


def flag_result(payload: memoryview) -> bool:
    """A single byte, 0 for good."""
    return _unpack(_FLAG, payload, exact=True)[0] == 0
