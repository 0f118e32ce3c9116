"""The client of the exec server: calls that are answered, or raise `SandboxDead`.

Nothing here waits without a deadline. Once a channel is lost, every call that waits and every
later one raises, with the reason: a lost command is never an empty result.
"""

import asyncio
import errno
import os
from collections.abc import Callable, Coroutine, Mapping, Sequence
from itertools import count
from typing import Protocol, TypeVar

from gymsuite.errors import PathRefused, SandboxDead, SandboxError
from gymsuite.sandbox import wire
from gymsuite.sandbox.protocol import (
    DEFAULT_FILE_BYTES,
    DEFAULT_OUTPUT_BYTES,
    ExecResult,
    SandboxStats,
)
from gymsuite.sandbox.wire import Found, MalformedError, ReadStatus, Reply, Request, Unsendable

GRACE_SECONDS = 10.0
FILE_SECONDS = 60.0
_NOT_RUNNABLE = 126
_MACHINE_IS_SICK = frozenset(
    (errno.EIO, errno.ENOMEM, errno.ENOSPC, errno.EDQUOT, errno.EMFILE, errno.ENFILE)
)
_BROKEN = (MalformedError, EOFError, OSError)
_Answer = asyncio.Future[Reply | None]
T = TypeVar("T")


class ByteStream(Protocol):
    """Two-way bytes."""

    async def read(self, size: int, /) -> bytes:
        """Wait for some bytes, at most `size`; empty at the end."""
        ...

    async def write(self, data: bytes, /) -> None:
        """Take over all of `data` at once, then wait for room; never half when cancelled."""
        ...

    async def close(self) -> None:
        """End both directions."""
        ...


