"""The `local` provider: sandboxes from Linux namespaces, without a daemon."""

import asyncio
import os
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from pathlib import Path

from gymsuite.errors import SandboxError
from gymsuite.sandbox.accounts import account_of
from gymsuite.sandbox.image import Image
from gymsuite.sandbox.limits import Quota
from gymsuite.sandbox.localhost import LocalHost
from gymsuite.sandbox.overlay import difference
from gymsuite.sandbox.place import Place
from gymsuite.sandbox.protocol import DEFAULT_FILE_BYTES, Changes, Sandbox, SandboxStats
from gymsuite.sandbox.resident import finish
from gymsuite.sandbox.resolver import network_binds
from gymsuite.sandbox.running import Running, running
from gymsuite.sandbox.scratch import remove_tree
from gymsuite.sandbox.trees import remove_mount_points
from gymsuite.sandbox.verbs import Verbs
from gymsuite.sandbox.workdirs import workdir
from gymsuite.types import SandboxSpec

__all__ = ["BuildSandbox", "LocalHost", "LocalSandbox", "open_build", "open_local"]

_ENV = {
    "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
    "HOME": "/root",
    "LANG": "C.UTF-8",
}
_BUILD_QUOTA = Quota(pids=4096)


@asynccontextmanager
async def open_local(
    host: LocalHost,
    image: Image,
    spec: SandboxSpec,
    *,
    sockets: tuple[tuple[Path, str], ...] = (),
) -> AsyncIterator[Sandbox]:
    """Open a fresh sandbox, and remove it on exit. Raises `SandboxError`.

    `sockets` of this machine are mounted below /dev, each at the path beside it.
    """
    image.check_architecture()
    account = account_of(image)
    place = Place(
        image=image,
        env={**_ENV, **image.env, **spec.env},
        workdir=workdir(image, spec),
        quota=Quota.of(spec),
        account=account,
        lifetime_seconds=spec.lifetime_seconds,
        sockets=sockets,
    )
    async with _with_room(host, place) as roomy, running(host, roomy) as sandbox:
        yield LocalSandbox(sandbox)


@asynccontextmanager
async def open_build(
    host: LocalHost, image: Image, *, env: Mapping[str, str], network: bool
) -> AsyncIterator["BuildSandbox"]:
    """Open a sandbox whose changes can be kept as a layer; `network` is for the build alone."""
    place = Place(
        image=image,
        env={**_ENV, **image.env, **env},
        workdir=image.workdir,
        quota=_BUILD_QUOTA,
        account=account_of(image),
        network=network,
        extra_binds=tuple(network_binds()) if network else (),
        one_owner=True,
    )
    async with (
        _scratch(host) as scratch,
        running(host, replace(place, scratch=scratch)) as sandbox,
    ):
        yield BuildSandbox(sandbox, scratch / "upper")


@asynccontextmanager
async def _with_room(host: LocalHost, place: Place) -> AsyncIterator[Place]:
    """Give a sandbox a place for what it writes: in memory, or else on disk."""
    if host.in_memory:
        yield place
    else:
        async with _scratch(host) as scratch:
            yield replace(place, scratch=scratch, quota=place.quota.on_disk())


@asynccontextmanager
async def _scratch(host: LocalHost) -> AsyncIterator[Path]:
    try:
        scratch = host.make_directory()
    except OSError as error:
        raise SandboxError(f"cannot prepare a sandbox: {error}") from error
    try:
        yield scratch
    finally:
        await finish(_remove(scratch))


class LocalSandbox:
    """One sandbox."""

    def __init__(self, running: Running) -> None:
        self._running = running
        place = running.place
        self._verbs = Verbs(running.channel, place.env, place.workdir, own_root=True)
        self.exec = self._verbs.exec
        self.spawn = self._verbs.spawn
        self.read = self._verbs.read
        self.write = self._verbs.write
        self.upload = self._verbs.upload
        self.download = self._verbs.download

    @property
    def description(self) -> Mapping[str, object]:
        """Provider, image, interpreter, and the limits that are really enforced."""
        return self._running.description

    @property
    def pid(self) -> int:
        """The process on this machine that holds the sandbox: it ends with it."""
        return self._running.resident.pid

    async def changes(self, root: str, *, max_bytes: int = DEFAULT_FILE_BYTES) -> Changes:
        """Say what differs from the image that was built, below `root`; paths are absolute, inside.

        What a snapshot of this sandbox, or the one that it was opened from, had changed is a change
        as well. Ends every process first.
        """
        upper, image = await self._running.still()
        inside = self._verbs.inside(root)

        def read() -> Changes:
            # Whoever waits may be cancelled, and the descriptor is needed for as long as this runs.
            try:
                frozen = (layer.descriptor for layer in reversed(image.frozen))
                return difference((upper, *frozen), image, inside, max_bytes)
            finally:
                os.close(upper)

        return await asyncio.to_thread(read)

    async def stats(self) -> SandboxStats:
        """What the sandbox has used so far, also what no command of its own used."""
        commands = await self._verbs.stats()
        usage = self._running.usage()
        return SandboxStats(
            cpu_seconds=commands.cpu_seconds if usage.cpu_seconds is None else usage.cpu_seconds,
            peak_memory_bytes=usage.peak_memory_bytes or commands.peak_memory_bytes,
            disk_bytes=await self._running.disk_bytes(),
            oom_kills=usage.oom_kills,
        )

    async def snapshot(self) -> Image:
        """See `Sandbox.snapshot`."""
        try:
            image = await self._running.snapshot()
        finally:
            self._verbs.channel = self._running.channel
        return self._running.host.snapshots.add(image)


class BuildSandbox:
    """A sandbox in which an image's RUN steps run, and whose changes become a layer."""

    def __init__(self, running: Running, upper: Path) -> None:
        self._running = running
        self._upper = upper
        self.exec = Verbs(running.channel, running.place.env, running.place.workdir).exec

    async def freeze(self) -> Path:
        """End the sandbox, and return the directory of what changed.

        Whoever wants to keep it moves it away before the context ends.
        """
        await self._running.end()
        points = self._running.place.mount_points
        await asyncio.to_thread(remove_mount_points, self._upper, points)
        return self._upper


async def _remove(directory: Path) -> None:
    # What cannot be removed now is removed when a later process starts; the cause comes first.
    with suppress(OSError):
        await asyncio.to_thread(remove_tree, directory)
