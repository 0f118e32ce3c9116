"""Real sandboxes of every provider, opened by the same fixtures."""

import asyncio
import contextlib
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from docker.client import DockerClient

from gymsuite import OpenSandbox, Sandbox, SandboxSpec
from gymsuite.errors import SandboxError
from gymsuite.registry import Registry
from gymsuite.sandbox.conformance.recipe import UPPER, write_workspace
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
    session: Callable[[], AbstractAsyncContextManager[OpenSandbox]]
    """Opens it once for many sandboxes, whose snapshots it knows."""


@dataclass(frozen=True)
class Opened:
    """A provider that stays open from test to test, and the loop that it lives in."""

    name: str
    runner: asyncio.Runner
    open: OpenSandbox


def missing(what: str, reason: str) -> None:
    """Skip for want of a provider, but never where the tests are the gate."""
    if os.environ.get("CI"):
        pytest.fail(f"{what} is needed here: {reason}")
    pytest.skip(f"{what}: {reason}")


@pytest.fixture
def client() -> Iterator[DockerClient]:
    """Of Docker Engine, to look past us at what there is."""
    with contextlib.closing(DockerClient.from_env()) as client:
        yield client


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
    (upper / "workspace/layered.txt").write_bytes(UPPER)
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


@pytest.fixture(scope="session")
def local(local_host: LocalHost, local_image: Image) -> Provider:
    @asynccontextmanager
    async def open_(spec: SandboxSpec) -> AsyncIterator[Sandbox]:
        image = local_host.snapshots.find(spec.image) or local_image
        async with open_local(local_host, image, spec) as sandbox:
            yield sandbox

    @asynccontextmanager
    async def session() -> AsyncIterator[OpenSandbox]:
        yield open_

    def kill(sandbox: Sandbox) -> None:
        assert isinstance(sandbox, LocalSandbox)
        os.kill(sandbox.pid, 9)

    return Provider("local", open_, kill, session)


@pytest.fixture(scope="session")
def docker_roots(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, ...]:
    """Where the docker provider's images are: the suite's, and the same fixture as a recipe."""
    recipe = tmp_path_factory.mktemp("sandboxes") / "fixture"
    write_workspace(recipe / "lower")
    (recipe / "layered.txt").write_bytes(UPPER)
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


@pytest.fixture(scope="session")
def docker(docker_roots: tuple[Path, ...]) -> Provider:
    @asynccontextmanager
    async def session() -> AsyncIterator[OpenSandbox]:
        opening = open_provider("docker", image_roots=docker_roots, cache=default_cache())
        async with opening as provider:
            yield provider.open

    @asynccontextmanager
    async def open_(spec: SandboxSpec) -> AsyncIterator[Sandbox]:
        async with session() as open_sandbox, open_sandbox(spec) as sandbox:
            yield sandbox

    def kill(sandbox: Sandbox) -> None:
        assert isinstance(sandbox, DockerSandbox)
        with contextlib.closing(DockerClient.from_env()) as client:
            client.api.kill(sandbox.name)

    return Provider("docker", open_, kill, session)


BOTH = [
    pytest.param("local", marks=pytest.mark.local),
    pytest.param("docker", marks=pytest.mark.docker),
]


@pytest.fixture(params=BOTH)
def provider(request: pytest.FixtureRequest) -> Provider:
    """Each provider in turn; its fixture has its name."""
    found: Provider = request.getfixturevalue(request.param)
    return found


@pytest.fixture(scope="module", params=BOTH)
def opened(request: pytest.FixtureRequest) -> Iterator[Opened]:
    """Each provider in turn, opened once for all tests of a module."""
    found: Provider = request.getfixturevalue(request.param)
    with asyncio.Runner() as runner:
        session = found.session()
        yield Opened(found.name, runner, runner.run(session.__aenter__()))
        runner.run(session.__aexit__(None, None, None))


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
