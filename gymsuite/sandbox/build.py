"""Builds a recipe into layers: one for the base, and one for each step that changes files.

Each layer is named by the hash of the one below it, its step and all that the step reads, so what
is named alike is alike and is built once.
"""

import asyncio
import contextlib
import json
import posixpath
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from textwrap import shorten

from gymsuite.errors import SandboxError
from gymsuite.sandbox import instructions
from gymsuite.sandbox.accounts import account
from gymsuite.sandbox.base import ARCHITECTURE, Base, digest_of
from gymsuite.sandbox.copying import content_digest, copy, make_directory, placements
from gymsuite.sandbox.image import Image
from gymsuite.sandbox.layers import lookup, resolve
from gymsuite.sandbox.merging import MOST_LAYERS
from gymsuite.sandbox.protocol import ExecResult
from gymsuite.sandbox.recipe import Arg, Copy, Env, Recipe, Run, Step, User, Workdir
from gymsuite.sandbox.records import record_of
from gymsuite.sandbox.store import Report, Store
from gymsuite.sandbox.words import expand

RunCommand = Callable[[Image, str | Sequence[str], Path], Awaitable[ExecResult]]
"""Runs a command on top of an image and puts what it changed into an empty tree."""

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


@dataclass(frozen=True)
class _Draft:
    """An image half built, and the ARGs that were declared so far: they end with the build."""

    image: Image
    arguments: Mapping[str, str]

    @property
    def variables(self) -> Mapping[str, str]:
        """What `$NAME` can name. ENV wins over ARG, as in Docker."""
        return {**self.arguments, **self.image.env}


async def build(builder: Builder, name: str, recipe: Recipe, start: Base | Image) -> Image:
    """Build an image on a base, or on another image; or find it built.

    Raises `DefinitionError` with file and line where the recipe is at fault.
    """
    with contextlib.ExitStack() as locks:
        if isinstance(start, Image):
            image = replace(start, name=name)
        else:
            first = _Layer(start.digest, f"FROM {recipe.base}", start.make)
            image = await _add(builder, _empty(name, start), first, locks)
        draft = _Draft(image, {})
        for step in recipe.steps:
            draft, layer = await _plan(builder, recipe, draft, step)
            if layer is not None:
                image = await _add(builder, draft.image, layer, locks)
                draft = replace(draft, image=image)
        image = replace(draft.image, digest=_digest("image", draft.image))
        builder.store.record(record_of(image, "built"))
        builder.held.push(locks.pop_all())
    return image


def _empty(name: str, base: Base) -> Image:
    return Image(
        name=name,
        digest=base.digest,
        base=base.name,
        layers=(),
        binds=base.binds,
        hides=base.hides,
        env=base.env,
        architecture=ARCHITECTURE,
    )


async def _add(builder: Builder, image: Image, layer: _Layer, locks: contextlib.ExitStack) -> Image:
    """Put a layer on top of an image, made if it is not there."""

    async def make(tree: Path) -> str:
        builder.report(f"{image.name}: {layer.text}")
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
    builder: Builder, recipe: Recipe, draft: _Draft, step: Step
) -> tuple[_Draft, _Layer | None]:
    """Say what a step makes of an image: other settings, and a layer where files change."""
    try:
        layer: _Layer | None = None
        match step:
            case Env():
                draft = _with_env(draft, step)
            case Arg():
                draft = _with_argument(draft, step)
            case User():
                draft = _with_user(draft, step)
            case Workdir():
                draft, layer = _with_workdir(draft, step)
            case Copy():
                layer = await asyncio.to_thread(_copy_layer, recipe, draft, step)
            case Run():
                layer = _run_layer(builder, recipe, draft, step)
    except (ValueError, OSError) as error:
        raise recipe.error(step.line, str(error)) from error
    if layer is not None and len(draft.image.layers) >= MOST_LAYERS:
        message = f"more than {MOST_LAYERS} layers; join RUN and COPY steps"
        raise recipe.error(step.line, message)
    return draft, layer


def _with_env(draft: _Draft, step: Env) -> _Draft:
    values = {name: expand(value, draft.variables) for name, value in step.variables}
    return replace(draft, image=replace(draft.image, env={**draft.image.env, **values}))


