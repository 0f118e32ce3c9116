"""The containers of a Docker host: taken ready from the pool, or made for whoever asks."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from dataclasses import dataclass
from pathlib import Path

from gymsuite.errors import SandboxError
from gymsuite.sandbox.dockerhost import DockerHost
from gymsuite.sandbox.freezing import FROZEN, Freezer
from gymsuite.sandbox.image import Image
from gymsuite.sandbox.prepared import Prepared, Start, discard, new_name, prepare
from gymsuite.sandbox.reaper import WARM
from gymsuite.sandbox.resident import finish
from gymsuite.sandbox.snapshots import Snapshots
from gymsuite.sandbox.store import Report, Store
from gymsuite.sandbox.warm import Warm
from gymsuite.types import SandboxSpec


@dataclass(frozen=True)
class Fleet:
    """A host, its pool of containers that nobody has used yet, and the snapshots of others."""

    host: DockerHost
    warm: Warm
    freezer: Freezer
    snapshots: Snapshots

    @classmethod
    @asynccontextmanager
    async def connect(
        cls, store: Store, report: Report, *, runtime: str = ""
    ) -> AsyncIterator["Fleet"]:
        """Connect to the Engine; see `DockerHost.connect`."""
        with closing(Freezer(store.cache / FROZEN)) as freezer:
            async with DockerHost.connect(store, report, runtime=runtime) as host:

                async def make(image: Image, spec: SandboxSpec) -> Prepared:
                    return await prepare(host, _start(freezer, image), spec, WARM)

                async def drop(prepared: Prepared) -> None:
                    await discard(host.engine, prepared)

                warm = Warm(make, drop, host.starts.locked)
                try:
                    yield cls(host, warm, freezer, Snapshots())
                finally:
                    await finish(warm.close())

    async def take(
        self, image: Image, spec: SandboxSpec, sockets: tuple[tuple[Path, str], ...] = ()
    ) -> Prepared:
        """Get a container of an image that was ensured; whoever gets it discards it.

        One with `sockets` of this machine is never in the pool: they are mounted when it is made.
        """
        start = _start(self.freezer, image)
        if sockets:
            return await prepare(self.host, start, spec, _purpose(image), sockets)
        while (found := self.warm.take(image, spec)) is not None:
            try:
                return await self._hand_over(found, image)
            except SandboxError:
                # It ended while it waited, as it does when the Engine is started again.
                await finish(discard(self.host.engine, found))
            except BaseException:
                await finish(discard(self.host.engine, found))
                raise
        return await prepare(self.host, start, spec, _purpose(image))

    async def _hand_over(self, found: Prepared, image: Image) -> Prepared:
        if found.channel.lost:
            raise SandboxError(found.channel.lost)
        name = new_name(_purpose(image))
        await self.host.engine.rename(found.id, name)
        return found._replace(name=name)


def _start(freezer: Freezer, image: Image) -> Start:
    contents = freezer.contents(image.frozen)
    return Start(contents.built if contents else image, contents)


def _purpose(image: Image) -> str:
    # A snapshot's name has a colon, which no container's may have.
    return image.name.replace(":", "-")
