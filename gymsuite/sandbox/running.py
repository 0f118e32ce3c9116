"""One `local` sandbox from its start to its removal: its process, its channel, its directory."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from gymsuite.errors import SandboxDead, SandboxError
from gymsuite.sandbox.bubblewrap import Mounts
from gymsuite.sandbox.channel import Channel
from gymsuite.sandbox.image import Image
from gymsuite.sandbox.localhost import LocalHost
from gymsuite.sandbox.resident import Resident, finish
from gymsuite.sandbox.scratch import remove_tree

_START_SECONDS = 30.0


@dataclass(frozen=True)
class Place:
    """What one sandbox is to be."""

    image: Image
    env: Mapping[str, str]
    workdir: str
    processes: int
    network: bool = False
    extra_binds: tuple[tuple[Path, str], ...] = ()

    @property
    def binds(self) -> tuple[tuple[Path, str], ...]:
        """Read-only host paths, and where they appear."""
        own = tuple((path, str(path)) for path in self.image.binds)
        return own + tuple(bind for bind in self.extra_binds if not self._covered(bind[1]))

    @property
    def mount_points(self) -> tuple[str, ...]:
        """Where something is mounted over the image."""
        return ("/dev", "/proc", *(target for _, target in self.binds))

    @property
    def description(self) -> Mapping[str, object]:
        """What a rollout's record says of its sandbox. None is a limit that is not enforced."""
        return {
            "provider": "local",
            "image": self.image.name,
            "digest": self.image.digest,
            "base": self.image.base,
            "python": self.image.python,
            "limits": {
                "network": "host" if self.network else "none",
                "pids": self.processes,
                "memory_bytes": None,
                "cpus": None,
                "disk_bytes": None,
            },
        }

    def _covered(self, target: str) -> bool:
        return any(Path(target).is_relative_to(path) for path in self.image.binds)


@dataclass
class Running:
    """A live sandbox. `upper` holds all that differs from its image, as overlayfs keeps it."""

    channel: Channel
    resident: Resident
    upper: Path
    ended: bool = field(default=False)

    async def end(self) -> None:
        """End everything in it. Idempotent, and carried through even when cancelled."""
        if not self.ended:
            self.ended = True
            await finish(self._end())

    async def _end(self) -> None:
        await self.channel.close()
        await self.resident.end()


@asynccontextmanager
async def running(host: LocalHost, place: Place) -> AsyncIterator[Running]:
    """Start a sandbox, and leave nothing of it. Raises `SandboxError`."""
    try:
        directory = host.make_directory()
    except OSError as error:
        raise SandboxError(f"cannot prepare a sandbox: {error}") from error
    try:
        sandbox = await _start(host, place, directory)
        try:
            await _greet(sandbox, place)
            yield sandbox
        finally:
            await sandbox.end()
    finally:
        await finish(_remove(directory))


async def _start(host: LocalHost, place: Place, directory: Path) -> Running:
    mounts = Mounts(
        layers=place.image.layers,
        upper=directory / "upper",
        work=directory / "work",
        binds=place.binds,
        hides=place.image.hides,
        workdir=place.workdir,
    )
    command = host.command(mounts, network=place.network, processes=place.processes)
    try:
        resident = Resident(command)
    except OSError as error:
        raise SandboxError(f"cannot start {command[0]}: {error}") from error
    try:
        stream = await resident.connect()
    except BaseException:
        await finish(resident.end())
        raise
    return Running(Channel(stream), resident, mounts.upper)


async def _greet(sandbox: Running, place: Place) -> None:
    try:
        await sandbox.channel.open(within=_START_SECONDS)
    except SandboxDead as error:
        complaint = sandbox.resident.complaint() or str(error)
        raise SandboxError(f"no sandbox of image {place.image.name!r}: {complaint}") from error


async def _remove(directory: Path) -> None:
    # What cannot be removed now is removed when a later process starts; the cause comes first.
    with suppress(OSError):
        await asyncio.to_thread(remove_tree, directory)
