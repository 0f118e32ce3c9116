"""The client of the exec server: calls that are answered, or raise `SandboxDead`.

Nothing here waits without a deadline. Once a channel is lost, every call that waits and every
later one raises, with the reason: a lost command is never an empty result.
"""

import asyncio
import errno
import os
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import count
from typing import Protocol, TypeVar

from gymsuite.errors import PathRefused, SandboxDead, SandboxError
from gymsuite.sandbox import replies, wire
from gymsuite.sandbox.protocol import (
    DEFAULT_FILE_BYTES,
    DEFAULT_OUTPUT_BYTES,
    ExecResult,
    OnOutput,
    SandboxStats,
)
from gymsuite.sandbox.replies import Found, ReadStatus, RefusedError
from gymsuite.sandbox.wire import MalformedError, Reply, Request, Unsendable

GRACE_SECONDS = 10.0
FILE_SECONDS = 60.0
_NOT_RUNNABLE = 126
# A full disk is not among them: a sandbox has one of its own, and fills it itself.
_MACHINE_IS_SICK = frozenset((errno.EIO, errno.ENOMEM, errno.EMFILE, errno.ENFILE))
_HELLO = 0
_OF_JOBS = frozenset((Request.OUTPUT, Request.WINDOW, Request.EXIT, Request.GONE))
_Answer = asyncio.Future[Reply | None]
T = TypeVar("T")


class ByteStream(Protocol):
    """Two-way bytes, neither of whose ways waits."""

    def start(
        self, received: Callable[[bytes], None], ended: Callable[[OSError | None], None], /
    ) -> None:
        """Hand on all that comes, in pieces, and at last its end, perhaps with an error."""
        ...

    def send(self, data: bytes, /) -> None:
        """Take over all of `data` at once; what cannot be sent is an end with an error."""
        ...

    async def close(self) -> None:
        """End both directions."""
        ...


class Listener(Protocol):
    """Hears all frames of one job that are no replies."""

    def hear(self, frame: Reply, /) -> None:
        """Take one. Raises `MalformedError`."""
        ...

    def lost(self) -> None:
        """No more will come: the channel is lost."""
        ...