class Channel:
    """One connection to one exec server, shared by any number of tasks."""

    def __init__(self, stream: ByteStream, *, grace: float = GRACE_SECONDS) -> None:
        self._stream = stream
        self._grace = grace
        self._ids = count(1)
        self._pending: dict[int, _Answer] = {}
        self._abandoned: set[int] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._lost = ""

    async def open(self, *, within: float) -> None:
        """Wait for the server's hello. Raises `SandboxDead`."""
        try:
            async with asyncio.timeout(within):
                version = wire.hello_version(await self._receive())
        except TimeoutError:
            raise self._lose(f"said nothing for {within:g} seconds") from None
        except _BROKEN as error:
            raise self._lose(_reason(error)) from error
        if version != wire.VERSION:
            raise self._lose(
                f"speaks protocol {version}, not {wire.VERSION}: install gymsuite anew"
            )
        self._run(self._demultiplex())

    async def exec(  # noqa: PLR0913 - the verb that everything is made of
        self,
        command: str | Sequence[str],
        *,
        timeout: float,
        stdin: bytes = b"",
        cwd: str = "/",
        env: Mapping[str, str],
        max_output: int = DEFAULT_OUTPUT_BYTES,
    ) -> ExecResult:
        """Run a command whose environment is `env` and nothing else."""
        argv = ["/bin/sh", "-c", command] if isinstance(command, str) else list(command)
        limits = _milliseconds(timeout), max(0, min(max_output, wire.MAX_OUTPUT))
        try:
            head = wire.exec_request(argv, cwd, env, limits)
            reply = await self._call(Request.EXEC, head, stdin, within=limits[0] / 1000)
        except Unsendable as error:
            return ExecResult(_NOT_RUNNABLE, b"", f"{error}\n".encode())
        return self._parsed(wire.exec_result, reply)

    async def read(self, path: str, *, max_bytes: int = DEFAULT_FILE_BYTES) -> bytes | None:
        """Return a file's bytes, or None if there is no such regular file."""
        limit = max(0, min(max_bytes, wire.MAX_FILE))
        try:
            payload = wire.number(limit) + wire.text(path)
        except Unsendable:
            return None
        reply = await self._call(Request.READ, payload, within=FILE_SECONDS)
        status, error, data = self._parsed(wire.read_result, reply)
        if status is ReadStatus.TOO_LARGE:
            raise PathRefused(f"{path} is larger than {limit} bytes", retryable=False)
        if status is ReadStatus.FAILED:
            raise refusal(f"cannot read {path}", error)
        return data if status is ReadStatus.OK else None

    async def state(self, path: str, *, max_bytes: int) -> Found:
        """Return what is at a path, links not followed; call it when all processes are dead."""
        limit = max(0, min(max_bytes, wire.MAX_FILE))
        payload = wire.number(limit) + wire.text(path)
        reply = await self._call(Request.STATE, payload, within=FILE_SECONDS)
        return self._parsed(wire.state_result, reply)

    async def write(self, path: str, data: bytes, *, mode: int = 0o644) -> None:
        """Write a file, making its parent directories."""
        try:
            head = wire.number(mode) + wire.text(path)
            reply = await self._call(Request.WRITE, head, data, within=FILE_SECONDS)
        except Unsendable as reason:
            raise PathRefused(f"cannot write {path[:80]!r}: {reason}", retryable=False) from reason
        if error := self._parsed(wire.errno_result, reply):
            raise refusal(f"cannot write {path}", error)

    async def ask(
        self, kind: Request, *parts: bytes, within: float, parse: Callable[[memoryview], T]
    ) -> T:
        """Send a request, and parse its reply; one that cannot be parsed ends the channel."""
        return self._parsed(parse, await self._call(kind, *parts, within=within))

    def drop(self, request: int) -> None:
        """Let the server forget a request that it keeps something for."""
        if not self._lost:
            message = wire.frame(next(self._ids), Request.CANCEL, wire.number(request))
            self._run(self._write_quietly(message))

    async def stats(self) -> SandboxStats:
        """What all commands together have used."""
        return self._parsed(wire.stats_result, await self._call(Request.STATS, within=0))

    async def kill_all(self) -> None:
        """End every process in the sandbox but the server."""
        if not self._parsed(wire.flag_result, await self._call(Request.KILL_ALL, within=0)):
            raise SandboxError("a process in the sandbox cannot be killed")

    @property
    def lost(self) -> str:
        """Why every call would raise `SandboxDead`, or ""."""
        return self._lost

    async def close(self, reason: str = "was closed") -> None:
        """End the connection, and with it the server. Idempotent."""
        self._lose(reason)
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._stream.close()

    async def _call(self, kind: Request, *parts: bytes, within: float) -> memoryview:
        self._check()
        request = next(self._ids)
        message = wire.frame(request, kind, *parts)
        answer: _Answer = asyncio.get_running_loop().create_future()
        self._pending[request] = answer
        try:
            async with asyncio.timeout(within + self._grace):
                await self._stream.write(message)
                reply = await answer
        except TimeoutError:
            silence = f"no answer to {kind.name} in {within + self._grace:g} seconds"
            raise self._lose(f"fell silent: {silence}") from None
        except OSError as error:
            raise self._lose(_reason(error)) from error
        except asyncio.CancelledError:
            self._abandon(request, answer)
            raise
        finally:
            del self._pending[request]
        if reply is None:
            raise SandboxDead(self._lost)
        if reply.kind != kind:
            raise self._lose(f"answered {kind.name} with a frame of type {reply.kind}")
        return reply.payload

    def _parsed(self, parse: Callable[[memoryview], T], payload: memoryview) -> T:
        try:
            return parse(payload)
        except MalformedError as error:
            raise self._lose(_reason(error)) from error

    def _check(self) -> None:
        if self._lost:
            raise SandboxDead(self._lost)

    def _lose(self, reason: str) -> SandboxDead:
        """Give up the channel; only the first reason counts."""
        if not self._lost:
            self._lost = f"the sandbox is lost: its exec server {reason}"
            for answer in self._pending.values():
                if not answer.done():
                    answer.set_result(None)
        return SandboxDead(self._lost)

    def _abandon(self, request: int, answer: _Answer) -> None:
        answered = answer.done() and not answer.cancelled()
        if self._lost or answered:
            return
        self._abandoned.add(request)
        self.drop(request)

    async def _write_quietly(self, message: bytes) -> None:
        try:
            await self._stream.write(message)
        except OSError as error:
            self._lose(_reason(error))

    def _run(self, work: Coroutine[None, None, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _demultiplex(self) -> None:
        try:
            while not self._lost:
                self._deliver(await self._receive())
        except _BROKEN as error:
            self._lose(_reason(error))

    def _deliver(self, reply: Reply) -> None:
        answer = self._pending.get(reply.request)
        if answer is not None:
            if not answer.done():
                answer.set_result(reply)
        elif reply.request in self._abandoned:
            self._abandoned.discard(reply.request)
        else:
            raise MalformedError(f"a reply to request {reply.request}, which was never made")

    async def _receive(self) -> Reply:
        (length,) = wire.LENGTH.unpack(await self._exactly(wire.LENGTH.size))
        return wire.parse_frame(await self._exactly(wire.checked_length(length)))

    async def _exactly(self, size: int) -> bytes:
        data = await self._stream.read(size)
        if len(data) == size:
            return data
        whole = bytearray(data)
        while len(whole) < size:
            if not data:
                raise EOFError
            data = await self._stream.read(size - len(whole))
            whole += data
        return bytes(whole)


def _milliseconds(seconds: float) -> int:
    return max(1, round(min(seconds, wire.MAX_SECONDS) * 1000))


def refusal(what: str, error: int) -> SandboxError:
    """Tell what a path does not allow from what the machine cannot do."""
    message = f"{what}: {os.strerror(error)}"
    if error in _MACHINE_IS_SICK:
        return SandboxError(message)
    return PathRefused(message, retryable=False)


def _reason(error: Exception) -> str:
    if isinstance(error, MalformedError):
        return f"broke the protocol: {error}"
    if isinstance(error, EOFError):
        return "is gone: the channel was closed"
    return f"cannot be reached: {error}"
