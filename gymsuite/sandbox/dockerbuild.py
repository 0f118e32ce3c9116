"""Runs the RUN steps of images in containers, for machines where no local sandbox can be made.

What a step changed is the top layer of the container's image, which Docker saves and we unpack: the
result is the same layer, under the same name, as a local sandbox would have made.
"""

import asyncio
import contextlib
import tempfile
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from docker.api import APIClient
from docker.errors import NotFound

from gymsuite.errors import DefinitionError, SandboxError
from gymsuite.sandbox.creations import creating
from gymsuite.sandbox.decompressing import Budget
from gymsuite.sandbox.disk import free_bytes
from gymsuite.sandbox.dockerhost import DockerHost, tag_of
from gymsuite.sandbox.image import Image
from gymsuite.sandbox.image_archive import open_archive
from gymsuite.sandbox.images import BUILD_ENV
from gymsuite.sandbox.manifests import read_manifest
from gymsuite.sandbox.prepared import new_name
from gymsuite.sandbox.protocol import ExecResult
from gymsuite.sandbox.reaper import labels
from gymsuite.sandbox.resident import finish
from gymsuite.sandbox.resolver import network_binds
from gymsuite.sandbox.store import Report, Store
from gymsuite.sandbox.trees import remove_mount_points
from gymsuite.sandbox.unpacking import unpack

_SECONDS = 1800.0
_POLL_SECONDS = 0.2
_SHOWN_LINES = 200
_MOST_ENTRIES = 2_000_000
# Docker mounts these over whatever the image has.
_MOUNTED = ("/etc/hosts", "/etc/hostname", "/etc/resolv.conf")


class _Step(NamedTuple):
    image: Image
    command: str | Sequence[str]
    network: str
    binds: Sequence[tuple[Path, str]]


@dataclass(frozen=True)
class DockerBuild:
    """An Engine that builds for a store."""

    host: DockerHost

    async def run(self, image: Image, command: str | Sequence[str], tree: Path) -> ExecResult:
        """Run a command on top of an image, and unpack what it changed into an empty tree."""
        _check(image)
        tag, engine = tag_of(image), self.host.engine
        known = await engine.has_image(tag)
        await self.host.ensure(image)
        network = await engine.ask("list networks", _network)
        if network == "host":
            self.host.report(f"{image.name}: Docker has no bridge, so this uses the host's network")
        binds = [bind for bind in network_binds() if bind[1] != "/etc/resolv.conf"]
        name = new_name("build")

        def start(client: APIClient) -> None:
            _create(client, name, _Step(image, command, network, binds))
            client.start(name)

        began = time.monotonic()
        try:
            with creating(self.host.store.cache, name):
                await engine.ask(f"run a step of {image.name}", start)
            ended = await self._wait(name)
            if ended.exit_code == 0 and not ended.timed_out:
                await engine.ask("save a step", lambda c: _save(c, name, tree), within=_SECONDS)
                targets = [*_MOUNTED, *(target for _, target in binds)]
                await asyncio.to_thread(remove_mount_points, tree, targets)
            return ended._replace(wall_seconds=time.monotonic() - began)
        finally:
            await finish(self._tidy(name, "" if known else tag))

    async def keep(self, image: Image) -> None:
        """Have an image in the Engine, ready to run."""
        _check(image)
        await self.host.ensure(image)

    async def _wait(self, container: str) -> ExecResult:
        """Wait for the end of a container, or of its time."""
        end = time.monotonic() + _SECONDS
        while time.monotonic() < end:
            ended = await self.host.engine.ask("look at a step", lambda c: _look(c, container))
            if ended is not None:
                return ended
            await asyncio.sleep(_POLL_SECONDS)
        return ExecResult(137, b"", b"", timed_out=True)

    async def _tidy(self, container: str, tag: str) -> None:
        await self.host.engine.remove(container)
        if tag:
            # Steps in between would fill the Engine with images that nobody runs.
            self.host.imported.discard(tag)
            await self.host.engine.remove_image(tag)


@asynccontextmanager
async def open_docker_build(store: Store, report: Report) -> AsyncIterator[DockerBuild]:
    """Connect to the Engine. Raises `SandboxError` where there is none."""
    async with DockerHost.connect(store, report) as host:
        yield DockerBuild(host)


def _check(image: Image) -> None:
    if image.base == "host":
        raise DefinitionError(
            f"image {image.name!r} starts FROM host, which is this machine, and Docker cannot run;"
            " write 'ARG BASE=host' and 'FROM ${BASE}' to have it on both"
        )


def _create(client: APIClient, name: str, step: _Step) -> None:
    image, command = step.image, step.command
    client.create_container(
        tag_of(image),
        ["/bin/sh", "-c", command] if isinstance(command, str) else [*command],
        name=name,
        environment={**image.env, **BUILD_ENV},
        working_dir=image.workdir,
        user=image.user,
        labels=labels(2 * _SECONDS),
        host_config=client.create_host_config(
            network_mode=step.network,
            binds=[f"{path}:{target}:ro" for path, target in step.binds],
        ),
    )


def _look(client: APIClient, container: str) -> ExecResult | None:
    state = client.inspect_container(container)["State"]
    if state["Status"] not in {"exited", "dead"}:
        return None
    output = client.logs(container, tail=_SHOWN_LINES)
    return ExecResult(int(state["ExitCode"]), output, b"", oom=bool(state["OOMKilled"]))


def _network(client: APIClient) -> str:
    names = {network["Name"] for network in client.networks()}
    return "bridge" if "bridge" in names else "host"


def _save(client: APIClient, container: str, tree: Path) -> None:
    """Unpack the top layer of what a container has become."""
    number = str(client.commit(container)["Id"])
    budget = Budget(free_bytes(tree), _MOST_ENTRIES)
    try:
        with tempfile.NamedTemporaryFile(dir=tree.parent) as saved:
            for data in client.get_image(number):
                saved.write(data)
            saved.flush()
            with open_archive(Path(saved.name), tree.parent, budget) as archive:
                top = read_manifest(archive, "").layers[-1]
                file = archive.open(top.name)
                if file is None:
                    raise SandboxError(f"Docker saved no {top.name}")
                with file:
                    unpack(file, tree, budget, lambda: False)
    finally:
        with contextlib.suppress(NotFound):
            client.remove_image(number, noprune=True)
