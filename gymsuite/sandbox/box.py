"""A sandbox's place at the keeper: requests that are answered, or raise within a deadline."""

import asyncio
import os
import socket
from collections.abc import Sequence
from contextlib import suppress
from itertools import count
from typing import NamedTuple

from gymsuite.errors import SandboxDead, SandboxError

END_SECONDS = 10.0
_ANSWER_BYTES = 4096
_GONE = "the sandbox is lost: the keeper of this process's sandboxes is gone"


class Answer(NamedTuple):
    """What the keeper said, and a descriptor where it sent one, which whoever asked closes."""

    words: tuple[str, ...]
    descriptor: int | None


class Box:
    """A place at the keeper for one sandbox: one request at a time, each with a deadline."""

    def __init__(self, control: socket.socket, keeper: str) -> None:
        control.setblocking(False)
        self._control = control
        self._numbers = count(1)
        self._turn = asyncio.Lock()
        self.keeper = keeper

    async def ask(self, *words: str, descriptors: Sequence[int] = (), within: float) -> Answer:
        """Send a request and return its answer.

        Raises `SandboxDead` when the keeper is gone, and `SandboxError` when it refuses or is mute.
        """
        try:
            async with asyncio.timeout(within), self._turn:
                answer = await self._ask(words, descriptors)
        except TimeoutError:
            message = f"the keeper did not answer to {words[0]!r} in {within:g} seconds"
            raise SandboxError(message) from None
        if answer.words[1] != "ok":
            _close(answer.descriptor)
            raise SandboxError(" ".join(answer.words[2:]))
        return Answer(answer.words[2:], answer.descriptor)

    async def _ask(self, words: Sequence[str], descriptors: Sequence[int]) -> Answer:
        number = str(next(self._numbers))
        try:
            socket.send_fds(self._control, [message(number, *words)], list(descriptors))
        except OSError as error:
            raise unsendable(error) from error
        while True:
            answer = await self._answer()
            if answer.words[0] == number:
                return answer
            # Whoever asked for it had been cancelled.
            _close(answer.descriptor)

    async def _answer(self) -> Answer:
        while True:
            try:
                data, descriptors, _, _ = socket.recv_fds(
                    self._control, _ANSWER_BYTES, 1, socket.MSG_CMSG_CLOEXEC
                )
            except BlockingIOError:
                await _readable(self._control)
                continue
            except OSError as error:
                raise SandboxDead(_GONE) from error
            if not data:
                raise SandboxDead(_GONE)
            words = tuple(data.decode(errors="replace").split(" "))
            return Answer(words, descriptors[0] if descriptors else None)

    async def end(self) -> None:
        """See everything of the sandbox gone: processes, what it wrote, its cgroups. Call once."""
        try:
            # A keeper that is gone or stands still cannot do more than has been done.
            with suppress(SandboxError):
                _close((await self.ask("end", within=END_SECONDS)).descriptor)
        finally:
            self._control.close()


def message(*words: str) -> bytes:
    """Write a message of words."""
    return os.fsencode("\0".join((*words, "")))


def unsendable(error: OSError) -> SandboxError:
    """Tell a keeper that is gone from one that cannot be asked."""
    if isinstance(error, BrokenPipeError | ConnectionResetError):
        return SandboxDead(_GONE)
    return SandboxError(f"cannot ask the keeper: {error}")


def _close(descriptor: int | None) -> None:
    if descriptor is not None:
        os.close(descriptor)


async def _readable(sock: socket.socket) -> None:
    loop = asyncio.get_running_loop()
    ready = loop.create_future()
    # By its number: asyncio describes a socket in full, in an error that it then suppresses.
    number = sock.fileno()
    loop.add_reader(number, _settle, ready)
    try:
        await ready
    finally:
        loop.remove_reader(number)


def _settle(future: "asyncio.Future[None]") -> None:
    if not future.done():
        future.set_result(None)
