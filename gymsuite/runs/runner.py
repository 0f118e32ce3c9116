"""Makes rollouts, so many at once, and tries those again that failed through no fault of theirs."""

import asyncio
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from gymsuite.agents import AgentSource, Seat
from gymsuite.errors import InfrastructureError
from gymsuite.rollout import rollout
from gymsuite.runs.plan import Slot
from gymsuite.sandbox.protocol import OpenSandbox
from gymsuite.sandbox.turns import lane
from gymsuite.types import Rollout

_LONGEST_PAUSE_SECONDS = 30.0
_HOPELESS = 16


class Attempt(NamedTuple):
    """An attempt that has ended. A final one is the last at its rollout."""

    rollout: Rollout
    final: bool


Record = Callable[[Attempt], None]
"""Takes each attempt as it ends."""


class Hopeless(InfrastructureError):  # noqa: N818 - a state of the run
    """A run was given up: its first rollouts brought failures and not one score."""

    kind = "hopeless"


class Job(NamedTuple):
    """One rollout to make, with the numbers of its first attempt and of the one after its last."""

    slot: Slot
    first: int
    end: int


@dataclass
class _Progress:
    scored: int = 0
    failed: int = 0


@dataclass(frozen=True)
class Runner:
    """Who plays, in which sandboxes, and how many rollouts at once.

    Where sandboxes queue, runs of different `lane`s take turns.
    """

    source: AgentSource
    open_sandbox: OpenSandbox
    concurrency: int = 8
    lane: str = ""

    async def play(self, jobs: Sequence[Job], record: Record) -> None:
        """Make all rollouts, handing over each attempt at once.

        Cancelled, or when `record` raises, it ends those in flight without a trace. Raises
        `Hopeless` if it begins with twice as many failures as rollouts at once, and no score.
        """
        queue, progress = iter(jobs), _Progress()
        try:
            with lane(self.lane):
                async with asyncio.TaskGroup() as group:
                    for _ in range(min(self.concurrency, len(jobs))):
                        group.create_task(self._work(queue, record, progress))
        except BaseExceptionGroup as group_error:
            raise first_cause(group_error) from group_error

    async def _work(self, queue: Iterator[Job], record: Record, progress: _Progress) -> None:
        for job in queue:
            last = await self._make(job, record)
            if last.failure is None:
                progress.scored += 1
                continue
            progress.failed += 1
            if not progress.scored and progress.failed >= max(_HOPELESS, 2 * self.concurrency):
                raise Hopeless(
                    f"gave up: the first {progress.failed} rollouts all failed, at last with: "
                    f"{last.failure.message}"
                )

    async def _make(self, job: Job, record: Record) -> Rollout:
        """Try one rollout until it is scored, cannot be helped, or has used up its attempts."""
        slot = job.slot
        seat = Seat(slot.environment, self.open_sandbox, slot.seed, slot.repeat)
        for attempt in range(job.first, job.end):
            made = await rollout(
                slot.environment,
                slot.task,
                self.source.seat(seat),
                self.open_sandbox,
                seed=slot.seed,
                repeat=slot.repeat,
                attempt=attempt,
                agent_name=self.source.name,
            )
            settled = made.failure is None or not made.failure.retryable
            final = settled or attempt + 1 == job.end
            record(Attempt(made, final))
            if final:
                break
            pause = min(2.0 ** (attempt - job.first), _LONGEST_PAUSE_SECONDS)
            await asyncio.sleep(random.uniform(0, pause))
        return made


def first_cause(error: BaseException) -> BaseException:
    """The cause itself: what else is in the group was cancelled because of it."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error
