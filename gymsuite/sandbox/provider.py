"""Opens a provider by name, or the first that works on this machine."""

import contextlib
import difflib
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from gymsuite.errors import DefinitionError, SandboxError, UsageError
from gymsuite.sandbox.admission import Admission, Counters
from gymsuite.sandbox.egress.dialing import Dialer
from gymsuite.sandbox.egress.inside import way_out
from gymsuite.sandbox.image import Image
from gymsuite.sandbox.images import Images, layer_owner
from gymsuite.sandbox.local import LocalHost, open_local
from gymsuite.sandbox.protocol import OpenSandbox, Sandbox
from gymsuite.sandbox.scratch import Scratches
from gymsuite.sandbox.store import Report, Store
from gymsuite.types import SandboxSpec

PROVIDERS = ("local", "local:debian", "docker")


@dataclass(frozen=True)
class Provider:
    """What makes sandboxes. `ensure` builds an image ahead of its first sandbox.

    `counters` says how many sandboxes are open, and how many wait for their turn. `open` and
    `ensure` raise `DefinitionError` for an image that is wrong, and `SandboxError` for a machine
    that cannot do it.
    """

    name: str
    open: OpenSandbox
    ensure: Callable[[str], Awaitable[Image]]
    counters: Callable[[], Counters] = Counters


@dataclass(frozen=True)
class _Workplace:
    image_roots: tuple[Path, ...]
    cache: Path
    report: Report
    dialer: Dialer


@asynccontextmanager
async def open_provider(  # noqa: PLR0913 - most callers need two
    name: str | None,
    *,
    image_roots: Sequence[Path],
    cache: Path,
    report: Report = lambda _: None,
    admission: Admission | None = None,
    dialer: Dialer | None = None,
) -> AsyncIterator[Provider]:
    """Open a provider of `PROVIDERS`; None takes `local`, or else `docker`.

    `docker:RUNTIME` runs containers in another of the Engine's runtimes, such as runsc or kata.
    Raises `SandboxError` that names the reason and the way out where it does not work here. There
    is no silent fall back to running commands without a sandbox.

    Sandboxes wait for their turn where this machine cannot carry more of them at once. Give several
    providers one `admission` where they share a machine, or `Admission.unlimited()`. `dialer` is
    how the hosts are reached that a sandbox's spec lists; by default over the internet.
    """
    place = _Workplace(tuple(image_roots), cache, report, dialer or Dialer())
    admission = admission or Admission()
    async with AsyncExitStack() as stack:
        if name is None:
            provider = await _first_that_works(place, stack)
        else:
            provider = await stack.enter_async_context(_by_name(name, place))
        yield replace(
            provider,
            open=admission.gate(provider.open),
            counters=lambda: admission.counters,
        )


def _by_name(name: str, place: _Workplace) -> AbstractAsyncContextManager[Provider]:
    match name:
        case "local":
            return _local(name, "host", place)
        case "local:debian":
            return _local(name, "debian", place)
        case "docker":
            return _docker("", place)
        case str() if name.startswith("docker:") and name != "docker:":
            return _docker(name.removeprefix("docker:"), place)
    close = difflib.get_close_matches(name, PROVIDERS, n=1)
    hint = f"did you mean {close[0]!r}?" if close else f"there are: {', '.join(PROVIDERS)}"
    raise UsageError(f"no sandbox provider {name!r}; {hint}")


async def _first_that_works(place: _Workplace, stack: AsyncExitStack) -> Provider:
    reasons: list[str] = []
    for name in ("local", "docker"):
        try:
            return await stack.enter_async_context(_by_name(name, place))
        except SandboxError as error:
            reasons.append(f"{name}: {error}")
    raise SandboxError(
        "\n  ".join(["no sandbox can be made on this machine", *reasons]), retryable=False
    )


@asynccontextmanager
async def _local(name: str, base: str, place: _Workplace) -> AsyncIterator[Provider]:
    with contextlib.closing(LocalHost.probe(place.cache)) as host:
        images = Images(place.image_roots, place.cache, report=place.report, host=host)
        with contextlib.closing(images):

            async def ensure(image: str) -> Image:
                return host.snapshots.find(image) or await images.ensure(image, base=base)

            @asynccontextmanager
            async def open_(spec: SandboxSpec) -> AsyncIterator[Sandbox]:
                image = await ensure(spec.image)
                async with (
                    way_out(spec, place.dialer, host.scratches) as out,
                    open_local(host, image, out.spec, sockets=out.sockets) as sandbox,
                ):
                    yield await out.join(sandbox)

            yield Provider(name, open_, ensure)


@asynccontextmanager
async def _docker(runtime: str, place: _Workplace) -> AsyncIterator[Provider]:
    # docker-py costs a tenth of a second, and most processes never need it.
    from gymsuite.sandbox.container import open_docker  # noqa: PLC0415 - see above
    from gymsuite.sandbox.dockerbuild import DockerBuild  # noqa: PLC0415 - see above
    from gymsuite.sandbox.fleet import Fleet  # noqa: PLC0415 - see above

    store = Store(place.cache.absolute(), layer_owner())
    async with Fleet.connect(store, place.report, runtime=runtime) as fleet:
        steps = DockerBuild(fleet.host).run
        images = Images(place.image_roots, place.cache, report=place.report, otherwise=steps)
        with (
            contextlib.closing(images),
            contextlib.closing(Scratches(place.cache / "live")) as scratches,
        ):

            async def ensure(image: str) -> Image:
                snapshot = fleet.snapshots.find(image)
                if snapshot is not None:
                    return snapshot
                built = await images.ensure(image, base="debian")
                if built.base == "host":
                    raise DefinitionError(
                        f"image {image!r} starts FROM host, which only the local provider can run;"
                        " write 'ARG BASE=host' and 'FROM ${BASE}' to have it on both"
                    )
                await fleet.host.ensure(built)
                return built

            @asynccontextmanager
            async def open_(spec: SandboxSpec) -> AsyncIterator[Sandbox]:
                image = await ensure(spec.image)
                async with (
                    way_out(spec, place.dialer, scratches) as out,
                    open_docker(fleet, image, out.spec, sockets=out.sockets) as sandbox,
                ):
                    yield await out.join(sandbox)

            yield Provider(fleet.host.provider, open_, ensure)
