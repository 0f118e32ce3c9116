"""The figures of a run: scores, failures apart from them, and what both cost."""

from collections.abc import Mapping, Sequence
from typing import Any

from gymsuite.metrics import Interval, Tally, summarize
from gymsuite.runs.ledger import Costs
from gymsuite.runs.plan import Plan
from gymsuite.runs.run import Run
from gymsuite.types import Model, Usage


class Figures(Model):
    """What some environments came to, their tasks pooled. See `metrics.Summary`.

    `tasks` and `planned` are those of the plan; `missing` rollouts were never finished.
    """

    tasks: int
    planned: int
    scored: int
    solved: int
    failures: int
    failures_by_kind: Mapping[str, int]
    missing: int
    mean_reward: float | None
    reward_error: float | None
    pass_at_1: float | None
    interval: Interval | None
    pass_at: Mapping[int, float | None]
    pass_hat: Mapping[int, float | None]
    zero_variance: float | None
    usage: Usage


class RunReport(Model):
    """The figures of a run and of each of its environments.

    `seconds` is the wall time of all commands together, `suite_cpu_seconds` the CPU time of their
    processes. `wasted` is the part of the usage that failed attempts took; `failure_messages` has
    the last one of each kind; `stopped` says why a run was given up.
    """

    run: str
    agent: str
    repeats: int
    total: Figures
    environments: Mapping[str, Figures]
    seconds: float
    suite_cpu_seconds: float
    wasted: Usage
    stopped: str = ""
    failure_messages: Mapping[str, str]

    @property
    def complete(self) -> bool:
        """Whether every rollout of the plan has a score."""
        return self.total.failures == 0 and self.total.missing == 0

    @property
    def cpu_seconds(self) -> float:
        """CPU time of the suite, the sandboxes and the verifiers."""
        usage = self.total.usage
        return self.suite_cpu_seconds + usage.sandbox_cpu_seconds + usage.verifier_cpu_seconds

    def flat(self) -> dict[str, Any]:
        """As one JSON object, with the total figures at its top level."""
        own = self.model_dump(mode="json", exclude={"total"})
        total = self.total.model_dump(mode="json")
        return {**own, **total, "cpu_seconds": self.cpu_seconds}


def make_report(run: Run, plan: Plan, *, agent: str, stopped: str = "") -> RunReport:
    """Sum up what is known of a plan's rollouts."""
    ledger, timings = run.ledger, run.timings
    tallies = ledger.tallies(plan)
    usages = {name: ledger.costs.get(name, Costs()).total for name in tallies}
    whole = Costs()
    for usage in usages.values():
        whole.add(usage)
    tasks = {name: len(plan.tasks[name]) for name in tallies}
    failed = {kind for tally in tallies.values() for kind in tally.failures}
    return RunReport(
        run=str(run.directory.path),
        agent=agent,
        repeats=plan.repeats,
        total=_figures(list(tallies.values()), sum(tasks.values()), plan.repeats, whole.total),
        environments={
            name: _figures([tally], tasks[name], plan.repeats, usages[name])
            for name, tally in tallies.items()
        },
        seconds=sum(timing.seconds for timing in timings),
        suite_cpu_seconds=sum(timing.cpu_seconds for timing in timings),
        wasted=ledger.wasted.total,
        stopped=stopped,
        failure_messages={kind: ledger.messages[kind] for kind in sorted(failed)},
    )


def _figures(tallies: Sequence[Tally], tasks: int, repeats: int, usage: Usage) -> Figures:
    summary = summarize(tallies, (1, repeats))
    failures = sum(summary.failures.values())
    planned = tasks * repeats
    return Figures(
        tasks=tasks,
        planned=planned,
        scored=summary.scored,
        solved=summary.solved,
        failures=failures,
        failures_by_kind=summary.failures,
        missing=planned - summary.scored - failures,
        mean_reward=summary.mean_reward,
        reward_error=summary.reward_error,
        pass_at_1=summary.pass_at_1,
        interval=summary.interval,
        pass_at=summary.pass_at,
        pass_hat=summary.pass_hat,
        zero_variance=summary.zero_variance,
        usage=usage,
    )
