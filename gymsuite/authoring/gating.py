"""What an environment's own gate says of its tasks, and whether they play the same elsewhere."""

import asyncio
import subprocess
from collections.abc import Sequence

from gymsuite.authoring.promises import Case, Verdict, complain, each
from gymsuite.environment import Environment, TaskGate
from gymsuite.errors import GymsuiteError
from gymsuite.types import Task
from gymsuite.worlds.procedural import places
from gymsuite.worlds.replay import Source, differing

_MOST_REPLAYED = 40
"""Each is played six times over, in processes of their own."""


async def gate_opens(case: Case, gate: TaskGate) -> Verdict:
    """The environment's gate finds no fault with any of the tasks."""
    failed: list[str] = []

    async def tried(task: Task) -> Sequence[str]:
        try:
            return await gate.faults(case.environment, task, case.open_sandbox)
        except GymsuiteError as error:
            failed.append(f"{task.id}: {error}")
            return ()

    tries = zip(case.tasks, await each(case, tried, case.tasks), strict=True)
    faults = [f"{task.id}: {fault}" for task, found in tries for fault in found]
    if failed and not faults:
        return Verdict("unknown", failed[0])
    return complain(faults)


async def plays_the_same(
    environment: Environment, tasks: Sequence[Task], source: Source
) -> Verdict:
    """Tasks and their solutions are the same under another hash seed, time zone and locale."""
    wanted = {task.id for task in tasks[:_MOST_REPLAYED]}
    numbers = [place.position for place in places(environment.tasks) if place.id in wanted]
    try:
        found = await asyncio.to_thread(differing, source, numbers)
    except (OSError, subprocess.SubprocessError) as error:
        return Verdict("unknown", f"the tasks could not be replayed: {error}")
    return complain([f"{finding.task}: {finding.message}" for finding in found])
