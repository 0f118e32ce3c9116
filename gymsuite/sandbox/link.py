"""A connection to an exec server: requests that are answered, or raise `SandboxDead`.

Nothing here waits without a deadline. Once a link is lost, every request that waits and every
later one raises, with the reason.
"""

import asyncio
from collections.abc import Callable
from itertools import count
from typing import Protocol, TypeVar

from gymsuite.errors import SandboxDead
from gymsuite.sandbox import replies, wire
from gymsuite.sandbox.wire import MalformedError, Reply, Request

GRACE_SECONDS = 10.0
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


class Link:
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

    async def ping(self) -> None:
        """See that the server answers."""
        await self.ask(Request.PING, within=0, parse=replies.nothing)

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
        if self._lost:
            return
        if not answer.done() or answer.cancelled() or answer.exception():
            self._abandoned.add(request)
        # Also what was answered a moment ago: a process may have been started, or a walk begun.
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


def _broken(error: MalformedError) -> str:
    return f"broke the protocol: {error}"
