"""Removes what processes left that were killed: containers, directories, layers half made.

Each has an owner, by process id and start time or by a lock of the kernel's, and is left alone for
as long as that lives.
"""

import asyncio
from pathlib import Path
from typing import NamedTuple

from gymsuite.errors import SandboxError
from gymsuite.sandbox import hierarchies
from gymsuite.sandbox.collecting import clean_partial
from gymsuite.sandbox.freezing import FROZEN
from gymsuite.sandbox.scratch import remove_stale


class Leftovers(NamedTuple):
    """What was removed, or would be. `no_engine` says why no containers were looked for."""

    containers: tuple[str, ...]
    directories: tuple[str, ...]
    layers: tuple[str, ...]
    no_engine: str


async def reap_all(cache: Path, *, dry_run: bool) -> Leftovers:
    """Remove all leftovers on this machine, below its cache and in its Docker Engine."""
    layers = await asyncio.to_thread(clean_partial, cache, dry_run=dry_run)
    live = await asyncio.to_thread(remove_stale, cache / "live", dry_run=dry_run)
    frozen = await asyncio.to_thread(remove_stale, cache / FROZEN, dry_run=dry_run)
    groups = await asyncio.to_thread(hierarchies.find().remove_stale, dry_run=dry_run)
    try:
        containers, no_engine = await _containers(cache, dry_run=dry_run), ""
    except SandboxError as error:
        containers, no_engine = (), str(error)
    return Leftovers(containers, (*live, *frozen, *groups), layers, no_engine)


async def _containers(cache: Path, *, dry_run: bool) -> tuple[str, ...]:
    # docker-py costs a tenth of a second, and most commands never need it.
    from gymsuite.sandbox import docker, reaper  # noqa: PLC0415 - see above

    async with docker.connect() as engine:
        return tuple(await (reaper.stale(engine) if dry_run else reaper.reap(engine, cache)))
