"""A Docker Engine that is ready to run the images of a store."""

import asyncio
import os
import shutil
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, closing
from dataclasses import dataclass, field
from pathlib import Path

from gymsuite.errors import SandboxError, UsageError
from gymsuite.sandbox import binary, docker
from gymsuite.sandbox.accounts import account_of
from gymsuite.sandbox.contents import Listing, listing
from gymsuite.sandbox.docker import Engine
from gymsuite.sandbox.engine import Capabilities
from gymsuite.sandbox.image import Image
from gymsuite.sandbox.locks import exclusive
from gymsuite.sandbox.reaper import IMAGE_PREFIX, reap
from gymsuite.sandbox.scratch import Scratches
from gymsuite.sandbox.store import Report, Store
from gymsuite.sandbox.tarball import tar_stream
from gymsuite.sandbox.writable import Writable

_STARTS_PER_PROCESSOR = 2
_LISTINGS = 16


@dataclass
class DockerHost:
    """An Engine, what it can do, and the one of its runtimes that containers run in.

    `server` is this process's copy of the exec server, as another version's may take the place of
    the installed one. `sockets` is its directory for those to which exec servers come.
    """

    engine: Engine
    capabilities: Capabilities
    runtime: str
    server: Path
    sockets: Path
    store: Store
    report: Report
    starts: asyncio.Semaphore
    imported: set[str] = field(default_factory=set)
    listings: dict[tuple[str, tuple[str, ...]], Listing] = field(default_factory=dict)

    @classmethod
    @asynccontextmanager
    async def connect(
        cls, store: Store, report: Report, *, runtime: str = ""
    ) -> AsyncIterator["DockerHost"]:
        """Connect to the Engine, and remove what dead processes left there.

        `runtime` is one that the Engine lists, or "" for its default. Raises `SandboxError`, and
        `UsageError` for a runtime that is not there.
        """
        try:
            server = binary.exec_server()
        except FileNotFoundError as error:
            raise SandboxError(str(error), retryable=False) from error
        async with AsyncExitStack() as stack:
            engine = await stack.enter_async_context(docker.connect())
            able = await engine.capabilities()
            if runtime and runtime not in able.runtimes:
                raise UsageError(
                    f"Docker has no runtime {runtime!r}; it has: {', '.join(able.runtimes)}"
                )
            # The Engine starts few at a time whatever it is asked, and the rest would wait there.
            starts = asyncio.Semaphore(_STARTS_PER_PROCESSOR * (os.cpu_count() or 1))
            await reap(engine, store.cache)
            scratches = stack.enter_context(closing(Scratches(store.cache / "live")))
            try:
                sockets = await asyncio.to_thread(scratches.fresh)
                own = sockets / server.name
                await asyncio.to_thread(lambda: shutil.copy(server, own))
            except OSError as error:
                raise SandboxError(f"cannot write below {store.cache}: {error}") from error
            yield cls(engine, able, runtime, own, sockets, store, report, starts)

    @property
    def provider(self) -> str:
        """What the provider is called."""
        return f"docker:{self.runtime}" if self.runtime else "docker"

    async def ensure(self, image: Image) -> None:
        """Have an image in the Engine, imported once by whoever comes first."""
        tag = tag_of(image)
        if tag in self.imported:
            return
        if not await self.engine.has_image(tag):
            path = self.store.lock(f"docker-{image.digest}")
            lock = await exclusive(path, waiting=lambda: self.report(f"waiting for {tag}"))
            with closing(lock):
                if not await self.engine.has_image(tag):
                    self.report(f"{image.name}: importing into Docker")
                    await self.engine.import_image(tag, tar_stream(image.layers, account_of(image)))
        self.imported.add(tag)

    async def listing(self, image: Image, places: Sequence[Writable]) -> Listing:
        """Look at what an image has in some places, or remember it."""
        key = image.digest, tuple(place.path for place in places)
        if key not in self.listings:
            while len(self.listings) >= _LISTINGS:
                self.listings.pop(next(iter(self.listings)))
            self.listings[key] = await asyncio.to_thread(listing, image, places)
        return self.listings[key]

    async def restore(self, image: Image) -> None:
        """Have an image in the Engine again, which somebody removed from there."""
        self.imported.discard(tag_of(image))
        await self.ensure(image)


def tag_of(image: Image) -> str:
    """What an image is called in the Engine, where its files are those of its user."""
    user = "" if image.user == "root" else f"-{image.user.replace(':', '.')}"
    return f"{IMAGE_PREFIX}{image.name}:{image.digest[:16]}{user}"
