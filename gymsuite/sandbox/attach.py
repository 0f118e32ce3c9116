"""Docker's attach connection as plain two-way bytes.

The Engine puts eight bytes before each piece of output: the stream, three zeros and a big-endian
length (Engine API, "ContainerAttach", stream format). stdout carries the exec server's frames;
stderr is kept for diagnostics. Input goes unframed.
"""

import asyncio
import contextlib
import socket
import struct
from collections import deque

_HEADER = struct.Struct(">BxxxL")
_STDOUT = 1
_CHUNK_BYTES = 1 << 16
_KEPT_CHUNKS = 16
_BUFFER_BYTES = 1 << 20


class AttachStream:
    """A `ByteStream` over an attach connection."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self._left = 0
        self._complaints: deque[bytes] = deque(maxlen=_KEPT_CHUNKS)

    @classmethod
    async def open(cls, connection: socket.socket) -> "AttachStream":
        """Take over a connection whose HTTP part is over."""
        reader, writer = await asyncio.open_connection(sock=connection, limit=_BUFFER_BYTES)
        return cls(reader, writer)

    async def read(self, size: int, /) -> bytes:
        """Wait for some of the container's stdout; empty at its end."""
        while self._left == 0:
            try:
                kind, length = _HEADER.unpack(await self._reader.readexactly(_HEADER.size))
                if kind == _STDOUT:
                    self._left = length
                else:
                    await self._complain(length)
            except asyncio.IncompleteReadError:
                return b""
        data = await self._reader.read(min(size, self._left))
        self._left -= len(data)
        return data

    async def write(self, data: bytes, /) -> None:
        """Hand the data to the event loop, and wait for room."""
        self._writer.write(data)
        await self._writer.drain()

    async def close(self) -> None:
        """End both directions."""
        self._writer.close()
        with contextlib.suppress(OSError):
            await self._writer.wait_closed()

    @property
    def complaint(self) -> str:
        """The last that came on stderr."""
        return b"".join(self._complaints).decode(errors="replace").strip()

    async def _complain(self, length: int) -> None:
        while length > 0:
            data = await self._reader.readexactly(min(length, _CHUNK_BYTES))
            self._complaints.append(data[-_CHUNK_BYTES // _KEPT_CHUNKS :])
            length -= len(data)
