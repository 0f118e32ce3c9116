"""Builds a recipe into layers: one for the base, and one for each step that changes files.

Each layer is named by the hash of the one below it, its step and all that the step reads, so what
is named alike is alike and is built once.
"""

import asyncio
import contextlib
import json
import posixpath
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from pathlib import Path
from textwrap import shorten

from gymsuite.sandbox.base import ARCHITECTURE, Base, digest_of
from gymsuite.sandbox.copying import content_digest, copy, make_directory, placements
from gymsuite.sandbox.dockerfile import Copy, Env, Recipe, Run, Step, Workdir, expand
from gymsuite.sandbox.image import Image
from gymsuite.sandbox.layers import lookup, resolve
from gymsuite.sandbox.protocol import ExecResult
from gymsuite.sandbox.store import Report, Store

RunCommand = Callable[[Image, str, Path], Awaitable[ExecResult]]
"""Runs a shell command on top of an image and puts what it changed into an empty tree."""

# The options of one overlay mount, with all the layers' paths, fit in a page of memory.
_MOST_LAYERS = 24
_SHOWN_LINES = 20
_SHOWN_COMMAND = 60


@dataclass(frozen=True)
class Builder:
    """What building needs: where layers are kept, how RUN runs, and who hears of progress.

    Locks that keep the layers of finished images in place are entered into `held`.
    """

    store: Store
    run: RunCommand
    report: Report
    held: contextlib.ExitStack


@dataclass(frozen=True)
class _Layer:
    digest: str
    text: str
    make: Callable[[Path], Awaitable[str]]


async def build(builder: Builder, name: str, recipe: Recipe, base: Base) -> Image:
    """Build an image, or find it built.

    Raises `DefinitionError` with file and line where the recipe is at fault.
    """
    image = Image(
        name=name,
        digest=base.digest,
        base=base.name,
        layers=(),
        binds=base.binds,
        hides=base.hides,
        env=base.env,
        architecture=ARCHITECTURE,
    )
    with contextlib.ExitStack() as locks:
        first = _Layer(base.digest, f"{name}: FROM {recipe.base}", base.make)
        image = await _add(builder, image, first, locks)
        for step in recipe.steps:
            image, layer = await _plan(builder, recipe, image, step)
            if layer is not None:
                image = await _add(builder, image, layer, locks)
        image = replace(image, digest=_digest("image", image))
        builder.store.record(image)
        builder.held.push(locks.pop_all())
    return image


async def _add(builder: Builder, image: Image, layer: _Layer, locks: contextlib.ExitStack) -> Image:
    """Put a layer on top of an image, made if it is not there."""

    async def make(tree: Path) -> str:
        builder.report(layer.text)
        return await layer.make(tree)

    lock = await builder.store.ensure(layer.digest, layer.text, make, builder.report)
    locks.callback(lock.close)
    manifest = builder.store.read(layer.digest)
    return replace(
        image,
        digest=layer.digest,
        layers=(*image.layers, builder.store.tree(layer.digest)),
        python=(manifest and manifest.python) or image.python,
    )


async def _plan(
    builder: Builder, recipe: Recipe, image: Image, step: Step
) -> tuple[Image, _Layer | None]:
    """Say what a step makes of an image: other settings, and a layer where files change."""
    if len(image.layers) >= _MOST_LAYERS:
        message = f"more than {_MOST_LAYERS} layers; join RUN and COPY steps"
        raise recipe.error(step.line, message)
    try:
        match step:
            case Env():
                return _with_env(image, step), None
            case Workdir():
                return _with_workdir(image, step)
            case Copy():
                return image, await asyncio.to_thread(_copy_layer, recipe, image, step)
            case Run():
                return image, _run_layer(builder, recipe, image, step)
    except (ValueError, OSError) as error:
        raise recipe.error(step.line, str(error)) from error


def _with_env(image: Image, step: Env) -> Image:
    values = {name: expand(value, image.env) for name, value in step.variables}
    return replace(image, env={**image.env, **values})


def _with_workdir(image: Image, step: Workdir) -> tuple[Image, _Layer | None]:
    path = resolve(image.layers, _absolute(image, step.path))
    image = replace(image, workdir=path)
    if lookup(image.layers, path) is not None:
        return image, None

    async def make(tree: Path) -> str:
        make_directory(tree, path, image)
        return ""

    digest = digest_of(image.digest, "WORKDIR", path)
    return image, _Layer(digest, f"{image.name}: WORKDIR {path}", make)


def _copy_layer(recipe: Recipe, image: Image, step: Copy) -> _Layer:
    target = _absolute(image, step.target)
    placed = placements(recipe.path.parent, step.sources, target, image)

    async def make(tree: Path) -> str:
        await asyncio.to_thread(copy, placed, tree, image)
        return ""

    digest = digest_of(image.digest, "COPY", content_digest(placed))
    return _Layer(digest, f"{image.name}: COPY {' '.join(step.sources)} {step.target}", make)


def _run_layer(builder: Builder, recipe: Recipe, image: Image, step: Run) -> _Layer:
    text = shorten(step.command, _SHOWN_COMMAND, placeholder=" ...")

    async def make(tree: Path) -> str:
        result = await builder.run(image, step.command, tree)
        if result.timed_out or result.exit_code != 0:
            lines = result.output.rstrip().splitlines()[-_SHOWN_LINES:]
            how = _failure(result)
            raise recipe.error(step.line, "\n".join([f"RUN {text}: {how}", *lines]))
        return ""

    return _Layer(_digest(f"RUN {step.command}", image), f"{image.name}: RUN {text}", make)


def _failure(result: ExecResult) -> str:
    if result.timed_out:
        return f"no end after {result.wall_seconds:.0f} seconds; its last lines:"
    return f"exit code {result.exit_code}; its last lines:"


def _absolute(image: Image, path: str) -> str:
    # PurePosixPath would drop the slash at the end, which says that this is a directory.
    return posixpath.join(image.workdir, expand(path, image.env))


def _digest(what: str, image: Image) -> str:
    """Hash something that depends on an image's files and settings."""
    return digest_of(image.digest, what, image.workdir, json.dumps(sorted(image.env.items())))
