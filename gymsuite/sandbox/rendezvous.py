"""A unix socket on which one container's exec server meets us, so that nothing is relayed.

It lies in a directory that only this user can enter, is bound into the container, takes one
connection, and is removed at once.
"""

import asyncio
import secrets
import socket
import struct
from contextlib import suppress
from pathlib import Path

from gymsuite.sandbox.sockets import bind

_PEER = struct.Struct("3i")


class Rendezvous:
    """A socket that listens until somebody came, or it is closed."""

    def __init__(self, directory: Path) -> None:
        """Listen in a directory of this user's. Raise OSError where that cannot be."""
        self.path = directory / secrets.token_hex(8)
        self._met: socket.socket | None = None
        self._listener = socket.socket(socket.AF_UNIX)
        try:
            self._listener.setblocking(False)
            bind(self._listener, self.path)
            # Root in a container may not pass by a mode, and nobody else can enter the directory.
            self.path.chmod(0o666)
            self._listener.listen(1)
        except BaseException:
            self.close()
            raise

    async def accept(self) -> int:
        """Wait for whoever comes first, and return its process id: 0 where it has none here."""
        self._met, _ = await asyncio.get_running_loop().sock_accept(self._listener)
        self._stop()
        peer = self._met.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _PEER.size)
        return int(_PEER.unpack(peer)[0])

    def take(self) -> socket.socket:
        """Take over the connection, once, when somebody came."""
        met, self._met = self._met, None
        if met is None:
            raise RuntimeError("nobody came yet")
        return met

    def close(self) -> None:
        """Take no more connections, and close the one that nobody took. Idempotent."""
        self._stop()
        if self._met is not None:
            self._met.close()

    def _stop(self) -> None:
        self._listener.close()
        with suppress(OSError):
            self.path.unlink()
