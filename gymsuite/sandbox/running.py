"""One `local` sandbox from its start to its removal: its processes and its channel."""

import secrets
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from gymsuite.errors import SandboxDead, SandboxError
from gymsuite.sandbox.bubblewrap import Mounts
from gymsuite.sandbox.channel import Channel
from gymsuite.sandbox.image import Image
from gymsuite.sandbox.keeper import Box
from gymsuite.sandbox.limits import Enforcement, Quota
from gymsuite.sandbox.localhost import LocalHost
from gymsuite.sandbox.resident import Resident, finish
from gymsuite.sandbox.stage import Stage

_START_SECONDS = 30.0
_ASK_SECONDS = 10.0
_UNLIMITED_BYTES = 1 << 40


@dataclass(frozen=True)
class Place:
    """What one sandbox is to be.

    Its `scratch` is a directory of this machine for what it writes; without one, that lies in
    memory at the keeper.
    """

    image: Image
    env: Mapping[str, str]
    workdir: str
    quota: Quota
    network: bool = False
    extra_binds: tuple[tuple[Path, str], ...] = ()
    scratch: Path | None = None

    @property
    def binds(self) -> tuple[tuple[Path, str], ...]:
        """Read-only host paths, and where they appear."""
        own = tuple((path, str(path)) for path in self.image.binds)
        return own + tuple(bind for bind in self.extra_binds if not self._covered(bind[1]))

    @property
    def mount_points(self) -> tuple[str, ...]:
        """Where something is mounted over the image."""
        return ("/dev", "/proc", *(target for _, target in self.binds))

    def _covered(self, target: str) -> bool:
        return any(Path(target).is_relative_to(path) for path in self.image.binds)


@dataclass
class Running:
    """A live sandbox, with its place at the keeper."""

    place: Place
    enforcement: Enforcement
    box: Box
    resident: Resident
    channel: Channel
    ended: bool = field(default=False)

    async def end(self) -> None:
        """End everything in it. Idempotent, and carried through even when cancelled."""
        if not self.ended:
            self.ended = True
            await finish(self._end())

    async def _end(self) -> None:
        await self.channel.close()
        self.resident.close()
        if self.place.scratch is not None:
            await self.box.ask("stop", within=_ASK_SECONDS)

    @property
    def description(self) -> Mapping[str, object]:
        """What a rollout's record says of its sandbox."""
        image = self.place.image
        return {
            "provider": "local",
            "image": image.name,
            "digest": image.digest,
            "base": image.base,
            "python": image.python,
            **self.enforcement.description("host" if self.place.network else "none"),
        }

    async def upper(self) -> int:
        """Open the directory of all that differs from its image, as overlayfs keeps it."""
        answer = await self.box.ask("upper", within=_ASK_SECONDS)
        if answer.descriptor is None:
            raise SandboxError("the keeper sent no directory")
        return answer.descriptor


@asynccontextmanager
async def running(host: LocalHost, place: Place) -> AsyncIterator[Running]:
    """Start a sandbox, and leave nothing of it. Raises `SandboxError`."""
    box = await host.keeper().box()
    try:
        sandbox = await _start(host, place, box)
        try:
            await _greet(sandbox)
            yield sandbox
        finally:
            await sandbox.end()
    finally:
        await finish(box.end())


async def _start(host: LocalHost, place: Place, box: Box) -> Running:
    enforcement = Enforcement(place.quota, host.cgroups)
    resident = await Resident.start(box, words(host, place, enforcement))
    try:
        stream = await resident.connect()
    except BaseException:
        resident.close()
        raise
    return Running(place, enforcement, box, resident, Channel(stream))


def words(host: LocalHost, place: Place, enforcement: Enforcement) -> list[str]:
    """Write what the keeper is told of a sandbox's start."""
    stage = Stage()
    upper: list[str] = []
    if place.scratch is None:
        key = secrets.token_hex(8)
        scratch = stage.kept(key)
        size = place.quota.disk_bytes or _UNLIMITED_BYTES
        upper = ["upper", key, str(size), str(place.quota.inodes or 0)]
    else:
        scratch = stage.host(place.scratch)
    mounts = Mounts(
        server=stage.host(host.server),
        layers=tuple(stage.host(layer) for layer in place.image.layers),
        scratch=scratch,
        binds=tuple((stage.host(path), target) for path, target in place.binds),
        workdir=place.workdir,
        hides=place.image.hides,
    )
    run = host.run(stage, mounts, network=place.network, serve=enforcement.server())
    return [*upper, *enforcement.settings(), "--", *enforcement.own(), *run]


async def _greet(sandbox: Running) -> None:
    try:
        await sandbox.channel.open(within=_START_SECONDS)
    except SandboxDead as error:
        complaint = sandbox.resident.complaint() or str(error)
        name = sandbox.place.image.name
        raise SandboxError(f"no sandbox of image {name!r}: {complaint}") from error
