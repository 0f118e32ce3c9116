"""Scores the stored submissions of a run again: a score that changes was never one."""

import asyncio
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal, NamedTuple, TextIO

from gymsuite.environment import Environment
from gymsuite.errors import DefinitionError, InfrastructureError, UsageError
from gymsuite.registry import Registry
from gymsuite.rollout import task_digest
from gymsuite.runs.directory import RunDirectory
from gymsuite.runs.log import StoreError, read_rollout, read_rows
from gymsuite.runs.runner import first_cause
from gymsuite.runs.sandboxes import Note, SandboxSource, images_of, open_sandboxes
from gymsuite.sandbox.protocol import OpenSandbox
from gymsuite.sandbox.turns import lane
from gymsuite.types import Model, Rollout, Score, Task
from gymsuite.worlds.procedural import places

Outcome = Literal["agreed", "disagreed", "failed", "changed"]


class Verified(Model):
    """One stored score beside what its submission scores now.

    `failed`: the verifier failed, so there is no second score, and `problem` says why.
    `changed`: the task is another one now, so that there is nothing to compare.
    """

    environment: str
    task: str
    repeat: int
    outcome: Outcome
    stored: Score
    again: Score | None = None
    problem: str = ""


class Verification(Model):
    """How many stored scores were confirmed, with those that were not."""

    run: str
    file: str
    agreed: int
    disagreed: int
    failed: int
    changed: int
    disagreements: tuple[Verified, ...]
    last_problem: str


@dataclass(frozen=True)
class VerifyRequest:
    """Which run to verify, with how many verifiers at once."""

    run: Path
    concurrency: int = 4


class VerifyWatcher(NamedTuple):
    """Hears how many there are to verify, and of each result."""

    note: Note
    begin: Callable[[int], None]
    result: Callable[[Verified], None]


class _Stored(NamedTuple):
    environment: Environment
    task: Task | None
    offset: int


async def verify_run(
    request: VerifyRequest, registry: Registry, sandboxes: SandboxSource, watcher: VerifyWatcher
) -> Verification:
    """Verify every scored rollout, and write the results to a new file in the run directory.

    The rollouts stay as they are. Raises `UsageError` if there is no run, or no score in it.
    """
    directory = RunDirectory(request.run)
    directory.read_manifest()
    stored = list(_scored(directory, registry))
    if not stored:
        raise UsageError(f"{request.run} has no scored rollouts to verify")
    images = sorted({i for s in stored if s.task for i in images_of(s.environment, [s.task])})
    path = directory.path / f"verification-{datetime.now(UTC):%Y%m%dT%H%M%S.%fZ}.jsonl"
    tally = _Tally(watcher.result)
    async with open_sandboxes(sandboxes, images, watcher.note) as opened:
        watcher.begin(len(stored))
        queue = iter(stored)
        with _writable(path) as file, lane(str(path)):

            async def work() -> None:
                for item in queue:
                    record = read_rollout(directory.rollouts, item.offset)
                    tally.add(await _verify(item, record, opened.open), file)

            try:
                async with asyncio.TaskGroup() as group:
                    for _ in range(request.concurrency):
                        group.create_task(work())
            except BaseExceptionGroup as error:
                raise first_cause(error) from error
    return tally.sum_up(directory.path, path)


def _scored(directory: RunDirectory, registry: Registry) -> Iterator[_Stored]:
    """The last attempts that have a score, with the tasks that they were made for."""
    last = {row.key: (offset, row) for offset, row in read_rows(directory.rollouts)}
    environments: dict[str, Environment] = {}
    positions: dict[str, dict[str, int]] = {}
    for key, (offset, row) in last.items():
        if row.score is None:
            continue
        name = key.environment
        if name not in environments:
            environments[name] = registry.load(name)
            known = places(environments[name].tasks)
            positions[name] = {place.id: place.position for place in known}
        at = positions[name].get(key.task)
        task = None if at is None else environments[name].tasks[at]
        same = task is not None and task_digest(task) == row.task_digest
        yield _Stored(environments[name], task if same else None, offset)


async def _verify(item: _Stored, record: Rollout, open_sandbox: OpenSandbox) -> Verified:
    score = record.score
    if score is None:
        raise StoreError(f"rollout {record.id} changed while it was verified", retryable=False)
    result = Verified(
        environment=record.environment,
        task=record.task,
        repeat=record.repeat,
        outcome="changed",
        stored=score,
    )
    if item.task is None or record.submission is None:
        return result
    try:
        again = await item.environment.verify(item.task, record.submission, open_sandbox)
    except (InfrastructureError, DefinitionError) as error:
        return result.model_copy(update={"outcome": "failed", "problem": str(error)})
    same = (score.reward, score.passed) == (again.reward, again.passed)
    return result.model_copy(update={"outcome": "agreed" if same else "disagreed", "again": again})


@contextmanager
def _writable(path: Path) -> Iterator[TextIO]:
    try:
        with path.open("x", encoding="utf-8") as file:
            yield file
    except OSError as error:
        raise StoreError(f"cannot write {path}: {error.strerror}", retryable=False) from error


class _Tally:
    """Writes results down as they come, and keeps those that matter."""

    def __init__(self, watch: Callable[[Verified], None]) -> None:
        self._watch = watch
        self._counts: Counter[Outcome] = Counter()
        self._disagreements: list[Verified] = []
        self._last_problem = ""

    def add(self, result: Verified, file: TextIO) -> None:
        file.write(f"{result.model_dump_json()}\n")
        file.flush()
        self._counts[result.outcome] += 1
        self._last_problem = result.problem or self._last_problem
        if result.outcome == "disagreed":
            self._disagreements.append(result)
        self._watch(result)

    def sum_up(self, run: Path, file: Path) -> Verification:
        return Verification(
            run=str(run),
            file=str(file),
            agreed=self._counts["agreed"],
            disagreed=self._counts["disagreed"],
            failed=self._counts["failed"],
            changed=self._counts["changed"],
            disagreements=tuple(self._disagreements),
            last_problem=self._last_problem,
        )
