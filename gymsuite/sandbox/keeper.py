"""The process that holds what this process's sandboxes write, and that starts and ends them.

A process of its own has one thread, few pages and a private mount namespace, so that nothing of a
sandbox shows on this machine and nothing of it stays, however the owner ends. It is started once;
see `exec_server/keeper.c`.
"""

import asyncio
import os
import secrets
import select
import socket
import subprocess
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from gymsuite.errors import SandboxError
from gymsuite.sandbox.box import END_SECONDS, Box, message, unsendable

START_SECONDS = 30.0
_ANSWER_BYTES = 4096
_ERROR_BYTES = 4000


class Keeper:
    """A running keeper, of the process that started it and of no other.

    `token` tells it from those before and after it, and `groups` are its cgroups.
    """

    def __init__(
        self,
        process: "subprocess.Popen[bytes]",
        main: socket.socket,
        errors: int,
        groups: Sequence[Path],
    ) -> None:
        self.groups = tuple(groups)
        self.token = secrets.token_hex(8)
        self._process = process
        self._main = main
        self._errors = errors
        self._released: list[str] = []

    @classmethod
    def start(cls, server: Path, uid: int, gid: int, groups: Sequence[Path]) -> "Keeper":
        """Start one, and wait some milliseconds until it is ready. Raises `SandboxError`.

        Its cgroups, one directory for each hierarchy, are made by it and go with it.
        """
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        errors = os.memfd_create("keeper")
        with theirs:
            # In a session of its own, so that Ctrl-C in a terminal reaches only its owner, who then
            # ends it in order.
            command = [str(server), "keeper", *map(str, (os.getpid(), uid, gid, *groups))]
            try:
                process = subprocess.Popen(
                    command, stdin=theirs.fileno(), stdout=subprocess.DEVNULL, stderr=errors,
                    cwd="/", env={}, start_new_session=True,
                )  # fmt: skip
            except OSError as error:
                ours.close()
                os.close(errors)
                raise SandboxError(f"cannot start {server}: {error}", retryable=False) from error
        keeper = cls(process, ours, errors, groups)
        keeper._greet()
        return keeper

    def _greet(self) -> None:
        self._main.settimeout(START_SECONDS)
        try:
            said = self._main.recv(_ANSWER_BYTES)
        except OSError as error:
            said = str(error).encode()
        if said != b"0 ok":
            complaint = self.complaint() or said.decode(errors="replace") or "it ended at once"
            self.close()
            raise SandboxError(f"no keeper of sandboxes can be started: {complaint}")
        self._main.setblocking(False)

    @property
    def pid(self) -> int:
        """Its process id."""
        return self._process.pid

    @property
    def lost(self) -> bool:
        """Whether it has ended, which takes all its sandboxes with it."""
        watch = select.poll()
        watch.register(self._main, 0)
        return bool(watch.poll(0)) or self._process.poll() is not None

    def complaint(self) -> str:
        """The last that it wrote to stderr."""
        return last_words(self._errors)

    async def box(self) -> Box:
        """Make a place for one sandbox. Raises `SandboxDead`."""
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            try:
                async with asyncio.timeout(END_SECONDS):
                    while not self._send(  # noqa: ASYNC110 - it tells nobody of room
                        message("box"), [theirs.fileno()]
                    ):
                        # Only a keeper with hundreds of places to make has no room for one more.
                        await asyncio.sleep(0.005)
            except BaseException:
                ours.close()
                raise
        return Box(ours, self.token)

    def release(self, key: str) -> None:
        """Give up what was frozen; called by a finalizer, so it neither waits nor raises."""
        self._released.append(key)
        with suppress(OSError, SandboxError):
            while self._released:
                waiting = self._released.pop()
                if not self._send(message("release", waiting), []):
                    self._released.append(waiting)
                    break

    def _send(self, message: bytes, descriptors: list[int]) -> bool:
        try:
            socket.send_fds(self._main, [message], descriptors)
        except BlockingIOError:
            return False
        except OSError as error:
            raise unsendable(error) from error
        return True

    def close(self) -> None:
        """End it, with all its sandboxes, and see it gone."""
        # Also the copies of the socket that a forked process may hold are told.
        with suppress(OSError):
            self._main.shutdown(socket.SHUT_RDWR)
        try:
            self._process.wait(END_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._main.close()
        os.close(self._errors)


def last_words(errors: int) -> str:
    """Return the end of what was written to a memory file."""
    size = os.fstat(errors).st_size
    data = os.pread(errors, _ERROR_BYTES, max(0, size - _ERROR_BYTES))
    return data.decode(errors="replace").strip()