def _with_argument(draft: _Draft, step: Arg) -> _Draft:
    if step.given is None and step.default is None:
        return draft
    given = step.given if step.given is not None else expand(step.default or "", draft.variables)
    return replace(draft, arguments={**draft.arguments, step.name: given})


def _with_user(draft: _Draft, step: User) -> _Draft:
    image = draft.image
    user = instructions.user(expand(step.name, draft.variables))
    home = account(image.layers, user).home
    # A home that somebody chose stays; that of the user before goes with that user.
    chosen = image.env.get("HOME") != account(image.layers, image.user).home
    env = image.env if chosen else {**image.env, "HOME": home}
    return replace(draft, image=replace(image, user=user, env=env))


def _with_workdir(draft: _Draft, step: Workdir) -> tuple[_Draft, _Layer | None]:
    path = resolve(draft.image.layers, _absolute(draft, step.path))
    image = replace(draft.image, workdir=path)
    draft = replace(draft, image=image)
    if lookup(image.layers, path) is not None:
        return draft, None

    async def make(tree: Path) -> str:
        make_directory(tree, path, image)
        return ""

    digest = digest_of(image.digest, "WORKDIR", path)
    return draft, _Layer(digest, f"WORKDIR {path}", make)


def _copy_layer(recipe: Recipe, draft: _Draft, step: Copy) -> _Layer:
    image = draft.image
    instructions.check_owner(step.owner, recipe.last_user(image.user))
    sources = [expand(source, draft.variables) for source in step.sources]
    target = _absolute(draft, step.target)
    placed = placements(recipe.path.parent, sources, target, image)

    async def make(tree: Path) -> str:
        await asyncio.to_thread(copy, placed, tree, image, step.mode)
        return ""

    modes = () if step.mode is None else (f"{step.mode:o}",)
    digest = digest_of(image.digest, "COPY", content_digest(placed), *modes)
    return _Layer(digest, f"COPY {' '.join(sources)} {step.target}", make)


def _run_layer(builder: Builder, recipe: Recipe, draft: _Draft, step: Run) -> _Layer:
    image = replace(draft.image, env=draft.variables)
    text = shorten(step.text, _SHOWN_COMMAND, placeholder=" ...")

    async def make(tree: Path) -> str:
        result = await builder.run(image, step.command, tree)
        _check_machine(result, f"{image.name}: RUN {text}")
        if result.timed_out or result.exit_code != 0:
            raise recipe.error(step.line, f"RUN {text}: {_failure(result)}{_last_words(result)}")
        return ""

    command = step.command if isinstance(step.command, str) else json.dumps(step.command)
    return _Layer(_digest(f"RUN {command}", image), f"RUN {text}", make)


def _check_machine(result: ExecResult, what: str) -> None:
    """Raise `SandboxError` where the step failed for want of something the recipe cannot give."""
    if result.exit_code == 0 and not result.timed_out:
        return
    for missing, lacks in (("disk space", result.disk_full), ("memory", result.oom)):
        if lacks:
            raise SandboxError(f"{what}: no {missing} was left{_last_words(result)}")


def _failure(result: ExecResult) -> str:
    if result.timed_out:
        return f"no end after {result.wall_seconds:.0f} seconds"
    return f"exit code {result.exit_code}"


def _last_words(result: ExecResult) -> str:
    lines = result.output.rstrip().splitlines()[-_SHOWN_LINES:]
    return "\n".join(["; its last lines:", *lines]) if lines else "; it printed nothing"


def _absolute(draft: _Draft, path: str) -> str:
    # PurePosixPath would drop the slash at the end, which says that this is a directory.
    joined = posixpath.join(draft.image.workdir, expand(path, draft.variables))
    return f"/{joined.lstrip('/')}"  # two slashes are a root of their own


def _digest(what: str, image: Image) -> str:
    """Hash something that depends on an image's files and settings."""
    # Nothing for root, so that what was built before images had users is what is built now.
    user = () if image.user == "root" else (image.user,)
    env = json.dumps(sorted(image.env.items()))
    return digest_of(image.digest, what, image.workdir, env, *user)
