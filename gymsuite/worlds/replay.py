"""Whether a task plays the same in another process, under another hash seed, zone and locale.

Started as a module it prints the digests of tasks: `python -m gymsuite.worlds.replay REGISTRY ID
NUMBER...`.
"""

import asyncio
import hashlib
import json
import os
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from gymsuite.environment import Environment
from gymsuite.errors import DefinitionError
from gymsuite.registry import Registry
from gymsuite.sandbox.protocol import OpenSandbox, Sandbox
from gymsuite.types import SandboxSpec, Task
from gymsuite.worlds.gate import Finding, play

_REPLAYS = 3
_SECONDS = 600
_PLACES = (
    {"PYTHONHASHSEED": "1", "TZ": "Pacific/Chatham", "LC_ALL": "C"},
    {"PYTHONHASHSEED": "4242", "TZ": "America/St_Johns", "LC_ALL": "C.UTF-8"},
)


def digest(environment: Environment, task: Task, open_sandbox: OpenSandbox) -> str:
    """A hash of all that a task is and of what its solution makes of it.

    Raises `DefinitionError` when replays in this process differ.
    """
    found = {asyncio.run(_digest(environment, task, open_sandbox)) for _ in range(_REPLAYS)}
    if len(found) != 1:
        raise DefinitionError(f"{environment.id}: task {task.id!r} plays differently each time")
    return found.pop()


async def _digest(environment: Environment, task: Task, open_sandbox: OpenSandbox) -> str:
    score = await play(environment, task, task.solution, open_sandbox)
    text = task.model_dump_json() + score.model_dump_json()
    return hashlib.sha256(text.encode()).hexdigest()


def differing(registry: Path, name: str, numbers: Sequence[int]) -> tuple[Finding, ...]:
    """The tasks whose digests depend on where they are made and played."""
    one, other = (_elsewhere(registry, name, numbers, place) for place in _PLACES)
    return tuple(
        Finding(task, "determinism", f"digest {one[task][:8]} here, {other[task][:8]} there")
        for task in one
        if one[task] != other[task]
    )


def _elsewhere(
    registry: Path, name: str, numbers: Sequence[int], place: dict[str, str]
) -> dict[str, str]:
    command = [sys.executable, "-m", __name__, str(registry), name, *map(str, numbers)]
    run = subprocess.run(
        command,
        env={**os.environ, **place},
        stdout=subprocess.PIPE,
        timeout=_SECONDS,
        check=True,
    )
    digests: dict[str, str] = json.loads(run.stdout)
    return digests


def _digests(registry: str, name: str, numbers: Sequence[str]) -> Iterator[tuple[str, str]]:
    environment = Registry(Path(registry)).load(name)
    for number in numbers:
        task = environment.tasks[int(number)]
        yield task.id, digest(environment, task, no_sandbox)


@asynccontextmanager
async def no_sandbox(_: SandboxSpec) -> AsyncIterator[Sandbox]:
    """Refuses to open a sandbox: a world's tasks play in this process."""
    raise DefinitionError("this world is played without sandboxes")
    yield  # makes it a generator


if __name__ == "__main__":
    sys.stdout.write(json.dumps(dict(_digests(sys.argv[1], sys.argv[2], sys.argv[3:]))))
