"""What the exec server answers: payloads to values, or `MalformedError`."""

import struct
from enum import IntEnum
from typing import NamedTuple

from gymsuite.errors import SandboxError
from gymsuite.sandbox.protocol import ExecResult, SandboxStats, Stream
from gymsuite.sandbox.wire import CREDIT, LENGTH, MalformedError, checked_errno, unpack

_FLAG = struct.Struct("<B")
_EXEC_REPLY = struct.Struct("<iBQQI")
_READ_REPLY = struct.Struct("<BI")
_STATE_REPLY = struct.Struct("<BII")
_STATS_REPLY = struct.Struct("<QQQQBQ")
_SPAWN_REPLY = struct.Struct("<BI")
_TIMED_OUT, _TRUNCATED, _OOM, _DISK_FULL, _PIDS, _REFUSED = 1, 2, 8, 16, 32, 64
_STDIN = 0


class RefusedError(Exception):
    """The sandbox cannot run a command as the user that was asked for."""


def refused(user: str | None, error: RefusedError) -> SandboxError:
    """What to tell of it."""
    return SandboxError(f"cannot run a command as {user!r}: {error}", retryable=False)


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


def hello_version(payload: memoryview) -> int:
    """The protocol version of the greeting."""
    return unpack(LENGTH, payload, exact=True)[0]


def exec_result(payload: memoryview) -> ExecResult:
    """A command's outcome. Raises `RefusedError`."""
    code, flags, wall_us, cpu_us, split = unpack(_EXEC_REPLY, payload, exact=False)
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
    refused, pid = unpack(_SPAWN_REPLY, payload, exact=False)
    if refused:
        raise RefusedError(bytes(payload[_SPAWN_REPLY.size :]).decode(errors="replace"))
    return pid


def output(payload: memoryview) -> tuple[Stream, bytes]:
    """Some of a job's output; no bytes are its end."""
    (stream,) = unpack(_FLAG, payload, exact=False)
    if stream not in (Stream.STDOUT, Stream.STDERR):
        raise MalformedError(f"output on stream {stream}")
    return Stream(stream), bytes(payload[_FLAG.size :])


def input_credit(payload: memoryview) -> int:
    """How much of a job's input was taken."""
    stream, size = unpack(CREDIT, payload, exact=True)
    if stream != _STDIN:
        raise MalformedError(f"credit for stream {stream}")
    return size


def nothing(payload: memoryview) -> None:
    """A reply that says no more than that it is one."""
    if payload:
        raise MalformedError(f"{len(payload)} bytes where none were due")


def read_result(payload: memoryview) -> tuple[ReadStatus, int, bytes]:
    """A file read: how it ended, its errno, and the data."""
    status, error = unpack(_READ_REPLY, payload, exact=False)
    if status not in list(ReadStatus):
        raise MalformedError(f"a read that ended as {status}")
    return ReadStatus(status), checked_errno(error), bytes(payload[_READ_REPLY.size :])


def state_result(payload: memoryview) -> Found:
    """A path's state."""
    status, _, mode = unpack(_STATE_REPLY, payload, exact=False)
    data = bytes(payload[_STATE_REPLY.size :])
    return Found(mode, data if status == ReadStatus.OK else None)


def errno_result(payload: memoryview) -> int:
    """A write's errno, 0 when it worked."""
    return checked_errno(unpack(LENGTH, payload, exact=True)[0])


def stats_result(payload: memoryview, *, own_root: bool) -> SandboxStats:
    """What the sandbox used; its peak memory is that of its largest process.

    With `own_root` the file system of "/" belongs to the sandbox alone, and counts.
    """
    cpu_us, peak, in_memory, in_root, counted, kills = unpack(_STATS_REPLY, payload, exact=True)
    disk = in_memory + (in_root if own_root else 0)
    known = disk if own_root or in_memory else None
    return SandboxStats(cpu_us / 1e6, peak or None, known, kills if counted else None)


def flag_result(payload: memoryview) -> bool:
    """A single byte, 0 for good."""
    return unpack(_FLAG, payload, exact=True)[0] == 0
