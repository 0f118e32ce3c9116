"""Docker's attach connection as plain two-way bytes.

The Engine puts eight bytes before each piece of output: the stream, three zeros and a big-endian
length (Engine API, "ContainerAttach", stream format). stdout carries the exec server's frames;
stderr is kept for diagnostics. Input goes unframed.
"""

import socket
import struct

from gymsuite.sandbox.stream import Ended, Received, SocketStream

_HEADER = struct.Struct(">BxxxL")
_STDOUT = 1
_KEPT_BYTES = 1 << 16


class AttachStream:
    """A `ByteStream` over an attach connection whose HTTP part is over."""

    def __init__(self, connection: socket.socket) -> None:
        self._stream = SocketStream(connection)
        self._header = b""
        self._left = 0
        self._kind = _STDOUT
        self._complaints = b""
        self.send = self._stream.send
        self.close = self._stream.close

    def start(self, received: Received, ended: Ended) -> None:
        """Hand on the container's stdout, and at last its end."""
        self._received = received
        self._stream.start(self._split, ended)

    @property
    def complaint(self) -> str:
        """The last that came on stderr."""
        return self._complaints.decode(errors="replace").strip()

    def _split(self, data: bytes) -> None:
        at = 0
        while at < len(data):
            if not self._left:
                at = self._take_header(data, at)
                continue
            piece = data[at : at + self._left]
            at += len(piece)
            self._left -= len(piece)
            if self._kind == _STDOUT:
                self._received(piece)
            else:
                self._complaints = (self._complaints + piece)[-_KEPT_BYTES:]

    def _take_header(self, data: bytes, at: int) -> int:
        piece = data[at : at + _HEADER.size - len(self._header)]
        self._header += piece
        if len(self._header) == _HEADER.size:
            self._kind, self._left = _HEADER.unpack(self._header)
            self._header = b""
        return at + len(piece)
