"""The containers of a Docker host: taken ready from the pool, or made for whoever asks."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from gymsuite.errors import SandboxError
from gymsuite.sandbox.dockerhost import DockerHost
from gymsuite.sandbox.image import Image
from gymsuite.sandbox.prepared import Prepared, discard, new_name, prepare
from gymsuite.sandbox.reaper import WARM
from gymsuite.sandbox.resident import finish
from gymsuite.sandbox.store import Report, Store
from gymsuite.sandbox.warm import Warm
from gymsuite.types import SandboxSpec


@dataclass(frozen=True)
class Fleet:
    """A host, and its pool of containers that nobody has used yet."""

    host: DockerHost
    warm: Warm

    @classmethod
    @asynccontextmanager
    async def connect(
        cls, store: Store, report: Report, *, runtime: str = ""
    ) -> AsyncIterator["Fleet"]:
        """Connect to the Engine; see `DockerHost.connect`."""
        async with DockerHost.connect(store, report, runtime=runtime) as host:

            async def make(image: Image, spec: SandboxSpec) -> Prepared:
                return await prepare(host, image, spec, WARM)

            async def drop(prepared: Prepared) -> None:
                await discard(host.engine, prepared)

            fleet = cls(host, Warm(make, drop, host.starts.locked))
            try:
                yield fleet
            finally:
                await finish(fleet.warm.close())

    async def take(self, image: Image, spec: SandboxSpec) -> Prepared:
        """Get a container of an image that was ensured; whoever gets it discards it."""
        while (found := self.warm.take(image, spec)) is not None:
            try:
                return await self._hand_over(found, image)
            except SandboxError:
                # It ended while it waited, as it does when the Engine is started again.
                await finish(discard(self.host.engine, found))
            except BaseException:
                await finish(discard(self.host.engine, found))
                raise
        return await prepare(self.host, image, spec, image.name)

    async def _hand_over(self, found: Prepared, image: Image) -> Prepared:
        if found.channel.lost:
            raise SandboxError(found.channel.lost)
        name = new_name(image.name)
        await self.host.engine.rename(found.id, name)
        return found._replace(name=name)
