"""Reads lines that a person or a pipe types, without blocking what else goes on."""

import asyncio
import os
from collections.abc import Callable


class Typed:
    """Lines from a file descriptor.

    `input()` in a thread cannot be interrupted, and on the main thread it holds up the event loop:
    Ctrl-C would end neither.
    """

    def __init__(self, fd: int, say: Callable[[str], None]) -> None:
        self._fd = fd
        self._say = say
        self._buffer = bytearray()
        self._ended = False

    async def line(self, prompt: str) -> str:
        """Ask, and return the next line without its end. Raises `EOFError` after the last."""
        self._say(prompt)
        while b"\n" not in self._buffer and not self._ended:
            await self._ready()
            data = os.read(self._fd, 1 << 16)
            self._buffer += data
            self._ended = not data
        if not self._buffer:
            raise EOFError
        data, _, rest = bytes(self._buffer).partition(b"\n")
        self._buffer[:] = rest
        line = data.decode(errors="replace").rstrip("\r")
        if not os.isatty(self._fd):
            self._say(f"{line}\n")  # a terminal has shown it already
        return line

    async def _ready(self) -> None:
        loop = asyncio.get_running_loop()
        readable = asyncio.Event()
        try:
            loop.add_reader(self._fd, readable.set)
        except PermissionError:  # an ordinary file, which never makes anybody wait
            return
        try:
            await readable.wait()
        finally:
            loop.remove_reader(self._fd)
