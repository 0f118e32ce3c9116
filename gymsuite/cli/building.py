"""`gymsuite sandbox build` and `import`: make an image, and say what it is made of."""

import contextlib
import difflib
import json
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from pathlib import Path
from typing import Annotated, NamedTuple

import typer
from rich import box
from rich.console import Console
from rich.table import Table

from gymsuite.cli.loop import run
from gymsuite.cli.options import (
    CacheOption,
    JsonOption,
    RegistryOption,
    cache_folder,
    open_registry,
)
from gymsuite.cli.plain import plain
from gymsuite.errors import UsageError
from gymsuite.sandbox import folders
from gymsuite.sandbox.build import RunCommand
from gymsuite.sandbox.disk import read_size, show_size
from gymsuite.sandbox.image import Image
from gymsuite.sandbox.images import Images, layer_owner
from gymsuite.sandbox.importing import Import, import_image
from gymsuite.sandbox.records import Layer
from gymsuite.sandbox.store import Report, Store

_BASES = ("host", "debian")
_PROVIDERS = ("local", "docker")
_DIGEST_CHARACTERS = 12
_SIZE_CHARACTERS = 9


def build(
    name: Annotated[str, typer.Argument(metavar="NAME", help="A folder of sandboxes/.")],
    *,
    base: Annotated[
        str | None,
        typer.Option(
            metavar="BASE", help="host or debian, for FROM ${BASE}; what fits if not given."
        ),
    ] = None,
    provider: Annotated[
        str, typer.Option(metavar="NAME", help="What runs RUN steps: local or docker.")
    ] = "local",
    build_arg: Annotated[
        list[str] | None,
        typer.Option("--build-arg", metavar="NAME=VALUE", help="For an ARG; may be repeated."),
    ] = None,
    cache: CacheOption = None,
    as_json: JsonOption = False,
    registry: RegistryOption = None,
) -> None:
    """Build an image; steps that were built before are found again."""
    _check("provider", provider, _PROVIDERS)
    wanted = base or ("debian" if provider == "docker" else "host")
    _check("base", wanted, _BASES)
    if (provider, wanted) == ("docker", "host"):
        raise UsageError("the host base is this machine, which Docker cannot run: --base debian")
    arguments = dict(map(_pair, build_arg or ()))
    roots, folder = open_registry(registry).image_roots, cache_folder(cache)
    report = _reporter(quiet=as_json)
    began = time.monotonic()

    async def work() -> tuple[Image, list[Layer]]:
        async with contextlib.AsyncExitStack() as stack:
            store = Store(folder.absolute(), layer_owner())
            way = await stack.enter_async_context(_way(provider, store, report))
            images = Images(roots, folder, report=report, run=way.run)
            stack.enter_context(contextlib.closing(images))
            image = await images.ensure(name, base=wanted, arguments=arguments)
            await way.keep(image)
            if base is not None and image.base != base:
                report(f"{name} starts from {image.base}: its Dockerfile has no FROM ${{BASE}}")
            return image, _layers(images.store, image)

    image, layers = run(work())
    _present(image, layers, time.monotonic() - began, as_json=as_json)


def import_(
    source: Annotated[
        Path,
        typer.Argument(metavar="FILE_OR_DIR", help="A `docker save` tar, or an OCI image layout."),
    ],
    *,
    name: Annotated[str, typer.Option(metavar="NAME", help="What it is called from now on.")],
    tag: Annotated[
        str, typer.Option(metavar="TAG", help="Which image, where there are several.")
    ] = "",
    user: Annotated[
        str | None,
        typer.Option(metavar="USER", help="Whom commands run as, in place of the image's own."),
    ] = None,
    max_size: Annotated[
        str | None,
        typer.Option(metavar="SIZE", help="The most it may unpack to, such as 10G; the free disk."),
    ] = None,
    cache: CacheOption = None,
    as_json: JsonOption = False,
    registry: RegistryOption = None,
) -> None:
    """Import an image, for both providers, under a name that SandboxSpec.image can have."""
    if not folders.is_name(name):
        raise UsageError(folders.wrong_name(name))
    if path := folders.find(open_registry(registry).image_roots, name):
        raise UsageError(f"{name!r} is the folder {path.parent}; import it under another name")
    limit = None if max_size is None else read_size(max_size)
    wanted = Import(source, name, tag=tag, user=user, max_bytes=limit)
    store = Store(cache_folder(cache).absolute(), layer_owner())
    began = time.monotonic()
    image = run(import_image(store, wanted, _reporter(quiet=as_json)))
    _present(image, _layers(store, image), time.monotonic() - began, as_json=as_json)


