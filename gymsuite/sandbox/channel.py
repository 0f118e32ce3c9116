"""The client of the exec server: calls that are answered, or raise `SandboxDead`.

Nothing here waits without a deadline. Once a channel is lost, every call that waits and every
later one raises, with the reason: a lost command is never an empty result.
"""

import errno
import math
import os
from collections.abc import Mapping, Sequence
from functools import partial

from gymsuite.errors import PathRefused, SandboxError, UsageError
from gymsuite.sandbox import replies, wire
from gymsuite.sandbox.link import GRACE_SECONDS, ByteStream, Link
from gymsuite.sandbox.protocol import (
    DEFAULT_FILE_BYTES,
    DEFAULT_OUTPUT_BYTES,
    ExecResult,
    OnOutput,
    SandboxStats,
)
from gymsuite.sandbox.replies import Found, ReadStatus, RefusedError
from gymsuite.sandbox.wire import MalformedError, Reply, Request, Unsendable

FILE_SECONDS = 60.0
_NOT_RUNNABLE = 126
_MOST_MODE = 0o7777
# A full disk is not among them: a sandbox has one of its own, and fills it itself.
_MACHINE_IS_SICK = frozenset((errno.EIO, errno.ENOMEM, errno.EMFILE, errno.ENFILE))


class Channel:
    """What an exec server can be asked, over one link to it."""

    def __init__(self, stream: ByteStream, *, grace: float = GRACE_SECONDS) -> None:
        link = Link(stream, grace=grace)
        self.link = link
        self.open = link.open
        self.ask = link.ask
        self.drop = link.drop
        self.close = link.close

    @property
    def lost(self) -> str:
        """Why every call would raise `SandboxDead`, or ""."""
        return self.link.lost

    async def exec(  # noqa: PLR0913 - the verb that everything is made of
        self,
        command: str | Sequence[str],
        *,
        timeout: float,
        stdin: bytes = b"",
        cwd: str = "/",
        env: Mapping[str, str],
        user: str | None = None,
        max_output: int = DEFAULT_OUTPUT_BYTES,
        on_output: OnOutput | None = None,
    ) -> ExecResult:
        """Run a command whose environment is `env` and nothing else."""
        milliseconds = _milliseconds(timeout)
        kept = max(0, min(max_output, wire.MAX_OUTPUT))
        window = wire.OUTPUT_WINDOW if on_output else 0
        request = self.link.new_id()
        try:
            text = wire.command_text(command, cwd, env, user)
            head = wire.exec_request(text, milliseconds, kept, window)
            if on_output:
                self.link.listen(request, _Follower(self.link, request, on_output))
            return await self.ask(
                Request.EXEC,
                head,
                stdin,
                within=milliseconds / 1000,
                parse=replies.exec_result,
                request=request,
            )
        except Unsendable as error:
            self.link.unlisten(request)
            return ExecResult(_NOT_RUNNABLE, b"", f"{error}\n".encode())
        except RefusedError as error:
            raise replies.refused(user, error) from error

    async def read(self, path: str, *, max_bytes: int = DEFAULT_FILE_BYTES) -> bytes | None:
        """Return a file's bytes, or None if there is no such regular file."""
        limit = max(0, min(max_bytes, wire.MAX_FILE))
        try:
            payload = wire.number(limit) + wire.text(path)
        except Unsendable:
            return None
        status, error, data = await self.ask(
            Request.READ, payload, within=FILE_SECONDS, parse=replies.read_result
        )
        if status is ReadStatus.TOO_LARGE:
            raise PathRefused(f"{path} is larger than {limit} bytes", retryable=False)
        if status is ReadStatus.FAILED:
            raise refusal(f"cannot read {path}", error)
        return data if status is ReadStatus.OK else None

    async def state(self, path: str, *, max_bytes: int) -> Found:
        """Return what is at a path, links not followed; call it when all processes are dead."""
        limit = max(0, min(max_bytes, wire.MAX_FILE))
        payload = wire.number(limit) + wire.text(path)
        return await self.ask(
            Request.STATE, payload, within=FILE_SECONDS, parse=replies.state_result
        )

    async def write(self, path: str, data: bytes, *, mode: int = 0o644) -> None:
        """Write a file, making its parent directories."""
        if not 0 <= mode <= _MOST_MODE:
            raise UsageError(f"a file of mode {mode:#o}; it would be between 0 and {_MOST_MODE:#o}")
        try:
            head = wire.number(mode) + wire.text(path)
            error = await self.ask(
                Request.WRITE, head, data, within=FILE_SECONDS, parse=replies.errno_result
            )
        except Unsendable as reason:
            raise PathRefused(f"cannot write {path[:80]!r}: {reason}", retryable=False) from reason
        if error:
            raise refusal(f"cannot write {path}", error)

    async def stats(self, *, own_root: bool = False) -> SandboxStats:
        """What all commands together have used; `own_root` as in `replies.stats_result`."""
        parse = partial(replies.stats_result, own_root=own_root)
        return await self.ask(Request.STATS, within=0, parse=parse)

    async def kill_all(self) -> None:
        """End every process in the sandbox but the server."""
        if not await self.ask(Request.KILL_ALL, within=0, parse=replies.flag_result):
            raise SandboxError("a process in the sandbox cannot be killed")


class _Follower:
    """Hands on the output of a command that is waited for, and gives credit for more."""

    def __init__(self, link: Link, request: int, on_output: OnOutput) -> None:
        self._link = link
        self._request = request
        self._on_output: OnOutput | None = on_output

    def hear(self, frame: Reply) -> None:
        """See `Listener.hear`."""
        if frame.kind != Request.OUTPUT:
            raise MalformedError(f"a frame of type {frame.kind} about a command")
        stream, data = replies.output(frame.payload)
        self._link.tell(self._request, Request.WINDOW, wire.credit(stream, len(data)))
        if self._on_output is None:
            return
        try:
            self._on_output(stream, data)
        except Exception as error:  # noqa: BLE001 - whatever the caller's own code raises is the caller's
            self._on_output = None
            self._link.fail(self._request, error)

    def lost(self) -> None:
        """See `Listener.lost`."""


def _milliseconds(seconds: float) -> int:
    if math.isnan(seconds):
        raise UsageError("a timeout of NaN seconds; it would be a number, or math.inf")
    return max(1, round(min(max(seconds, 0.0), wire.MAX_SECONDS) * 1000))


def refusal(what: str, error: int) -> SandboxError:
    """Tell what a path does not allow from what the machine cannot do."""
    message = f"{what}: {os.strerror(error)}"
    if error in _MACHINE_IS_SICK:
        return SandboxError(message)
    return PathRefused(message, retryable=False)
