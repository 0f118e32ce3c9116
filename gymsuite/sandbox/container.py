"""The `docker` provider: sandboxes as containers of a local Docker Engine.

The Engine makes and removes a container; all else goes through the exec server, its first process.
"""

import asyncio
import contextlib
import os
import secrets
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from gymsuite.errors import SandboxDead, SandboxError
from gymsuite.sandbox import binary, docker
from gymsuite.sandbox.attach import AttachStream
from gymsuite.sandbox.channel import Channel
from gymsuite.sandbox.differences import differences
from gymsuite.sandbox.docker import Engine
from gymsuite.sandbox.engine import Capabilities, Wish
from gymsuite.sandbox.image import Image
from gymsuite.sandbox.layers import lookup
from gymsuite.sandbox.locks import exclusive
from gymsuite.sandbox.owner import is_gone, this_process
from gymsuite.sandbox.protocol import DEFAULT_FILE_BYTES, Changes, Sandbox
from gymsuite.sandbox.resident import finish
from gymsuite.sandbox.store import Report, Store
from gymsuite.sandbox.tarball import tar_stream
from gymsuite.sandbox.verbs import Verbs
from gymsuite.types import SandboxSpec

OWNER_LABEL = "gymsuite.owner"

_START_SECONDS = 60.0
_GRACE_SECONDS = 30.0
_PREPARE_SECONDS = 60.0
_STARTS_PER_PROCESSOR = 2
_OVER = frozenset({"exited", "dead"})


@dataclass
class DockerHost:
    """An Engine that is ready to run images of a store."""

    engine: Engine
    capabilities: Capabilities
    server: Path
    store: Store
    report: Report
    starts: asyncio.Semaphore
    imported: set[str] = field(default_factory=set)

    @classmethod
    @asynccontextmanager
    async def connect(cls, store: Store, report: Report) -> AsyncIterator["DockerHost"]:
        """Connect to the Engine, and remove what dead processes left there."""
        try:
            server = binary.exec_server()
        except FileNotFoundError as error:
            raise SandboxError(str(error), retryable=False) from error
        async with docker.connect() as engine:
            capabilities = await engine.capabilities()
            # The Engine starts few at a time whatever it is asked, and the rest would wait there.
            starts = asyncio.Semaphore(_STARTS_PER_PROCESSOR * (os.cpu_count() or 1))
            await reap(engine)
            yield cls(engine, capabilities, server, store, report, starts)

    async def ensure(self, image: Image) -> None:
        """Have an image in the Engine, imported once by whoever comes first."""
        tag = tag_of(image)
        if tag in self.imported:
            return
        if not await self.engine.has_image(tag):
            path = self.store.lock(f"docker-{image.digest}")
            lock = await exclusive(path, waiting=lambda: self.report(f"waiting for {tag}"))
            with contextlib.closing(lock):
                if not await self.engine.has_image(tag):
                    self.report(f"{image.name}: importing into Docker")
                    await self.engine.import_image(tag, tar_stream(image.layers))
        self.imported.add(tag)


def tag_of(image: Image) -> str:
    """What an image is called in the Engine."""
    return f"gymsuite/{image.name}:{image.digest[:16]}"


async def held() -> list[str]:
    """Name the containers of this process."""
    async with docker.connect() as engine:
        found = await engine.containers(OWNER_LABEL)
    return [c.name for c in found if c.labels[OWNER_LABEL] == this_process()]


async def reap(engine: Engine) -> list[str]:
    """Remove containers whose owner has ended, and return their names."""
    found = await engine.containers(OWNER_LABEL)
    gone = [c.name for c in found if c.state in _OVER or is_gone(c.labels[OWNER_LABEL])]
    for name in gone:
        await _remove(engine, name)
    return gone


@asynccontextmanager
async def open_docker(host: DockerHost, image: Image, spec: SandboxSpec) -> AsyncIterator[Sandbox]:
    """Open a fresh sandbox of an image that was ensured, and remove it on exit.

    Raises `SandboxError`.
    """
    image.check_architecture()
    name = f"gymsuite-{image.name}-{secrets.token_hex(8)}"
    try:
        async with host.starts:
            channel = await _start(host, image, spec, name)
        try:
            sandbox = DockerSandbox(host, channel, image, spec, name)
            await sandbox.prepare()
            yield sandbox
        finally:
            await finish(channel.close())
    finally:
        await finish(_remove(host.engine, name))


async def _start(host: DockerHost, image: Image, spec: SandboxSpec, name: str) -> Channel:
    connection = await host.engine.start(
        Wish(
            name=name,
            image=tag_of(image),
            server=host.server,
            labels={OWNER_LABEL: this_process()},
            memory_bytes=spec.memory_bytes,
            cpus=min(spec.cpus, host.capabilities.processors),
            pids=spec.pids,
        )
    )
    stream = await AttachStream.open(connection)
    # The exec server shares its processors with what it runs, by the container's CPU limit.
    channel = Channel(stream, grace=_GRACE_SECONDS)
    try:
        await channel.open(within=_START_SECONDS)
    except SandboxDead as error:
        await finish(channel.close())
        raise SandboxError(
            f"the exec server did not start in a container of {image.name!r}:"
            f" {stream.complaint or error}"
        ) from error
    except BaseException:
        await finish(channel.close())
        raise
    return channel


async def _remove(engine: Engine, name: str) -> None:
    # What cannot be removed now is removed when a later process starts; the cause comes first.
    with contextlib.suppress(SandboxError):
        await engine.remove(name)


class DockerSandbox:
    """One container."""

    def __init__(
        self, host: DockerHost, channel: Channel, image: Image, spec: SandboxSpec, name: str
    ) -> None:
        self.name = name
        self._host = host
        self._channel = channel
        self._image = image
        self._spec = spec
        named = "workdir" in spec.model_fields_set
        workdir = spec.workdir if named else image.workdir
        self._verbs = Verbs(channel, {**image.env, **spec.env}, workdir)
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
        able = self._host.capabilities
        cpus = min(self._spec.cpus, able.processors)
        return {
            "provider": "docker",
            "image": self._image.name,
            "digest": self._image.digest,
            "base": self._image.base,
            "python": self._image.python,
            "limits": {
                "network": "none",
                "pids": self._spec.pids if able.pids else None,
                "memory_bytes": self._spec.memory_bytes if able.memory else None,
                "cpus": cpus if able.cpus else None,
                "disk_bytes": None,
            },
        }

    async def prepare(self) -> None:
        """Make the workdir, where the image has none."""
        if lookup(self._image.layers, self._verbs.workdir) is not None:
            return
        command = ["mkdir", "-p", self._verbs.workdir]
        result = await self._channel.exec(command, timeout=_PREPARE_SECONDS, env=self._verbs.env)
        if result.exit_code != 0:
            raise SandboxError(
                f"cannot make {self._verbs.workdir}: {result.output}", retryable=False
            )

    async def changes(self, root: str, *, max_bytes: int = DEFAULT_FILE_BYTES) -> Changes:
        """Say what differs from the image below `root`; paths are absolute, inside.

        Ends every process first. Which paths differ is the Engine's word, not the container's.
        """
        await self._channel.kill_all()
        found = await self._host.engine.diff(self.name)
        return await differences(
            self._image, found, self._channel.state, self._verbs.inside(root), max_bytes
        )

    async def snapshot(self) -> Image:
        """See `Sandbox.snapshot`."""
        raise SandboxError("snapshot is not offered by this provider", retryable=False)