class Channel:
    """One connection to one exec server, shared by any number of tasks."""

    def __init__(self, stream: ByteStream, *, grace: float = GRACE_SECONDS) -> None:
        self._stream = stream
        self._loop = asyncio.get_running_loop()
        self._ids = count(1)
        self._pending: dict[int, _Answer] = {}
        self._abandoned: set[int] = set()
        self._listeners: dict[int, Listener] = {}
        self._frames = wire.FrameReader()
        self._lost = ""
        self.grace = grace

    async def open(self, *, within: float) -> None:
        """Wait for the server's hello. Raises `SandboxDead`."""
        hello: _Answer = self._loop.create_future()
        self._pending[_HELLO] = hello
        self._stream.start(self._received, self._ended)
        timer = self._loop.call_later(within, self._expire, hello, f"said nothing for {within:g} s")
        try:
            reply = await hello
        finally:
            timer.cancel()
            del self._pending[_HELLO]
        if reply is None:
            raise SandboxDead(self._lost)
        if reply.kind:
            raise self._lose("broke the protocol: it did not say hello")
        version = self._parsed(replies.hello_version, reply.payload)
        if version != wire.VERSION:
            raise self._lose(
                f"speaks protocol {version}, not {wire.VERSION}: install gymsuite anew"
            )

    async def exec(  # noqa: PLR0913 - the verb that everything is made of
        self,
        command: str | Sequence[str],
        *,
        timeout: float,
        stdin: bytes = b"",
        cwd: str = "/",
        env: Mapping[str, str],
        user: str | None = None,
        max_output: int = DEFAULT_OUTPUT_BYTES,
        on_output: OnOutput | None = None,
    ) -> ExecResult:
        """Run a command whose environment is `env` and nothing else."""
        milliseconds = _milliseconds(timeout)
        kept = max(0, min(max_output, wire.MAX_OUTPUT))
        window = wire.OUTPUT_WINDOW if on_output else 0
        request = self.new_id()
        try:
            text = wire.command_text(command, cwd, env, user)
            head = wire.exec_request(text, milliseconds, kept, window)
            message = wire.frame(request, Request.EXEC, head, stdin)
        except Unsendable as error:
            return ExecResult(_NOT_RUNNABLE, b"", f"{error}\n".encode())
        if on_output:
            self.listen(request, _Follower(self, request, on_output))
        reply = await self._answer(request, Request.EXEC, message, milliseconds / 1000)
        try:
            return self._parsed(replies.exec_result, reply)
        except RefusedError as error:
            raise replies.refused(user, error) from error

    async def read(self, path: str, *, max_bytes: int = DEFAULT_FILE_BYTES) -> bytes | None:
        """Return a file's bytes, or None if there is no such regular file."""
        limit = max(0, min(max_bytes, wire.MAX_FILE))
        try:
            payload = wire.number(limit) + wire.text(path)
        except Unsendable:
            return None
        status, error, data = await self.ask(
            Request.READ, payload, within=FILE_SECONDS, parse=replies.read_result
        )
        if status is ReadStatus.TOO_LARGE:
            raise PathRefused(f"{path} is larger than {limit} bytes", retryable=False)
        if status is ReadStatus.FAILED:
            raise refusal(f"cannot read {path}", error)
        return data if status is ReadStatus.OK else None

    async def state(self, path: str, *, max_bytes: int) -> Found:
        """Return what is at a path, links not followed; call it when all processes are dead."""
        limit = max(0, min(max_bytes, wire.MAX_FILE))
        payload = wire.number(limit) + wire.text(path)
        return await self.ask(
            Request.STATE, payload, within=FILE_SECONDS, parse=replies.state_result
        )

    async def write(self, path: str, data: bytes, *, mode: int = 0o644) -> None:
        """Write a file, making its parent directories."""
        try:
            head = wire.number(mode) + wire.text(path)
            error = await self.ask(
                Request.WRITE, head, data, within=FILE_SECONDS, parse=replies.errno_result
            )
        except Unsendable as reason:
            raise PathRefused(f"cannot write {path[:80]!r}: {reason}", retryable=False) from reason
        if error:
            raise refusal(f"cannot write {path}", error)

    async def ask(
        self,
        kind: Request,
        *parts: bytes,
        within: float,
        parse: Callable[[memoryview], T],
        request: int = 0,
    ) -> T:
        """Send a request, and parse its reply; one that cannot be parsed ends the channel."""
        request = request or self.new_id()
        message = wire.frame(request, kind, *parts)
        return self._parsed(parse, await self._answer(request, kind, message, within))

    def tell(self, request: int, kind: Request, *parts: bytes) -> None:
        """Send what gets no reply; a lost channel sends nothing."""
        if not self._lost:
            self._stream.send(wire.frame(request, kind, *parts))

    def drop(self, request: int) -> None:
        """Let the server forget a request that it keeps something for."""
        self.tell(self.new_id(), Request.CANCEL, wire.number(request))

    def new_id(self) -> int:
        """The id of a request that is to come."""
        return next(self._ids)

    def listen(self, request: int, listener: Listener) -> None:
        """Let a listener hear of the job that a request will start, until both sides let it go."""
        self._listeners[request] = listener

    def unlisten(self, request: int) -> None:
        """Undo `listen` for a job that never started."""
        self._listeners.pop(request, None)

    async def stats(self, *, own_root: bool = False) -> SandboxStats:
        """What all commands together have used; `own_root` as in `replies.stats_result`."""
        parse = partial(replies.stats_result, own_root=own_root)
        return await self.ask(Request.STATS, within=0, parse=parse)

    async def ping(self) -> None:
        """See that the server answers."""
        await self.ask(Request.PING, within=0, parse=replies.nothing)

    async def kill_all(self) -> None:
        """End every process in the sandbox but the server."""
        if not await self.ask(Request.KILL_ALL, within=0, parse=replies.flag_result):
            raise SandboxError("a process in the sandbox cannot be killed")

    @property
    def lost(self) -> str:
        """Why every call would raise `SandboxDead`, or ""."""
        return self._lost

    async def close(self, reason: str = "was closed") -> None:
        """End the connection, and with it the server. Idempotent."""
        self._lose(reason)
        await self._stream.close()

    async def _answer(
        self, request: int, kind: Request, message: bytes, within: float
    ) -> memoryview:
        if self._lost:
            raise SandboxDead(self._lost)
        patience = within + self.grace
        answer: _Answer = self._loop.create_future()
        self._pending[request] = answer
        silence = f"fell silent: no answer to {kind.name} in {patience:g} seconds"
        timer = self._loop.call_later(patience, self._expire, answer, silence)
        try:
            self._stream.send(message)
            reply = await answer
        except BaseException:
            self._abandon(request, answer)
            raise
        finally:
            timer.cancel()
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
            raise self._lose(_broken(error)) from error

    def fail(self, request: int, error: Exception) -> None:
        """Raise an error in whoever waits for a reply."""
        answer = self._pending.get(request)
        if answer is not None and not answer.done():
            answer.set_exception(error)

    def _lose(self, reason: str) -> SandboxDead:
        """Give up the channel; only the first reason counts."""
        if not self._lost:
            self._lost = f"the sandbox is lost: its exec server {reason}"
            for answer in self._pending.values():
                if not answer.done():
                    answer.set_result(None)
            for listener in self._listeners.values():
                listener.lost()
        return SandboxDead(self._lost)

    def _expire(self, answer: _Answer, silence: str) -> None:
        if not answer.done():
            self._lose(silence)

    def _abandon(self, request: int, answer: _Answer) -> None:
        answered = answer.done() and not answer.cancelled() and not answer.exception()
        if self._lost or answered:
            return
        self._abandoned.add(request)
        self.drop(request)

    def _ended(self, error: OSError | None) -> None:
        self._lose(f"cannot be reached: {error}" if error else "is gone: the channel was closed")

    def _received(self, data: bytes) -> None:
        if self._lost:
            return
        try:
            for frame in self._frames.feed(data):
                self._deliver(frame)
        except MalformedError as error:
            self._lose(_broken(error))

    def _deliver(self, frame: Reply) -> None:
        if frame.kind in _OF_JOBS:
            self._hear(frame)
            return
        answer = self._pending.get(frame.request)
        if answer is not None:
            if not answer.done():
                answer.set_result(frame)
        elif frame.request in self._abandoned:
            self._abandoned.discard(frame.request)
        else:
            raise MalformedError(f"a reply to request {frame.request}, which was never made")
        if frame.kind == Request.EXEC and frame.request in self._listeners:
            self._let_go(frame.request)

    def _hear(self, frame: Reply) -> None:
        listener = self._listeners.get(frame.request)
        if listener is None:
            raise MalformedError(f"a frame of job {frame.request}, which there is none of")
        listener.hear(frame)
        if frame.kind == Request.GONE:
            self._let_go(frame.request)

    def _let_go(self, request: int) -> None:
        del self._listeners[request]
        self.tell(request, Request.GONE)


