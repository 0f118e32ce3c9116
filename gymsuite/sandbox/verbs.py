"""The verbs that every provider shares: all that goes through a sandbox's exec server."""

import posixpath
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from gymsuite.sandbox import transfer, wire
from gymsuite.sandbox.channel import Channel
from gymsuite.sandbox.process import spawn
from gymsuite.sandbox.protocol import (
    DEFAULT_FILE_BYTES,
    DEFAULT_OUTPUT_BYTES,
    DEFAULT_TREE_BYTES,
    DEFAULT_TREE_FILES,
    ExecResult,
    OnOutput,
    Process,
    SandboxStats,
)


@dataclass
class Verbs:
    """One sandbox's exec server, with the environment and the directory that commands start from.

    A provider whose exec server starts anew puts the new one's channel in place of the old. With
    `own_root` the file system of "/" is the sandbox's alone, so what is used of it is its own.
    """

    channel: Channel
    env: Mapping[str, str]
    workdir: str
    own_root: bool = False

    async def exec(  # noqa: PLR0913 - the verb that everything is made of
        self,
        command: str | Sequence[str],
        *,
        timeout: float,
        stdin: bytes = b"",
        cwd: str | None = None,
        env: Mapping[str, str] | None = None,
        user: str | None = None,
        max_output: int = DEFAULT_OUTPUT_BYTES,
        on_output: OnOutput | None = None,
    ) -> ExecResult:
        """See `Sandbox.exec`."""
        return await self.channel.exec(
            command,
            timeout=timeout,
            stdin=stdin,
            cwd=self.inside(cwd or ""),
            env={**self.env, **(env or {})},
            user=user,
            max_output=max_output,
            on_output=on_output,
        )

    async def spawn(
        self,
        command: str | Sequence[str],
        *,
        cwd: str | None = None,
        env: Mapping[str, str] | None = None,
        user: str | None = None,
    ) -> Process:
        """See `Sandbox.spawn`."""
        where = self.inside(cwd or "")
        text = wire.command_text(command, where, {**self.env, **(env or {})}, user)
        return await spawn(self.channel.link, text, user=user)

    async def read(self, path: str, *, max_bytes: int = DEFAULT_FILE_BYTES) -> bytes | None:
        """See `Sandbox.read`."""
        return await self.channel.read(self.inside(path), max_bytes=max_bytes)

    async def write(self, path: str, data: bytes, *, mode: int = 0o644) -> None:
        """See `Sandbox.write`."""
        await self.channel.write(self.inside(path), data, mode=mode)

    async def upload(self, source: Path, target: str) -> None:
        """See `Sandbox.upload`."""
        await transfer.upload(self.channel, source, self.inside(target))

    async def download(
        self,
        source: str,
        target: Path,
        *,
        max_bytes: int = DEFAULT_TREE_BYTES,
        max_files: int = DEFAULT_TREE_FILES,
    ) -> None:
        """See `Sandbox.download`."""
        inside = self.inside(source)
        await transfer.download(
            self.channel, inside, target, max_bytes=max_bytes, max_files=max_files
        )

    async def stats(self) -> SandboxStats:
        """See `Sandbox.stats`."""
        return await self.channel.stats(own_root=self.own_root)

    def inside(self, path: str) -> str:
        """Return a path as an absolute one: relative ones are below the workdir."""
        return posixpath.join(self.workdir, path)
