"""One `local` sandbox from its start to its removal: its processes, and what it changed."""

import asyncio
import os
import secrets
import weakref
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field, replace

from gymsuite.errors import PathRefused, SandboxDead, SandboxError
from gymsuite.sandbox.box import Answer, Box
from gymsuite.sandbox.cgroups import Usage
from gymsuite.sandbox.channel import Channel
from gymsuite.sandbox.flatten import flatten
from gymsuite.sandbox.image import Frozen, Image
from gymsuite.sandbox.keeper import Keeper
from gymsuite.sandbox.limits import Enforcement
from gymsuite.sandbox.localhost import LocalHost
from gymsuite.sandbox.place import Place, words
from gymsuite.sandbox.resident import Resident, finish
from gymsuite.sandbox.transfer import make

# The exec server shares its processors with what it runs, by the sandbox's CPU limit.
_GRACE_SECONDS = 30.0
_START_SECONDS = 30.0
_ASK_SECONDS = 15.0
_DEEPEST = 32
_ROOM_BYTES = 1 << 20


@dataclass
class Running:
    """A live sandbox."""

    host: LocalHost
    keeper: Keeper
    box: Box
    place: Place
    resident: Resident
    channel: Channel
    _turn: asyncio.Lock = field(default_factory=asyncio.Lock)
    _ended: bool = False

    async def end(self) -> None:
        """End everything in it. Idempotent, and carried through even when cancelled."""
        if not self._ended:
            self._ended = True
            await finish(self._stop())

    async def _stop(self) -> None:
        await self.channel.close()
        self.resident.close()
        # What lies in memory ends with its place at the keeper; a directory may be wanted earlier.
        # A keeper that is gone has taken the sandbox along.
        if not self.place.in_memory:
            with suppress(SandboxError):
                await self.box.ask("stop", within=_ASK_SECONDS)

    @property
    def description(self) -> Mapping[str, object]:
        """What a rollout's record says of its sandbox."""
        image = self.place.image
        enforcement = Enforcement(self.place.quota, self.host.cgroups)
        return {
            "provider": "local",
            "image": image.name,
            "digest": image.digest,
            "base": image.base,
            "python": image.python,
            **enforcement.description("host" if self.place.network else "none"),
        }

    async def upper(self) -> int:
        """Open the directory of what it changed since it last started, as overlayfs keeps it."""
        if self.place.scratch is not None:
            return os.open(self.place.scratch / "upper", os.O_RDONLY | os.O_DIRECTORY)
        return _descriptor(await self.box.ask("upper", within=_ASK_SECONDS))

    async def still(self) -> tuple[int, Image]:
        """End its processes; open the directory of what it changed since, and say above what."""
        async with self._turn:
            await self.channel.kill_all()
            return await self.upper(), self.place.image

    def usage(self) -> Usage:
        """What its cgroups counted."""
        return self.host.cgroups.usage(self.keeper.groups, self.resident.group)

    async def disk_bytes(self) -> int | None:
        """How much it has written that differs from the image that was built, where it counts."""
        if not self.place.in_memory:
            return None
        upper = await self.upper()
        try:
            own = _used_bytes(os.fstatvfs(upper))
        finally:
            os.close(upper)
        return own + sum(frozen.size_bytes for frozen in self.place.image.frozen)

    async def expire(self) -> None:
        """End it when its lifetime is over."""
        seconds = self.place.lifetime_seconds
        if seconds is None:
            return
        await asyncio.sleep(seconds)
        async with self._turn:
            await self.channel.close(f"was ended: its lifetime of {seconds:g} seconds is over")
            with suppress(SandboxError):
                await self.box.ask("stop", within=_ASK_SECONDS)

    async def snapshot(self) -> Image:
        """End its processes, freeze what it changed, and start it again above that."""
        if not self.place.in_memory:
            raise SandboxError(
                "a sandbox that writes to a disk cannot be frozen; memory takes Linux 6.6 or later",
                retryable=False,
            )
        async with self._turn:
            await self.channel.kill_all()
            frozen = (*self.place.image.frozen, await self._freeze())
            if len(self.place.image.layers) + len(frozen) > _DEEPEST:
                frozen = await self._flattened(frozen)
            image = replace(self.place.image, frozen=frozen)
            place = replace(self.place, image=image)
            self.resident.close()
            self.resident, self.channel = await _start(self.host, self.box, place)
            self.place = place
            return image

    async def _freeze(self) -> Frozen:
        # Until it starts anew, what is frozen goes with the box.
        key = secrets.token_hex(8)
        descriptor = _descriptor(await self.box.ask("freeze", key, within=_ASK_SECONDS))
        try:
            await self.channel.close("is being started anew, after a snapshot")
            await self.box.ask("stop", within=_ASK_SECONDS)
            return self._kept(key, descriptor)
        except BaseException:
            os.close(descriptor)
            raise

    async def _flattened(self, frozen: tuple[Frozen, ...]) -> tuple[Frozen, ...]:
        """Copy what was frozen at different times into one, or leave it where that fails."""
        key = secrets.token_hex(8)
        size = sum(layer.size_bytes for layer in frozen) + _ROOM_BYTES
        inodes = sum(layer.inodes for layer in frozen)
        try:
            room = await self.box.ask("room", key, str(size), str(inodes), within=_ASK_SECONDS)
        except SandboxError:
            return frozen
        target = _descriptor(room)
        folders = [layer.descriptor for layer in reversed(frozen)]

        async def copy() -> None:
            await asyncio.to_thread(flatten, folders, target)

        try:
            await finish(copy())
        except BaseException as error:
            os.close(target)
            self.keeper.release(key)
            if isinstance(error, OSError):
                return frozen
            raise
        return (self._kept(key, target),)

    def _kept(self, key: str, descriptor: int) -> Frozen:
        used = os.fstatvfs(descriptor)
        frozen = Frozen(
            key=key,
            keeper=self.keeper.token,
            descriptor=descriptor,
            size_bytes=_used_bytes(used),
            inodes=used.f_files - used.f_ffree,
        )
        weakref.finalize(frozen, _release, self.keeper, key, descriptor, os.getpid())
        return frozen


