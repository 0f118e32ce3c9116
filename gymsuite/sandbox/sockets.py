"""Unix sockets in directories of whatever depth."""

import os
import socket
from pathlib import Path


def bind(listener: socket.socket, path: Path) -> None:
    """Bind a socket to a path. Raises OSError."""
    # An address has room for a hundred bytes, and a directory may be deeper than that.
    short = os.open(path.parent, os.O_PATH | os.O_DIRECTORY)
    try:
        listener.bind(f"/proc/self/fd/{short}/{path.name}")
    finally:
        os.close(short)