class _Follower:
    """Hands on the output of a command that is waited for, and gives credit for more."""

    def __init__(self, channel: Channel, request: int, on_output: OnOutput) -> None:
        self._channel = channel
        self._request = request
        self._on_output: OnOutput | None = on_output

    def hear(self, frame: Reply) -> None:
        """See `Listener.hear`."""
        if frame.kind != Request.OUTPUT:
            raise MalformedError(f"a frame of type {frame.kind} about a command")
        stream, data = replies.output(frame.payload)
        self._channel.tell(self._request, Request.WINDOW, wire.credit(stream, len(data)))
        if self._on_output is None:
            return
        try:
            self._on_output(stream, data)
        except Exception as error:  # noqa: BLE001 - whatever the caller's own code raises is the caller's
            self._on_output = None
            self._channel.fail(self._request, error)

    def lost(self) -> None:
        """See `Listener.lost`."""


def _milliseconds(seconds: float) -> int:
    return max(1, round(min(seconds, wire.MAX_SECONDS) * 1000))


def refusal(what: str, error: int) -> SandboxError:
    """Tell what a path does not allow from what the machine cannot do."""
    message = f"{what}: {os.strerror(error)}"
    if error in _MACHINE_IS_SICK:
        return SandboxError(message)
    return PathRefused(message, retryable=False)


def _broken(error: MalformedError) -> str:
    return f"broke the protocol: {error}"