def _release(keeper: Keeper, key: str, descriptor: int, owner: int) -> None:
    # A process that was forked off has a copy of everything, but nothing is its to give up.
    if os.getpid() == owner:
        os.close(descriptor)
        keeper.release(key)


@asynccontextmanager
async def running(host: LocalHost, place: Place) -> AsyncIterator[Running]:
    """Start a sandbox, and leave nothing of it. Raises `SandboxError`."""
    keeper = host.keeper()
    _check_kept(place.image, keeper)
    box = await keeper.box()
    try:
        resident, channel = await _start(host, box, place)
        sandbox = Running(host, keeper, box, place, resident, channel)
        expiry = asyncio.create_task(sandbox.expire())
        try:
            yield sandbox
        finally:
            expiry.cancel()
            await sandbox.end()
    finally:
        await finish(box.end())


async def _start(host: LocalHost, box: Box, place: Place) -> tuple[Resident, Channel]:
    """Start a sandbox's processes, and wait until its exec server speaks."""
    resident = await Resident.start(box, words(host, place))
    try:
        channel = Channel(await resident.connect(), grace=_GRACE_SECONDS)
        try:
            await channel.open(within=_START_SECONDS)
            if place.image.frozen:
                # Where it cannot be, commands are told so.
                with suppress(PathRefused):
                    await make(channel, place.workdir, b"")
        except BaseException:
            await finish(channel.close())
            raise
    except SandboxDead as error:
        complaint = resident.complaint() or str(error)
        resident.close()
        message = f"no sandbox of image {place.image.name!r}: {complaint}"
        raise SandboxError(message) from error
    except BaseException:
        resident.close()
        raise
    return resident, channel


def _check_kept(image: Image, keeper: Keeper) -> None:
    if any(frozen.keeper != keeper.token for frozen in image.frozen):
        raise SandboxError(
            f"{image.name} is lost: the keeper that had it is gone, or is another process's",
            retryable=False,
        )


def _used_bytes(status: os.statvfs_result) -> int:
    return (status.f_blocks - status.f_bfree) * status.f_frsize


def _descriptor(answer: Answer) -> int:
    if answer.descriptor is None:
        raise SandboxError("the keeper of sandboxes sent no directory")
    return answer.descriptor
