"""A process that was spawned in a sandbox: its streams, its end, and our side of flow control."""

import asyncio

from gymsuite.errors import SandboxDead, UsageError
from gymsuite.sandbox import replies, wire
from gymsuite.sandbox.link import Link
from gymsuite.sandbox.protocol import DEFAULT_READ_BYTES, ExecResult, Stream
from gymsuite.sandbox.replies import RefusedError
from gymsuite.sandbox.wire import MalformedError, Reply, Request

_REOPEN_BYTES = wire.OUTPUT_WINDOW // 2


async def spawn(link: Link, command: bytes, *, user: str | None) -> "SpawnedProcess":
    """Start a command, as the wire has it. Raises `SandboxError` where it cannot be that user."""
    request = link.new_id()
    process = SpawnedProcess(link, request)
    link.listen(request, process)
    try:
        process.pid = await link.ask(
            Request.SPAWN,
            wire.spawn_request(command),
            within=0,
            parse=replies.spawn_result,
            request=request,
        )
    except RefusedError as error:
        link.unlisten(request)
        raise replies.refused(user, error) from error
    except asyncio.CancelledError:
        process.discard()
        raise
    return process


class SpawnedProcess:
    """A `Process`."""

    def __init__(self, link: Link, request: int) -> None:
        self.pid = 0
        self._link = link
        self._request = request
        self._outputs = {stream: _Output() for stream in Stream}
        self._credit = wire.INPUT_WINDOW
        self._stdin_closed = False
        self._discarding = False
        self._gone = False
        self._result: ExecResult | None = None
        self._killing: asyncio.Task[None] | None = None
        self._news: set[asyncio.Future[None]] = set()

    async def write(self, data: bytes) -> None:
        """See `Process.write`."""
        rest = memoryview(data)
        while rest:
            if self._stdin_closed:
                raise UsageError("the stdin of this process was closed: nothing can be written")
            if self._gone:
                return
            piece = rest[: self._credit]
            if not piece:
                await self._more()
                continue
            self._credit -= len(piece)
            self._tell(Request.INPUT, bytes(piece))
            rest = rest[len(piece) :]

    async def close_stdin(self) -> None:
        """See `Process.close_stdin`."""
        if not self._stdin_closed:
            self._stdin_closed = True
            self._tell(Request.INPUT)

    async def read(self, max_bytes: int = DEFAULT_READ_BYTES) -> bytes:
        """See `Process.read`."""
        return await self._read(Stream.STDOUT, max_bytes)

    async def read_error(self, max_bytes: int = DEFAULT_READ_BYTES) -> bytes:
        """See `Process.read_error`."""
        return await self._read(Stream.STDERR, max_bytes)

    async def wait(self) -> ExecResult:
        """See `Process.wait`."""
        while self._result is None:
            await self._more()
        return self._result

    async def kill(self) -> None:
        """See `Process.kill`."""
        if self._gone:
            return
        if self._killing is None:
            self._killing = asyncio.ensure_future(self._kill())
        await asyncio.shield(self._killing)

    def discard(self) -> None:
        """Let its output go unread: nobody has it."""
        self._discarding = True
        for stream, output in self._outputs.items():
            self._take(stream, len(output.data))

    def hear(self, frame: Reply) -> None:
        """See `Listener.hear`."""
        if frame.kind == Request.OUTPUT:
            self._hear_output(*replies.output(frame.payload))
        elif frame.kind == Request.WINDOW:
            self._hear_credit(replies.input_credit(frame.payload))
        elif frame.kind == Request.EXIT:
            self._result = replies.exec_result(frame.payload)
        else:
            replies.nothing(frame.payload)
            self._gone = True
        self._ring()

    def lost(self) -> None:
        """See `Listener.lost`."""
        self._ring()

    def _hear_output(self, stream: Stream, data: bytes) -> None:
        output = self._outputs[stream]
        output.ended = output.ended or not data
        output.data += data
        if len(output.data) + output.taken > wire.OUTPUT_WINDOW:
            raise MalformedError(f"more output of job {self._request} than it had credit for")
        if self._discarding:
            self._take(stream, len(data))

    def _hear_credit(self, size: int) -> None:
        self._credit += size
        if self._credit > wire.INPUT_WINDOW:
            raise MalformedError(f"more credit for job {self._request} than it had used")

    async def _read(self, stream: Stream, max_bytes: int) -> bytes:
        if max_bytes <= 0:
            raise UsageError(f"cannot read {max_bytes} bytes: at least one is to be asked for")
        output = self._outputs[stream]
        while not output.data and not output.ended:
            await self._more()
        return self._take(stream, max_bytes)

    def _take(self, stream: Stream, max_bytes: int) -> bytes:
        output = self._outputs[stream]
        data = bytes(output.data[:max_bytes])
        del output.data[:max_bytes]
        output.taken += len(data)
        if output.taken >= _REOPEN_BYTES and not output.ended:
            self._tell(Request.WINDOW, wire.credit(stream, output.taken))
            output.taken = 0
        return data

    async def _kill(self) -> None:
        await self._link.ask(
            Request.KILL, wire.number(self._request), within=0, parse=replies.nothing
        )

    def _tell(self, kind: Request, *parts: bytes) -> None:
        if self._gone:
            return
        if self._link.lost:
            raise SandboxDead(self._link.lost)
        self._link.tell(self._request, kind, *parts)

    async def _more(self) -> None:
        """Wait for whatever comes next, and see meanwhile that the server lives."""
        if self._link.lost:
            raise SandboxDead(self._link.lost)
        news: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._news.add(news)
        try:
            while not (await asyncio.wait((news,), timeout=self._link.grace))[0]:
                await self._link.ping()
        finally:
            self._news.discard(news)

    def _ring(self) -> None:
        for news in self._news:
            if not news.done():
                news.set_result(None)


class _Output:
    """What came of one stream and was not read yet, and what was read without giving credit."""

    def __init__(self) -> None:
        self.data = bytearray()
        self.taken = 0
        self.ended = False
