"""A resident process that speaks over a socket: started, connected, ended and waited for.

The standard event loop would watch each child with a thread; a descriptor of the process does.
"""

import asyncio
import os
import socket
import subprocess
from collections.abc import Coroutine, Sequence
from contextlib import suppress

END_SECONDS = 5.0
_BUFFER_BYTES = 1 << 20
_ERROR_BYTES = 4000


class SocketStream:
    """A connected socket as a `ByteStream`."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self.read = reader.read

    async def write(self, data: bytes) -> None:
        """Hand the data to the event loop, and wait for room."""
        self._writer.write(data)
        await self._writer.drain()

    async def close(self) -> None:
        """End both directions, also when the other end has stopped reading."""
        self._writer.transport.abort()
        with suppress(OSError):
            await self._writer.wait_closed()


class Resident:
    """A child process whose stdin and stdout are one socket, and whose stderr is kept."""

    def __init__(self, arguments: Sequence[str]) -> None:
        """Raise OSError when it cannot be started."""
        ours, theirs = socket.socketpair()
        self._errors = os.memfd_create("stderr")
        try:
            with theirs:
                # In a session of its own, so that Ctrl-C in a terminal reaches only the owner, who
                # then ends it in order.
                self._process: subprocess.Popen[bytes] = subprocess.Popen(
                    list(arguments),
                    stdin=theirs.fileno(),
                    stdout=theirs.fileno(),
                    stderr=self._errors,
                    cwd="/",
                    env={},
                    start_new_session=True,
                )
        except BaseException:
            ours.close()
            os.close(self._errors)
            raise
        self._socket = ours

    @property
    def pid(self) -> int:
        """Its process id."""
        return self._process.pid

    async def connect(self) -> SocketStream:
        """Open the stream to it; once."""
        reader, writer = await asyncio.open_connection(sock=self._socket, limit=_BUFFER_BYTES)
        return SocketStream(reader, writer)

    def complaint(self) -> str:
        """The last that it wrote to stderr."""
        size = os.fstat(self._errors).st_size
        data = os.pread(self._errors, _ERROR_BYTES, max(0, size - _ERROR_BYTES))
        return data.decode(errors="replace").strip()

    async def end(self) -> None:
        """See it end, by force if need be. Call once, when its stream is closed."""
        self._socket.close()
        if not await self._ended(END_SECONDS):
            self._process.kill()
            await self._ended(END_SECONDS)
        self._process.poll()
        os.close(self._errors)

    async def _ended(self, within: float) -> bool:
        watch = os.pidfd_open(self._process.pid)
        loop = asyncio.get_running_loop()
        ended = loop.create_future()
        loop.add_reader(watch, _settle, ended)
        try:
            await asyncio.wait_for(ended, within)
        except TimeoutError:
            return False
        finally:
            loop.remove_reader(watch)
            os.close(watch)
        return True


def _settle(future: "asyncio.Future[None]") -> None:
    if not future.done():
        future.set_result(None)


async def finish(work: Coroutine[None, None, None]) -> None:
    """Await some cleanup to its end, and only then let a cancellation through."""
    task = asyncio.ensure_future(work)
    cancelled: asyncio.CancelledError | None = None
    while not task.done():
        try:
            await asyncio.shield(task)
        except asyncio.CancelledError as error:
            cancelled = error
    if cancelled is not None:
        raise cancelled
    task.result()
