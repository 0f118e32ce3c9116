"""Real sandboxes of every provider, opened by the same fixtures."""

import asyncio
import contextlib
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from docker.client import DockerClient

from gymsuite import OpenSandbox, Sandbox, SandboxSpec
from gymsuite.errors import SandboxError
from gymsuite.registry import Registry
from gymsuite.sandbox.container import DockerSandbox
from gymsuite.sandbox.host import host_base
from gymsuite.sandbox.image import Image
from gymsuite.sandbox.local import LocalHost, LocalSandbox, open_local
from gymsuite.sandbox.provider import open_provider
from gymsuite.sandbox.trees import Owner, settle
from gymsuite.suite import default_cache, suite_root

InSandbox = Callable[[Callable[[Sandbox], Awaitable[Any]]], Any]
InSuite = Callable[[Callable[[OpenSandbox], Awaitable[Any]]], Any]


@dataclass(frozen=True)
class Provider:
    """How to open a sandbox, and how to break one from outside."""

    name: str
    open: OpenSandbox
    kill: Callable[[Sandbox], None]


def missing(what: str, reason: str) -> None:
    """Skip for want of a provider, but never where the tests are the gate."""
    if os.environ.get("CI"):
        pytest.fail(f"{what} is needed here: {reason}")
    pytest.skip(f"{what}: {reason}")


@pytest.fixture(scope="session")
def local_host(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalHost]:
    try:
        host = LocalHost.probe(tmp_path_factory.mktemp("cache"))
    except SandboxError as error:
        missing("the local provider", str(error))
        raise
    yield host
    host.close()


@pytest.fixture(scope="session")
def local_image(local_host: LocalHost, tmp_path_factory: pytest.TempPathFactory) -> Image:
    """An image with something to edit, in two layers."""
    lower, upper = tmp_path_factory.mktemp("lower"), tmp_path_factory.mktemp("upper")
    base = host_base()

    async def make() -> str:
        return await base.make(lower)

    python = asyncio.run(make())
    write_workspace(lower / "workspace")
    settle(lower, Owner(local_host.uid, local_host.gid))
    (upper / "workspace").mkdir()
    (upper / "workspace/layered.txt").write_text("from the upper layer\n")
    settle(upper, Owner(local_host.uid, local_host.gid))
    return Image(
        name="fixture",
        digest="0" * 64,
        base="host",
        layers=(lower, upper),
        binds=base.binds,
        env=base.env,
        python=python,
    )


def write_workspace(workspace: Path) -> None:
    """Fill the directory that the tests of changes start from."""
    files = {
        "plain.txt": b"plain\n",
        "script.sh": b"#!/bin/sh\necho ran\n",
        "binary.dat": bytes(range(256)),
        "layered.txt": b"from the lower layer\n",
        "tree/one.txt": b"one\n",
        "tree/deep/two.txt": b"two\n",
        "tree/.git/config": b"[core]\n",
    }
    for name, data in files.items():
        path = workspace / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    (workspace / "link").symlink_to("plain.txt")


@pytest.fixture
def local(local_host: LocalHost, local_image: Image) -> Provider:
    @asynccontextmanager
    async def open_(spec: SandboxSpec) -> AsyncIterator[Sandbox]:
        async with open_local(local_host, local_image, spec) as sandbox:
            yield sandbox

    def kill(sandbox: Sandbox) -> None:
        assert isinstance(sandbox, LocalSandbox)
        os.kill(sandbox.pid, 9)

    return Provider("local", open_, kill)


@pytest.fixture(scope="session")
def docker_roots(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, ...]:
    """Where the docker provider's images are: the suite's, and the same fixture as a recipe."""
    recipe = tmp_path_factory.mktemp("sandboxes") / "fixture"
    write_workspace(recipe / "lower")
    (recipe / "layered.txt").write_text("from the upper layer\n")
    (recipe / "Dockerfile").write_text(
        "FROM debian\nCOPY lower /workspace\nCOPY layered.txt /workspace/\n"
    )
    roots = (recipe.parent, suite_root() / "sandboxes")

    async def check() -> None:
        async with open_provider("docker", image_roots=roots, cache=default_cache()) as provider:
            await provider.ensure("fixture")

    try:
        asyncio.run(check())
    except SandboxError as error:
        missing("the docker provider", str(error))
    return roots


@pytest.fixture
def docker(docker_roots: tuple[Path, ...]) -> Provider:
    @asynccontextmanager
    async def open_(spec: SandboxSpec) -> AsyncIterator[Sandbox]:
        opening = open_provider("docker", image_roots=docker_roots, cache=default_cache())
        async with opening as provider, provider.open(spec) as sandbox:
            yield sandbox

    def kill(sandbox: Sandbox) -> None:
        assert isinstance(sandbox, DockerSandbox)
        with contextlib.closing(DockerClient.from_env()) as client:
            client.api.kill(sandbox.name)

    return Provider("docker", open_, kill)


@pytest.fixture(
    params=[
        pytest.param("local", marks=pytest.mark.local),
        pytest.param("docker", marks=pytest.mark.docker),
    ]
)
def provider(request: pytest.FixtureRequest) -> Provider:
    """Each provider in turn; its fixture has its name."""
    found: Provider = request.getfixturevalue(request.param)
    return found


@pytest.fixture
def in_sandbox(provider: Provider) -> InSandbox:
    """Run a test's body over a fresh sandbox."""

    def run(body: Callable[[Sandbox], Awaitable[Any]]) -> Any:
        async def main() -> Any:
            # Some bodies make more files than a sandbox may have by default.
            spec = SandboxSpec(image="fixture", inodes=300_000)
            async with provider.open(spec) as sandbox:
                return await body(sandbox)

        return asyncio.run(main())

    return run


@pytest.fixture(params=[pytest.param("local", marks=pytest.mark.local)])
def in_suite(request: pytest.FixtureRequest) -> InSuite:
    """Run a test's body over sandboxes of the suite's own images, built where they are not yet."""

    def run(body: Callable[[OpenSandbox], Awaitable[Any]]) -> Any:
        async def main() -> Any:
            roots = Registry.default().image_roots
            async with open_provider(
                request.param, image_roots=roots, cache=default_cache()
            ) as provider:
                return await body(provider.open)

        try:
            return asyncio.run(main())
        except SandboxError as error:
            if error.retryable:
                raise
            return missing(f"the {request.param} provider", str(error))

    return run
