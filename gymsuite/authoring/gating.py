"""What an environment's own gate says of its tasks, and whether they play the same elsewhere."""

import asyncio
import subprocess
from collections.abc import Sequence
from pathlib import Path

from gymsuite.authoring.promises import Case, Verdict, complain
from gymsuite.environment import Environment, TaskGate
from gymsuite.errors import GymsuiteError
from gymsuite.types import Task
from gymsuite.worlds.procedural import places
from gymsuite.worlds.replay import differing

_MOST_REPLAYED = 40
"""Each is played six times over, in processes of their own."""


async def gate_opens(case: Case, gate: TaskGate) -> Verdict:
    """The environment's gate finds no fault with any of the tasks."""
    found: list[str] = []
    for task in case.tasks:
        try:
            faults = await gate.faults(case.environment, task, case.open_sandbox)
        except GymsuiteError as error:
            return Verdict("unknown", f"{task.id}: {error}")
        found += [f"{task.id}: {fault}" for fault in faults]
        case.tick()
    return complain(found)


async def plays_the_same(
    environment: Environment, tasks: Sequence[Task], registry: Path
) -> Verdict:
    """Tasks and their solutions are the same under another hash seed, time zone and locale."""
    wanted = {task.id for task in tasks[:_MOST_REPLAYED]}
    numbers = [place.position for place in places(environment.tasks) if place.id in wanted]
    try:
        found = await asyncio.to_thread(differing, registry, environment.id, numbers)
    except (OSError, subprocess.SubprocessError) as error:
        return Verdict("unknown", f"the tasks could not be replayed: {error}")
    return complain([f"{finding.task}: {finding.message}" for finding in found])