class _Way(NamedTuple):
    """What runs RUN steps (None: local sandboxes), and who has to have the image at the end."""

    run: RunCommand | None
    keep: Callable[[Image], Awaitable[None]]


@contextlib.asynccontextmanager
async def _way(provider: str, store: Store, report: Report) -> AsyncIterator[_Way]:
    if provider != "docker":
        yield _Way(None, _nowhere)
        return
    # docker-py costs a tenth of a second.
    from gymsuite.sandbox.dockerbuild import open_docker_build  # noqa: PLC0415 - see above

    async with open_docker_build(store, report) as docker:
        yield _Way(docker.run, docker.keep)


async def _nowhere(_: Image) -> None:
    """Keep an image in no Engine: the store has it."""


def _check(what: str, value: str, known: Sequence[str]) -> None:
    if value not in known:
        close = difflib.get_close_matches(value, known, n=1)
        hint = f"did you mean {close[0]!r}?" if close else f"there are: {', '.join(known)}"
        raise UsageError(f"no {what} {value!r}; {hint}")


def _pair(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not name or not equals:
        raise UsageError(f"--build-arg '{text}' is no NAME=VALUE")
    if name == "BASE":
        raise UsageError("BASE is what --base sets")
    return name, value


def _reporter(*, quiet: bool) -> Report:
    console = Console(stderr=True, quiet=quiet, highlight=False)

    def report(text: str) -> None:
        console.print(plain(text, "dim"), soft_wrap=True)

    return report


def _count(layers: Sequence[Layer]) -> str:
    return "1 layer" if len(layers) == 1 else f"{len(layers)} layers"


def _layers(store: Store, image: Image) -> list[Layer]:
    found = (store.read(layer.parent.name) for layer in image.layers)
    return [layer for layer in found if layer is not None]


def _present(image: Image, layers: Sequence[Layer], seconds: float, *, as_json: bool) -> None:
    size = sum(layer.size_bytes for layer in layers)
    if as_json:
        facts = {
            "name": image.name,
            "digest": image.digest,
            "base": image.base,
            "python": image.python,
            "user": image.user,
            "workdir": image.workdir,
            "size_bytes": size,
            "seconds": round(seconds, 3),
            "layers": [
                layer.model_dump(mode="json", include={"digest", "step", "size_bytes"})
                for layer in layers
            ],
        }
        typer.echo(json.dumps(facts))
        return
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("layer", no_wrap=True, min_width=_DIGEST_CHARACTERS)
    table.add_column("step", overflow="fold")
    table.add_column("size", justify="right", no_wrap=True, min_width=_SIZE_CHARACTERS)
    for layer in layers:
        table.add_row(
            layer.digest[:_DIGEST_CHARACTERS], plain(layer.step), show_size(layer.size_bytes)
        )
    console = Console(highlight=False)
    console.print(table)
    python = f", Python {image.python}" if image.python else ""
    user = "" if image.user == "root" else f", user {image.user}"
    console.print(
        f"{image.name} {image.digest[:12]}: {image.base}, {_count(layers)},"
        f" {show_size(size)}{python}{user}; {seconds:.1f} s",
        soft_wrap=True,
        markup=False,
    )
