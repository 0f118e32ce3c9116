"""Makes containers that are ready to be used: running, with their image's content in place."""

import asyncio
import secrets
from collections.abc import Iterator, Sequence
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from gymsuite.errors import PathRefused, SandboxError
from gymsuite.sandbox import transfer
from gymsuite.sandbox.accounts import account_of
from gymsuite.sandbox.archive import Kind, made
from gymsuite.sandbox.channel import Channel
from gymsuite.sandbox.connecting import connect, meet
from gymsuite.sandbox.contents import Listing, contents, does_not_fit, outside
from gymsuite.sandbox.creations import creating
from gymsuite.sandbox.docker import Engine
from gymsuite.sandbox.dockerhost import DockerHost, tag_of
from gymsuite.sandbox.engine import ImageMissing, NameTaken, Wish
from gymsuite.sandbox.freezing import Contents
from gymsuite.sandbox.image import Image
from gymsuite.sandbox.layers import resolve
from gymsuite.sandbox.looking import Look, first_look
from gymsuite.sandbox.reaper import labels, remove
from gymsuite.sandbox.resident import finish
from gymsuite.sandbox.workdirs import workdir
from gymsuite.sandbox.writable import Writable, places
from gymsuite.types import SandboxSpec

# A container may wait for its user before the lifetime of a sandbox begins.
_SPARE_SECONDS = 120.0
_TRIES = 3


class Prepared(NamedTuple):
    """A container that nobody has used yet, and how it looks."""

    id: str
    name: str
    channel: Channel
    places: tuple[Writable, ...]
    listing: Listing
    look: Look


class Start(NamedTuple):
    """What a container starts from: an image of the Engine's, and maybe a snapshot's contents."""

    image: Image
    contents: Contents | None

    def batches(self, listed: Listing, places: Sequence[Writable]) -> Iterator[bytes]:
        """Yield the entries to make below "/". Blocks. Raises `SandboxError`."""
        if self.contents is None:
            yield from contents(listed)
            return
        missing = self.contents.places - {place.path for place in places}
        if missing:
            raise SandboxError(
                f"a snapshot of {self.image.name!r} holds {', '.join(sorted(missing))}, where this"
                " sandbox cannot be written to; open it with the workdir that it was taken with",
                retryable=False,
            )
        yield from contents(outside(listed, self.contents.places))
        yield from self.contents.batches()


async def prepare(
    host: DockerHost,
    start: Start,
    spec: SandboxSpec,
    purpose: str,
    sockets: tuple[tuple[Path, str], ...] = (),
) -> Prepared:
    """Make a container of an image that was ensured; whoever gets it discards it.

    `purpose` is what its name begins with; `sockets` of this machine are mounted, each at the path
    beside it. Raises `SandboxError`.
    """
    image = start.image
    image.check_architecture()
    where = places(image, spec)
    wish = Wish(
        name="",
        image=tag_of(image),
        server=host.server,
        channel=Path(),
        labels=labels(spec.lifetime_seconds + _SPARE_SECONDS),
        runtime=host.runtime,
        account=account_of(image),
        memory_bytes=spec.memory_bytes,
        cpus=min(spec.cpus, host.capabilities.processors),
        pids=spec.pids,
        places=where,
        sockets=sockets,
    )
    for tries_left in reversed(range(_TRIES)):
        name = new_name(purpose)
        try:
            with creating(host.store.cache, name):
                return await _prepare(host, start, spec, wish._replace(name=name))
        except ImageMissing:
            if not tries_left:
                raise
            # Somebody tidied up meanwhile.
            await host.restore(image)
        except NameTaken:
            if not tries_left:
                raise
    raise AssertionError


def new_name(purpose: str) -> str:
    """Make up a name for a container. It is chosen here, so that a lost reply loses nothing."""
    return f"gymsuite-{purpose}-{secrets.token_hex(8)}"


async def discard(engine: Engine, prepared: Prepared) -> None:
    """End a container, and remove it."""
    try:
        await prepared.channel.close()
    finally:
        await remove(engine, prepared.id)


async def _prepare(host: DockerHost, start: Start, spec: SandboxSpec, wish: Wish) -> Prepared:
    try:
        async with host.starts:
            container, channel = await connect(host.engine, wish, meet(host.sockets))
        try:
            listed = await host.listing(start.image, wish.places)
            await _fill(channel, spec, start.image, start.batches(listed, wish.places))
            seen = await first_look(channel, wish.places)
            return Prepared(container, wish.name, channel, wish.places, listed, seen)
        except BaseException:
            await finish(channel.close())
            raise
    except NameTaken:
        raise
    except BaseException:
        await finish(_quietly(host.engine, wish.name))
        raise


async def _fill(
    channel: Channel, spec: SandboxSpec, image: Image, batches: Iterator[bytes]
) -> None:
    """Put into the places what the image has there, and make the workdir where it has none."""
    missing = _missing(resolve(image.layers, workdir(image, spec)), places(image, spec))
    try:
        while (batch := await asyncio.to_thread(next, batches, None)) is not None:
            await transfer.make(channel, "/", batch)
        await transfer.make(channel, "/", missing)
    except PathRefused as error:
        raise does_not_fit(image, error) from error
    except OSError as error:
        raise SandboxError(f"cannot read image {image.name!r}: {error}") from error


def _missing(workdir: str, where: Sequence[Writable]) -> bytes:
    """The entries that make a workdir and its parents, those that are in some place."""
    start = PurePosixPath(workdir)
    roots = {PurePosixPath(place.path) for place in where}
    return b"".join(
        made(Kind.DIRECTORY, 0o755, str(path.relative_to("/")))
        for path in reversed((start, *start.parents))
        if not roots.isdisjoint(path.parents)
    )


async def _quietly(engine: Engine, name: str) -> None:
    await remove(engine, name)
