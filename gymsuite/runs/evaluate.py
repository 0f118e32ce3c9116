"""One evaluation from names to figures: load, plan, open everything, play, report."""

from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Protocol

from gymsuite import __version__
from gymsuite.agents import AgentOptions, AgentSource, open_agent
from gymsuite.registry import Registry
from gymsuite.runs.directory import EnvironmentRecord, Manifest
from gymsuite.runs.machine import describe_machine
from gymsuite.runs.plan import EVERYTHING, Choice, Plan, foreword, make_plan
from gymsuite.runs.report import RunReport, make_report
from gymsuite.runs.run import Run, open_run
from gymsuite.runs.runner import Attempt, Hopeless, Job, Runner
from gymsuite.runs.sandboxes import SandboxSource, images_of, open_sandboxes


@dataclass(frozen=True)
class Request:
    """What is to be evaluated, by whom, and where the run goes."""

    environments: Sequence[str]
    agent: str
    out: Path
    options: AgentOptions = field(default_factory=AgentOptions)
    choice: Choice = EVERYTHING
    repeats: int = 1
    seed: int = 0
    attempts: int = 3
    concurrency: int = 8
    resume: bool = False
    failed_too: bool = False


class Watcher(Protocol):
    """Sees an evaluation go on."""

    def note(self, text: str) -> None:
        """A line of progress while tasks are made and images are built."""
        ...

    def begin(
        self, plan: Plan, jobs: Sequence[Job], outdated: int, queued: Callable[[], int]
    ) -> None:
        """What is to be done; `outdated` rollouts are of tasks that have changed since.

        `queued` says how many wait for their turn to open a sandbox.
        """
        ...

    def attempt(self, attempt: Attempt) -> None:
        """An attempt has ended."""
        ...

    def end(self, report: RunReport) -> None:
        """The figures so far: all of them, or those until the run was stopped."""
        ...


async def evaluate(
    request: Request, registry: Registry, sandboxes: SandboxSource, watcher: Watcher
) -> RunReport:
    """Carry out a request, and return its figures.

    Raises `UsageError` and `DefinitionError` before anything is played, `SandboxError` if there
    can be no sandboxes, and `StoreError` if the run directory cannot be written.
    """
    environments = [registry.load(name) for name in request.environments]
    async with AsyncExitStack() as stack:
        source = await stack.enter_async_context(open_agent(request.agent, request.options))
        for line in foreword(environments, request.choice):
            watcher.note(line)
        plan = make_plan(environments, request.choice, repeats=request.repeats, seed=request.seed)
        images = sorted({name for e in environments for name in images_of(e, plan.tasks[e.id])})
        manifest = _manifest(request, plan, source)
        run = await stack.enter_async_context(
            open_run(request.out, manifest, resume=request.resume)
        )
        jobs = run.jobs(plan, attempts=request.attempts, failed_too=request.failed_too)
        opened = await stack.enter_async_context(
            open_sandboxes(sandboxes, images if jobs else (), watcher.note)
        )
        outdated = sum(run.ledger.is_outdated(job.slot) for job in jobs)
        watcher.begin(plan, jobs, outdated, lambda: opened.counters().queued)
        runner = Runner(source, opened.open, request.concurrency, lane=str(request.out))
        report = await _play(run, plan, runner, jobs, watcher)
        run.directory.write_report(report)
        return report


async def _play(
    run: Run, plan: Plan, runner: Runner, jobs: Sequence[Job], watcher: Watcher
) -> RunReport:
    stopped = ""
    try:
        await run.play(runner, jobs, watcher.attempt)
    except Hopeless as error:
        stopped = str(error)
    finally:
        report = make_report(run, plan, agent=runner.source.name, stopped=stopped)
        watcher.end(report)
    return report


def _manifest(request: Request, plan: Plan, source: AgentSource) -> Manifest:
    return Manifest(
        gymsuite=__version__,
        created=datetime.now(UTC).isoformat(timespec="seconds"),
        agent=source.name,
        agent_config=source.config,
        environments={
            environment.id: EnvironmentRecord(
                tasks=len(plan.tasks[environment.id]), digest=plan.digest(environment.id)
            )
            for environment in plan.environments
        },
        tasks=request.choice.count,
        split=request.choice.split,
        names=request.choice.names,
        repeats=request.repeats,
        seed=request.seed,
        machine=describe_machine(),
    )
