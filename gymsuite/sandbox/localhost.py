"""What this machine offers to `local` sandboxes, and one sandbox from its start to its removal.

Started by root, each gives up every privilege before bubblewrap makes its namespaces: uid 0 inside
would otherwise be root to the host's files.
"""

import asyncio
import os
import subprocess
import tempfile
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from gymsuite.errors import SandboxDead, SandboxError
from gymsuite.sandbox import binary, bubblewrap
from gymsuite.sandbox.bubblewrap import Bubblewrap, Mounts
from gymsuite.sandbox.channel import Channel
from gymsuite.sandbox.image import Image
from gymsuite.sandbox.resident import Resident, finish
from gymsuite.sandbox.scratch import Scratch, remove_tree

START_SECONDS = 30.0
UNPRIVILEGED = 59_847
"""Whom sandboxes and layers belong to when root starts them: a number that no account has."""


@dataclass(frozen=True)
class LocalHost:
    """What was found. `uid` and `gid` are whom layers have to belong to."""

    bwrap: Bubblewrap
    server: Path
    uid: int
    gid: int
    drops: bool
    scratch: Scratch

    @classmethod
    def probe(cls, cache: Path) -> "LocalHost":
        """Find everything, and try it once. Raises `SandboxError` that names the way out."""
        try:
            server = binary.exec_server()
        except FileNotFoundError as error:
            raise SandboxError(str(error), retryable=False) from error
        drops = os.geteuid() == 0
        host = cls(
            bwrap=bubblewrap.find(),
            server=server,
            uid=UNPRIVILEGED if drops else os.getuid(),
            gid=UNPRIVILEGED if drops else os.getgid(),
            drops=drops,
            scratch=Scratch.make(cache / "live"),
        )
        try:
            _try(host)
        except BaseException:
            host.close()
            raise
        return host

    def close(self) -> None:
        """Remove what this process kept on disk for its sandboxes."""
        self.scratch.close()

    def command(self, mounts: Mounts, *, network: bool, processes: int) -> list[str]:
        """The command line of a sandbox."""
        program, home = self.bwrap.program, self.bwrap.home
        if not self.drops:
            inner = bubblewrap.arguments(
                mounts, self.server, str, network=network, processes=processes
            )
            return [str(program), *inner]
        names: dict[Path, str] = {}

        def at(path: Path) -> str:
            return f"{_STAGE}/{names.setdefault(path, str(len(names)))}"

        inner = bubblewrap.arguments(mounts, self.server, at, network=network, processes=processes)
        staged = f"{at(home)}/{program.relative_to(home)}"
        binds = [part for path, name in names.items() for part in ("--bind", str(path), name)]
        ids = ("--uid", str(self.uid), "--gid", str(self.gid))
        return [str(self.server), "launch", *ids, *binds, "--", staged, *inner]


_STAGE = "/tmp"  # noqa: S108 - a mount of the launcher's own, in a namespace of its own


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

    def _covered(self, target: str) -> bool:
        return any(Path(target).is_relative_to(path) for path in self.image.binds)

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


@dataclass
class Running:
    """A live sandbox: its channel, its process, and its overlay's upper directory."""

    channel: Channel
    resident: Resident
    upper: Path
    ended: bool = field(default=False)

    async def end(self) -> None:
        """End everything in it. Idempotent; to its end even when cancelled."""
        if not self.ended:
            self.ended = True
            await finish(self._end())

    async def _end(self) -> None:
        await self.channel.close()
        await self.resident.end()


@asynccontextmanager
async def running(host: LocalHost, place: Place) -> AsyncIterator[Running]:
    """Start a sandbox, and leave nothing of it. Raises `SandboxError`."""
    directory, mounts = _make_directories(host, place)
    try:
        command = host.command(mounts, network=place.network, processes=place.processes)
        sandbox = await _start(command, mounts.upper)
        try:
            await _greet(sandbox, place)
            yield sandbox
        finally:
            await sandbox.end()
    finally:
        await finish(_remove(directory))


async def _start(command: list[str], upper: Path) -> Running:
    try:
        resident = Resident(command)
    except OSError as error:
        raise SandboxError(f"cannot start {command[0]}: {error}") from error
    return Running(Channel(await resident.connect()), resident, upper)


async def _greet(sandbox: Running, place: Place) -> None:
    try:
        await sandbox.channel.open(within=START_SECONDS)
    except SandboxDead as error:
        complaint = sandbox.resident.complaint() or str(error)
        raise SandboxError(f"a sandbox of image {place.image.name!r}: {complaint}") from error


def _make_directories(host: LocalHost, place: Place) -> tuple[Path, Mounts]:
    try:
        directory = Path(tempfile.mkdtemp(dir=host.scratch.path))
        mounts = Mounts(
            layers=place.image.layers,
            upper=directory / "upper",
            work=directory / "work",
            binds=place.binds,
            workdir=place.workdir,
        )
        for path in (mounts.upper, mounts.work):
            path.mkdir()
            path.chmod(0o755)
        if host.drops:
            for path in (directory, mounts.upper, mounts.work):
                os.chown(path, host.uid, host.gid)
    except OSError as error:
        raise SandboxError(f"cannot prepare a sandbox's directory: {error}") from error
    return directory, mounts


async def _remove(directory: Path) -> None:
    # What cannot be removed now is removed when the next process starts; the cause goes first.
    with suppress(OSError):
        await asyncio.to_thread(remove_tree, directory)


def _try(host: LocalHost) -> None:
    """Start a sandbox whose channel is closed already, so that it ends at once."""
    image = Image(name="probe", digest="", base="", layers=())
    directory, mounts = _make_directories(host, Place(image, {}, "/", 0))
    layer = directory / "layer"
    layer.mkdir()
    try:
        command = host.command(
            Mounts((layer,), mounts.upper, mounts.work, (), "/"), network=False, processes=0
        )
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=START_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise SandboxError(f"no sandbox can be started here: {error}", retryable=False) from error
    finally:
        remove_tree(directory)
    if done.returncode or not done.stdout:
        complaint = done.stderr.decode(errors="replace").strip()
        raise SandboxError(f"no sandbox can be started here: {complaint}. {_HOW}", retryable=False)


_HOW = (
    "The local provider needs unprivileged user namespaces (user.max_user_namespaces above 0, and"
    " not restricted by AppArmor); or use the docker provider"
)
