"""The `local` provider: sandboxes from Linux namespaces, without a daemon, by bubblewrap."""

import asyncio
import posixpath
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from gymsuite.sandbox.channel import Channel
from gymsuite.sandbox.image import Image
from gymsuite.sandbox.localhost import LocalHost
from gymsuite.sandbox.overlay import difference, remove_mount_points
from gymsuite.sandbox.protocol import (
    DEFAULT_FILE_BYTES,
    DEFAULT_OUTPUT_BYTES,
    Changes,
    ExecResult,
    Sandbox,
    SandboxStats,
)
from gymsuite.sandbox.resolver import network_binds
from gymsuite.sandbox.running import Place, Running, running
from gymsuite.types import SandboxSpec

__all__ = ["BuildSandbox", "LocalHost", "LocalSandbox", "open_build", "open_local"]

_ENV = {
    "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
    "HOME": "/root",
    "LANG": "C.UTF-8",
}
_BUILD_PROCESSES = 4096


@asynccontextmanager
async def open_local(host: LocalHost, image: Image, spec: SandboxSpec) -> AsyncIterator[Sandbox]:
    """Open a fresh sandbox, and remove it on exit. Raises `SandboxError`."""
    image.check_architecture()
    place = Place(
        image=image,
        env={**_ENV, **image.env, **spec.env},
        workdir=spec.workdir if "workdir" in spec.model_fields_set else image.workdir,
        processes=spec.pids,
    )
    async with running(host, place) as sandbox:
        yield LocalSandbox(sandbox, place)


@asynccontextmanager
async def open_build(
    host: LocalHost, image: Image, *, env: Mapping[str, str], network: bool
) -> AsyncIterator["BuildSandbox"]:
    """Open a sandbox whose changes can be kept as a layer; `network` is for the build alone."""
    place = Place(
        image=image,
        env={**_ENV, **image.env, **env},
        workdir=image.workdir,
        processes=_BUILD_PROCESSES,
        network=network,
        extra_binds=tuple(network_binds()) if network else (),
    )
    async with running(host, place) as sandbox:
        yield BuildSandbox(sandbox, place)


class LocalSandbox:
    """One sandbox."""

    def __init__(self, running: Running, place: Place) -> None:
        self._running = running
        self._place = place

    @property
    def _channel(self) -> Channel:
        return self._running.channel

    @property
    def description(self) -> Mapping[str, object]:
        """Provider, image, interpreter, and the limits that are really enforced."""
        return self._place.description

    @property
    def pid(self) -> int:
        """The process on this machine that holds the sandbox: it ends with it."""
        return self._running.resident.pid

    async def exec(  # noqa: PLR0913 - the verb that everything is made of
        self,
        command: str | Sequence[str],
        *,
        timeout: float,
        stdin: bytes = b"",
        cwd: str | None = None,
        env: Mapping[str, str] | None = None,
        max_output: int = DEFAULT_OUTPUT_BYTES,
    ) -> ExecResult:
        """Run a command, and kill its whole tree at the deadline."""
        return await self._channel.exec(
            command,
            timeout=timeout,
            stdin=stdin,
            cwd=self._inside(cwd or ""),
            env={**self._place.env, **(env or {})},
            max_output=max_output,
        )

    async def read(self, path: str, *, max_bytes: int = DEFAULT_FILE_BYTES) -> bytes | None:
        """Return a file's bytes, or None if there is no such regular file."""
        return await self._channel.read(self._inside(path), max_bytes=max_bytes)

    async def write(self, path: str, data: bytes, *, mode: int = 0o644) -> None:
        """Write a file, making its parent directories."""
        await self._channel.write(self._inside(path), data, mode=mode)

    async def changes(self, root: str, *, max_bytes: int = DEFAULT_FILE_BYTES) -> Changes:
        """Say what differs from the image below `root`; paths are absolute, inside.

        Ends every process first.
        """
        await self._channel.kill_all()
        return await asyncio.to_thread(
            difference, self._running.upper, self._place.image, self._inside(root), max_bytes
        )

    async def stats(self) -> SandboxStats:
        """What the sandbox has used so far."""
        return await self._channel.stats()

    def _inside(self, path: str) -> str:
        return posixpath.join(self._place.workdir, path)


class BuildSandbox:
    """A sandbox in which an image's RUN steps run, and whose changes become a layer."""

    def __init__(self, running: Running, place: Place) -> None:
        self._running = running
        self._place = place
        self.exec = LocalSandbox(running, place).exec

    async def freeze(self) -> Path:
        """End the sandbox, and return the directory of what changed.

        Whoever wants to keep it moves it away before the context ends.
        """
        await self._running.end()
        await asyncio.to_thread(remove_mount_points, self._running.upper, self._place.mount_points)
        return self._running.upper
