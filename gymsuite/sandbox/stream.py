"""A connected socket as two-way bytes, without waiting: what comes is handed on as it comes."""

import asyncio
import socket
from collections.abc import Callable

_PIECE_BYTES = 64 << 10

Received = Callable[[bytes], None]
Ended = Callable[[OSError | None], None]


class SocketStream:
    """A `ByteStream` over a socket, which it owns from its start on."""

    def __init__(self, connection: socket.socket) -> None:
        connection.setblocking(False)
        self._socket = connection
        self._number = connection.fileno()
        self._loop = asyncio.get_running_loop()
        self._waiting = bytearray()
        self._closed = False

    def start(self, received: Received, ended: Ended) -> None:
        """Hand on all that comes, and at last its end. Once."""
        self._ended = ended
        self._received = received
        self._loop.add_reader(self._number, self._readable)

    def send(self, data: bytes) -> None:
        """Take over all of `data` at once."""
        if self._closed:
            return
        sent = 0
        if not self._waiting:
            sent = self._try(data)
            if sent == len(data):
                return
            self._loop.add_writer(self._number, self._writable)
        self._waiting += memoryview(data)[sent:]

    async def close(self) -> None:
        """End both directions, also when the other end has stopped reading. Idempotent."""
        self._stop()
        self._socket.close()

    def _try(self, data: bytes | memoryview) -> int:
        try:
            return self._socket.send(data)
        except (BlockingIOError, InterruptedError):
            return 0
        except OSError as error:
            self._fail(error)
            return len(data)

    def _readable(self) -> None:
        try:
            data = self._socket.recv(_PIECE_BYTES)
        except (BlockingIOError, InterruptedError):
            return
        except OSError as error:
            self._fail(error)
            return
        if data:
            self._received(data)
        else:
            self._fail(None)

    def _writable(self) -> None:
        with memoryview(self._waiting) as view:
            sent = self._try(view)
        if self._closed:
            return
        del self._waiting[:sent]
        if not self._waiting:
            self._loop.remove_writer(self._number)

    def _fail(self, error: OSError | None) -> None:
        self._stop()
        # Whoever is sending just now is not told from within its own call.
        self._loop.call_soon(self._ended, error)

    def _stop(self) -> None:
        if not self._closed:
            self._closed = True
            self._waiting = bytearray()
            self._loop.remove_reader(self._number)
            self._loop.remove_writer(self._number)
