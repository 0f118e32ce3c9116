"""The `docker` provider: sandboxes as containers of a local Docker Engine.

The Engine makes and removes a container; all else goes through the exec server, its first process.
"""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

from gymsuite.sandbox.channel import Channel
from gymsuite.sandbox.differences import Built, below, differences
from gymsuite.sandbox.fleet import Fleet
from gymsuite.sandbox.freezing import Contents
from gymsuite.sandbox.image import Image
from gymsuite.sandbox.looking import Look, changed, look
from gymsuite.sandbox.prepared import Prepared, discard
from gymsuite.sandbox.protocol import DEFAULT_FILE_BYTES, Changes, Sandbox
from gymsuite.sandbox.resident import finish
from gymsuite.sandbox.verbs import Verbs
from gymsuite.sandbox.workdirs import workdir
from gymsuite.sandbox.writable import disk_bytes
from gymsuite.types import SandboxSpec


@asynccontextmanager
async def open_docker(
    fleet: Fleet,
    image: Image,
    spec: SandboxSpec,
    *,
    sockets: tuple[tuple[Path, str], ...] = (),
) -> AsyncIterator[Sandbox]:
    """Open a fresh sandbox of an image that was ensured, and remove it on exit.

    `sockets` of this machine are mounted below /dev, each at the path beside it. Raises
    `SandboxError`.
    """
    prepared = await fleet.take(image, spec, sockets)
    try:
        sandbox = DockerSandbox(fleet, prepared, image, spec)
        end = asyncio.create_task(_end(prepared.channel, spec.lifetime_seconds))
        try:
            yield sandbox
        finally:
            end.cancel()
    finally:
        await finish(discard(fleet.host.engine, prepared))


async def _end(channel: Channel, lifetime_seconds: float) -> None:
    """End a container in time: it ends when its exec server does."""
    await asyncio.sleep(lifetime_seconds)
    await channel.close(f"was ended after a lifetime of {lifetime_seconds:g} seconds")


class DockerSandbox:
    """One container."""

    def __init__(self, fleet: Fleet, prepared: Prepared, image: Image, spec: SandboxSpec) -> None:
        self.name = prepared.name
        self._fleet = fleet
        self._prepared = prepared
        self._below = fleet.freezer.contents(image.frozen)
        self._image = image
        self._spec = spec
        self._verbs = Verbs(prepared.channel, {**image.env, **spec.env}, workdir(image, spec))
        self.exec = self._verbs.exec
        self.spawn = self._verbs.spawn
        self.read = self._verbs.read
        self.write = self._verbs.write
        self.upload = self._verbs.upload
        self.download = self._verbs.download
        self.stats = self._verbs.stats

    @property
    def description(self) -> Mapping[str, object]:
        """Provider, image, interpreter, and the limits that are really enforced."""
        able = self._fleet.host.capabilities
        cpus = min(self._spec.cpus, able.processors)
        return {
            "provider": self._fleet.host.provider,
            "image": self._image.name,
            "digest": self._image.digest,
            "base": self._image.base,
            "python": self._image.python,
            "limits": {
                "network": "none",
                "pids": self._spec.pids if able.pids else None,
                "memory_bytes": self._spec.memory_bytes if able.memory else None,
                "cpus": cpus if able.cpus else None,
                "disk_bytes": disk_bytes(self._spec),
                "inodes": self._spec.inodes,
            },
        }

    async def changes(self, root: str, *, max_bytes: int = DEFAULT_FILE_BYTES) -> Changes:
        """Say what differs from the image that was built, below `root`; paths are absolute, inside.

        What a snapshot of the sandbox that this one was opened from had changed is a change as
        well. Ends every process first.
        """
        channel = self._verbs.channel
        await channel.kill_all()
        now = await look(channel, self._prepared.places)
        scope = below(self._image, self._verbs.inside(root), max_bytes)
        paths = self._changed(now)
        built = Built(self._image, self._prepared.listing)
        return await differences(built, paths, now, channel.state, scope)

    async def snapshot(self) -> Image:
        """See `Sandbox.snapshot`."""
        channel, places = self._verbs.channel, self._prepared.places
        await channel.kill_all()
        path, now = await self._fleet.freezer.freeze(channel, places)
        held = frozenset(place.path for place in places)
        built = self._below.built if self._below else self._image
        contents = Contents(built, path, held, frozenset(self._changed(now)))
        frozen = self._fleet.freezer.keep(contents)
        return self._fleet.snapshots.add(replace(built, frozen=(frozen,)))

    def _changed(self, now: Look) -> set[str]:
        earlier = self._below.changed if self._below else frozenset[str]()
        return changed(self._prepared.look, now) | earlier
