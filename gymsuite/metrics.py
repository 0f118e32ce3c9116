"""What rollouts amount to: means, pass@k, intervals, and failures apart from scores.

Rollouts are folded into one small tally per task as they come and are not kept, so that a hundred
thousand of them fit. Every task weighs the same, however many of its rollouts were scored. A
failure has no reward and enters no mean.
"""

import math
import statistics
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from gymsuite.types import Failure, Model, Score

_Z95 = 1.959963984540054


class Outcome(Protocol):
    """What is asked of a rollout."""

    @property
    def task(self) -> str:
        """The id of its task."""
        ...

    @property
    def score(self) -> Score | None:
        """Its score, unless it failed."""
        ...

    @property
    def failure(self) -> Failure | None:
        """Its failure, unless it was scored."""
        ...


class Interval(NamedTuple):
    """A confidence interval."""

    low: float
    high: float


class Summary(Model):
    """The figures of many rollouts. None is "not defined for these rollouts", never zero.

    `solved` of `scored` rollouts passed. `pass_at` and `pass_hat` are by k, each over the tasks
    with at least k scored rollouts: the chance that at least one, or every one, of k passes.
    `interval` is the 95 % confidence interval of pass@1, `reward_error` the standard error of
    `mean_reward`. `zero_variance` is the share of tasks whose rollouts, two or more, all earned
    the same: a group-relative method learns nothing from those.
    """

    tasks: int
    scored: int
    solved: int
    failures: Mapping[str, int]
    mean_reward: float | None
    reward_error: float | None
    pass_at: Mapping[int, float | None]
    pass_hat: Mapping[int, float | None]
    interval: Interval | None
    zero_variance: float | None

    @property
    def pass_at_1(self) -> float | None:
        """The mean over tasks of the share of passes."""
        return self.pass_at[1]


@dataclass(slots=True)
class TaskTally:
    """What one task's scored rollouts came to."""

    scored: int = 0
    passed: int = 0
    reward: float = 0.0
    lowest: float = math.inf
    highest: float = -math.inf

    def add(self, reward: float, *, passed: bool) -> None:
        """Count one score."""
        self.scored += 1
        self.passed += passed
        self.reward += reward
        self.lowest = min(self.lowest, reward)
        self.highest = max(self.highest, reward)


@dataclass(slots=True)
class Tally:
    """What an environment's rollouts came to, by task, with the failures by kind."""

    tasks: dict[str, TaskTally] = field(default_factory=lambda: defaultdict(TaskTally))
    failures: Counter[str] = field(default_factory=Counter)

    def add(self, outcome: Outcome) -> None:
        """Count one rollout; the final attempt at each, or a retried failure counts twice."""
        if outcome.score is not None:
            self.tasks[outcome.task].add(outcome.score.reward, passed=outcome.score.passed)
        elif outcome.failure is not None:
            self.failures[outcome.failure.kind] += 1


def summarize(tallies: Iterable[Tally], ks: Sequence[int] = (1,)) -> Summary:
    """The figures of one environment, or of several with their tasks pooled."""
    every = list(tallies)
    tasks = [task for tally in every for task in tally.tasks.values()]
    rewards = [task.reward / task.scored for task in tasks]
    repeated = [task for task in tasks if task.scored > 1]
    return Summary(
        tasks=len(tasks),
        scored=sum(task.scored for task in tasks),
        solved=sum(task.passed for task in tasks),
        failures=dict(sum((tally.failures for tally in every), Counter[str]())),
        mean_reward=statistics.fmean(rewards) if rewards else None,
        reward_error=standard_error(rewards),
        pass_at={k: _mean(pass_at_k(t.scored, t.passed, k) for t in tasks) for k in {1, *ks}},
        pass_hat={k: _mean(pass_hat_k(t.scored, t.passed, k) for t in tasks) for k in {1, *ks}},
        interval=pass_interval(tasks),
        zero_variance=_mean(float(task.lowest == task.highest) for task in repeated),
    )


def pass_at_k(scored: int, passed: int, k: int) -> float | None:
    """Estimate without bias the chance that one of k rollouts passes; None for fewer than k.

    Chen et al. 2021, "Evaluating Large Language Models Trained on Code", equation 1.
    """
    if scored < k:
        return None
    return 1.0 - math.comb(scored - passed, k) / math.comb(scored, k)


def pass_hat_k(scored: int, passed: int, k: int) -> float | None:
    """Estimate without bias the chance that all of k rollouts pass; None for fewer than k.

    Yao et al. 2024, "tau-bench", section 5.
    """
    if scored < k:
        return None
    return math.comb(passed, k) / math.comb(scored, k)


def standard_error(values: Sequence[float]) -> float | None:
    """Of their mean; None for fewer than two."""
    if len(values) < 2:  # noqa: PLR2004 - a deviation needs two
        return None
    return statistics.stdev(values) / math.sqrt(len(values))


def wilson(passed: float, total: int) -> Interval:
    """The 95 % score interval of a proportion (Wilson 1927), which holds for small totals too."""
    share, spread = passed / total, _Z95**2 / total
    center = (share + spread / 2) / (1 + spread)
    half = _Z95 / (1 + spread) * math.sqrt(share * (1 - share) / total + spread / total / 4)
    return Interval(max(0.0, center - half), min(1.0, center + half))


def pass_interval(tasks: Sequence[TaskTally]) -> Interval | None:
    """The 95 % interval of pass@1, with tasks as the independent units.

    Repeats of a task are no independent draws, so the error is taken over per-task means. Where
    that says nothing (one rollout each, one task, or all tasks alike) it is Wilson's.
    """
    if not tasks:
        return None
    if len(tasks) == 1:
        return wilson(tasks[0].passed, tasks[0].scored)
    means = [task.passed / task.scored for task in tasks]
    mean, error = statistics.fmean(means), standard_error(means)
    if not error or all(task.scored == 1 for task in tasks):
        return wilson(mean * len(tasks), len(tasks))
    return Interval(max(0.0, mean - _Z95 * error), min(1.0, mean + _Z95 * error))


def _mean(values: Iterable[float | None]) -> float | None:
    defined = [value for value in values if value is not None]
    return statistics.fmean(defined) if defined else None
