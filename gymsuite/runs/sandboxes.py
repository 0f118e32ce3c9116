"""Where the sandboxes of a run come from: a provider, or none where nothing needs one."""

from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from gymsuite.environment import Environment
from gymsuite.errors import DefinitionError
from gymsuite.sandbox.admission import Counters
from gymsuite.sandbox.protocol import OpenSandbox, Sandbox
from gymsuite.sandbox.provider import open_provider
from gymsuite.types import SandboxSpec, Task

Note = Callable[[str], None]
"""Takes a line of progress for a person to read."""


@dataclass(frozen=True)
class SandboxSource:
    """Which provider to take (None: the first that works here), and what it builds from."""

    provider: str | None
    image_roots: tuple[Path, ...]
    cache: Path


@dataclass(frozen=True)
class Sandboxes:
    """How a run opens sandboxes, and how many wait. `provider` is "" where it needs none."""

    provider: str
    open: OpenSandbox
    counters: Callable[[], Counters] = Counters


def images_of(environment: Environment, tasks: Iterable[Task]) -> set[str]:
    """The images that these tasks' agents start from."""
    specs = (task.sandbox or environment.sandbox for task in tasks)
    return {spec.image for spec in specs if spec is not None}


@asynccontextmanager
async def open_sandboxes(
    source: SandboxSource, images: Sequence[str], note: Note
) -> AsyncIterator[Sandboxes]:
    """Open the provider and build the images; with no images open nothing."""
    if not images:
        yield Sandboxes("", _none)
        return
    async with open_provider(
        source.provider, image_roots=source.image_roots, cache=source.cache, report=note
    ) as provider:
        for image in images:
            await provider.ensure(image)
        yield Sandboxes(provider.name, provider.open, provider.counters)


@asynccontextmanager
async def _none(spec: SandboxSpec) -> AsyncIterator[Sandbox]:
    raise DefinitionError(
        f"a sandbox from image {spec.image!r} was asked for, but the environment names no sandbox; "
        "give it `sandbox: {image: ...}` in registry.yaml"
    )
    yield
