"""One command's work on a run directory: what is missing, and a place for what is made."""

import asyncio
import resource
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path

from pydantic_core import PydanticSerializationError

from gymsuite.errors import UsageError
from gymsuite.runs.directory import Manifest, RunDirectory, Timing, differences
from gymsuite.runs.ledger import Ledger
from gymsuite.runs.log import RolloutLog, StoreError, read_rows
from gymsuite.runs.plan import Plan
from gymsuite.runs.runner import Attempt, Job, Record, Runner, first_cause
from gymsuite.types import Failure, Rollout

_SYNC_SECONDS = 0.5
_TIMING_SECONDS = 10.0


class Run:
    """An open run directory, this process its only writer."""

    def __init__(self, directory: RunDirectory, log: RolloutLog, ledger: Ledger) -> None:
        self.directory = directory
        self.ledger = ledger
        self._log = log
        self._timings = directory.read_timings()
        self._started = datetime.now(UTC).isoformat(timespec="seconds")
        self._clock = time.monotonic()
        self._cpu = cpu_seconds()

    def record(self, rollout: Rollout) -> None:
        """Store one attempt; on disk when this returns. Raises `StoreError`."""
        try:
            self._log.append(rollout)
        except PydanticSerializationError as error:
            rollout = _unstorable(rollout, error)
            self._log.append(rollout)
        self.ledger.add(rollout)

    def jobs(self, plan: Plan, *, attempts: int, failed_too: bool = False) -> list[Job]:
        """The rollouts of a plan that are missing: without a score, and worth another attempt.

        A failed one is worth it while it is retryable and has attempts left; with `failed_too`
        any is, and gets all its attempts anew.
        """
        jobs = []
        for slot in plan:
            standing = self.ledger.standing(slot)
            if standing is None:
                jobs.append(Job(slot, 0, attempts))
            elif standing.kind and failed_too:
                jobs.append(Job(slot, standing.attempts, standing.attempts + attempts))
            elif standing.kind and standing.retryable and standing.attempts < attempts:
                jobs.append(Job(slot, standing.attempts, attempts))
        return jobs

    @property
    def timings(self) -> tuple[Timing, ...]:
        """The times of all commands that worked on this run, up to now."""
        now = Timing(
            started=self._started,
            seconds=time.monotonic() - self._clock,
            cpu_seconds=cpu_seconds() - self._cpu,
        )
        return (*self._timings, now)

    async def play(self, runner: Runner, jobs: Sequence[Job], watch: Record) -> None:
        """Make the rollouts and store each attempt before `watch` hears of it."""

        def record(attempt: Attempt) -> None:
            self.record(attempt.rollout)
            watch(attempt)

        try:
            async with asyncio.TaskGroup() as group:
                keeper = group.create_task(self._keep())
                await runner.play(jobs, record)
                keeper.cancel()
        except BaseExceptionGroup as error:
            raise first_cause(error) from error

    async def _keep(self) -> None:
        """Until cancelled, make safe what was recorded, and write down the time spent."""
        written = time.monotonic()
        while True:
            await asyncio.sleep(_SYNC_SECONDS)
            await asyncio.to_thread(self._log.sync)
            if time.monotonic() - written >= _TIMING_SECONDS:
                written = time.monotonic()
                self.directory.write_timings(self.timings)


@asynccontextmanager
async def open_run(path: Path, manifest: Manifest, *, resume: bool) -> AsyncIterator[Run]:
    """Begin a run in a new directory, or go on with a stored one; locked until the block ends.

    Raises `UsageError` if the directory holds something else, is in use, or holds another run.
    """
    directory = RunDirectory(path)
    with directory.locked():
        if directory.is_new():
            directory.write_manifest(manifest)
        else:
            _check(directory, manifest, resume=resume)
        with RolloutLog(directory.rollouts) as log:
            run = Run(directory, log, Ledger(row for _, row in read_rows(directory.rollouts)))
            try:
                yield run
            finally:
                with suppress(StoreError):  # a full disk has been reported, or it will be
                    directory.write_timings(run.timings)


def _check(directory: RunDirectory, manifest: Manifest, *, resume: bool) -> None:
    if not resume:
        raise UsageError(
            f"{directory.path} is not empty; add --resume to go on with the run in it, or choose "
            "another --out"
        )
    if changed := differences(directory.read_manifest(), manifest):
        raise UsageError(
            f"{directory.path} holds another run: {'; '.join(changed)}; repeat its options, or "
            "choose another --out"
        )


def cpu_seconds() -> float:
    """CPU time of this process so far, without the sandboxes it started."""
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


def _unstorable(rollout: Rollout, error: PydanticSerializationError) -> Rollout:
    """Arguments and what is collected may be anything; what is no JSON cannot be kept."""
    failure = Failure(
        kind="agent",
        stage="agent",
        message=f"what the agent said or left cannot be stored as JSON: {error}",
        retryable=False,
    )
    changes = {"messages": (), "submission": None, "score": None, "failure": failure}
    return rollout.model_copy(update=changes)
