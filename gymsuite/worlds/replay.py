"""Whether a task plays the same in another process, under another hash seed, zone and locale.

Started as a module it prints the digests of tasks: `python -m gymsuite.worlds.replay REGISTRY ID
PROVIDER CACHE NUMBER...`; an empty PROVIDER is the first that works.
"""

import asyncio
import hashlib
import json
import os
import subprocess
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import NamedTuple

from gymsuite.environment import Environment
from gymsuite.errors import DefinitionError
from gymsuite.registry import Registry
from gymsuite.sandbox.protocol import OpenSandbox, Sandbox
from gymsuite.sandbox.provider import open_provider
from gymsuite.types import SandboxSpec, Task
from gymsuite.worlds.gate import Finding, play

_REPLAYS = 3
_SECONDS = 600
_PLACES = (
    {"PYTHONHASHSEED": "1", "TZ": "Pacific/Chatham", "LC_ALL": "C"},
    {"PYTHONHASHSEED": "4242", "TZ": "America/St_Johns", "LC_ALL": "C.UTF-8"},
)


class Source(NamedTuple):
    """Where another process finds an environment, and sandboxes if it has any."""

    registry: Path
    environment: str
    provider: str | None
    cache: Path


async def digest(environment: Environment, task: Task, open_sandbox: OpenSandbox) -> str:
    """A hash of all that a task is and of what its solution makes of it.

    Raises `DefinitionError` when replays in this process differ.
    """
    found = {await _digest(environment, task, open_sandbox) for _ in range(_REPLAYS)}
    if len(found) != 1:
        raise DefinitionError(f"{environment.id}: task {task.id!r} plays differently each time")
    return found.pop()


async def _digest(environment: Environment, task: Task, open_sandbox: OpenSandbox) -> str:
    score = await play(environment, task, task.solution, open_sandbox)
    text = task.model_dump_json() + score.model_dump_json()
    return hashlib.sha256(text.encode()).hexdigest()


def differing(source: Source, numbers: Sequence[int]) -> tuple[Finding, ...]:
    """The tasks whose digests depend on where they are made and played."""
    one, other = (_elsewhere(source, numbers, place) for place in _PLACES)
    return tuple(
        Finding(task, "determinism", f"digest {one[task][:8]} here, {other[task][:8]} there")
        for task in one
        if one[task] != other[task]
    )


def _elsewhere(source: Source, numbers: Sequence[int], place: dict[str, str]) -> dict[str, str]:
    words = (source.registry, source.environment, source.provider or "", source.cache, *numbers)
    run = subprocess.run(
        [sys.executable, "-m", __name__, *map(str, words)],
        env={**os.environ, **place},
        stdout=subprocess.PIPE,
        timeout=_SECONDS,
        check=True,
    )
    digests: dict[str, str] = json.loads(run.stdout)
    return digests


async def _digests(source: Source, numbers: Sequence[int]) -> dict[str, str]:
    registry = Registry(source.registry)
    environment = registry.load(source.environment)
    async with AsyncExitStack() as stack:
        open_sandbox: OpenSandbox = no_sandbox
        if environment.sandbox is not None:
            opening = open_provider(
                source.provider, image_roots=registry.image_roots, cache=source.cache
            )
            open_sandbox = (await stack.enter_async_context(opening)).open
        tasks = [environment.tasks[number] for number in numbers]
        return {task.id: await digest(environment, task, open_sandbox) for task in tasks}


@asynccontextmanager
async def no_sandbox(_: SandboxSpec) -> AsyncIterator[Sandbox]:
    """Refuses to open a sandbox: a world's tasks play in this process."""
    raise DefinitionError("this world is played without sandboxes")
    yield  # makes it a generator


def main(registry: str, environment: str, provider: str, cache: str, *numbers: str) -> None:
    """Print the digests of these tasks as JSON."""
    source = Source(Path(registry), environment, provider or None, Path(cache))
    sys.stdout.write(json.dumps(asyncio.run(_digests(source, [*map(int, numbers)]))))


if __name__ == "__main__":
    main(*sys.argv[1:])
