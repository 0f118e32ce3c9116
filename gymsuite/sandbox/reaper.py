"""Removes what dead processes left in a Docker Engine: containers, and images nobody runs."""

import asyncio
import time
from pathlib import Path

from gymsuite.errors import SandboxError
from gymsuite.sandbox import docker
from gymsuite.sandbox.creations import abandoned, forget
from gymsuite.sandbox.docker import Engine
from gymsuite.sandbox.engine import Container
from gymsuite.sandbox.owner import is_gone, this_process

OWNER_LABEL = "gymsuite.owner"
DEADLINE_LABEL = "gymsuite.deadline"
IMAGE_PREFIX = "gymsuite/"
WARM = "warm"
"""What the names of containers begin with that wait for their first user."""

_OVER = frozenset({"exited", "dead"})
_SETTLE_SECONDS = 60.0
_POLL_SECONDS = 0.02


def labels(lifetime_seconds: float) -> dict[str, str]:
    """Say whose a container is, and the second of the epoch after which nobody needs it."""
    deadline = int(time.time() + lifetime_seconds) + 1
    return {OWNER_LABEL: this_process(), DEADLINE_LABEL: str(deadline)}


async def reap(engine: Engine, cache: Path) -> list[str]:
    """Remove containers whose owner or lifetime has ended, and return their names.

    Whatever their state: still being created, never started, running, paused, ended or half
    removed. With them go the images that dead builders made of them.
    """
    await asyncio.gather(*(_settle(engine, cache, name) for name in abandoned(cache)))
    gone = [name for name in await stale(engine) if await remove(engine, name)]
    for image, owner in await engine.labelled_images(OWNER_LABEL):
        if is_gone(owner):
            await engine.remove_image(image)
    return gone


async def stale(engine: Engine) -> list[str]:
    """Name the containers that `reap` would remove."""
    return [c.name for c in await engine.containers(OWNER_LABEL) if _is_over(c)]


async def remove(engine: Engine, name: str) -> bool:
    """Remove a container, and say whether it is gone.

    What cannot be removed now is removed when a later process starts; another cause comes first.
    """
    try:
        await engine.remove(name)
    except SandboxError:
        return False
    return True


async def held() -> list[str]:
    """Name the containers that this process uses; those that wait for a user are left out."""
    async with docker.connect() as engine:
        found = await engine.containers(OWNER_LABEL)
    own = [c.name for c in found if c.labels[OWNER_LABEL] == this_process()]
    return [name for name in own if not name.startswith(f"gymsuite-{WARM}-")]


async def remove_images() -> list[str]:
    """Remove gymsuite's images from this machine's Engine but for those that run just now.

    Returns what they were called. A sandbox that needs one later has it imported again. Raises
    `SandboxError` where there is no Engine.
    """
    async with docker.connect() as engine:
        tags = await engine.images(IMAGE_PREFIX)
        return [tag for tag in tags if await engine.remove_image(tag)]


async def _settle(engine: Engine, cache: Path, name: str) -> None:
    """Wait until a container that a dead process asked for is there, or cannot come any more."""
    end = time.monotonic() + _SETTLE_SECONDS
    while not await engine.is_settled(name, IMAGE_PREFIX, labels(_SETTLE_SECONDS)):
        if time.monotonic() > end:
            # The next one who looks waits for it.
            return
        await asyncio.sleep(_POLL_SECONDS)
    forget(cache, name)


def _is_over(container: Container) -> bool:
    deadline = container.labels.get(DEADLINE_LABEL, "")
    expired = deadline.isdigit() and int(deadline) < time.time()
    return expired or container.state in _OVER or is_gone(container.labels[OWNER_LABEL])
