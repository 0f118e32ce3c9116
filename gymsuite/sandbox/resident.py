"""The processes of a sandbox that a keeper starts, and the stream to them."""

import asyncio
import os
import socket
from collections.abc import Coroutine, Sequence

from gymsuite.sandbox.box import Box
from gymsuite.sandbox.keeper import START_SECONDS, last_words
from gymsuite.sandbox.stream import SocketStream


class Resident:
    """The processes of one sandbox, with a socket to their exec server, and their stderr.

    Its place at the keeper is the caller's: it is there before them, and after them.
    """

    def __init__(self, box: Box, channel: socket.socket, errors: int) -> None:
        self._box = box
        self._socket = channel
        self._errors = errors
        self.pid = 0
        """Of its first process on this machine, which ends with the sandbox."""
        self.group = -1
        """The number of its cgroups."""

    @classmethod
    async def start(cls, box: Box, words: Sequence[str]) -> "Resident":
        """Start it. Raises `SandboxError`."""
        ours, theirs = socket.socketpair()
        resident = cls(box, ours, os.memfd_create("stderr"))
        try:
            with theirs:
                descriptors = (theirs.fileno(), resident._errors)
                answer = await box.ask(
                    "start", *words, descriptors=descriptors, within=START_SECONDS
                )
        except BaseException:
            resident.close()
            raise
        resident.pid, resident.group = map(int, answer.words[:2])
        return resident

    async def connect(self) -> SocketStream:
        """Open the stream to it; once."""
        return SocketStream(self._socket)

    def complaint(self) -> str:
        """The last that it wrote to stderr."""
        return last_words(self._errors)

    async def ended(self) -> int:
        """Wait until it ended by itself, and return its exit code."""
        return int((await self._box.ask("wait", within=START_SECONDS)).words[0])

    def close(self) -> None:
        """Give up our ends, when its stream is closed. Idempotent."""
        self._socket.close()
        errors, self._errors = self._errors, -1
        if errors >= 0:
            os.close(errors)


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
        try:
            raise cancelled
        finally:
            # Its traceback refers to this frame, and by that to all that its callers hold.
            del cancelled
    task.result()
