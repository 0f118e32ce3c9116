"""What rollouts amount to."""

import itertools
import math
import random
import tracemalloc
from typing import NamedTuple

import pytest

from gymsuite import Failure, Score
from gymsuite.metrics import (
    Interval,
    Summary,
    Tally,
    TaskTally,
    pass_at_k,
    pass_hat_k,
    pass_interval,
    standard_error,
    summarize,
    wilson,
)


class _Outcome(NamedTuple):
    task: str
    score: Score | None = None
    failure: Failure | None = None


def _scored(task: str, reward: float, *, passed: bool | None = None) -> _Outcome:
    return _Outcome(task, Score(reward=reward, passed=reward >= 1 if passed is None else passed))


def _failed(task: str, kind: str = "sandbox") -> _Outcome:
    return _Outcome(task, failure=Failure(kind=kind, stage="reset", message="m"))


def _summary(*outcomes: _Outcome, ks: tuple[int, ...] = (1,)) -> Summary:
    tally = Tally()
    for outcome in outcomes:
        tally.add(outcome)
    return summarize([tally], ks)


def test_nothing_has_no_mean() -> None:
    summary = _summary()
    assert (summary.scored, summary.solved, summary.failures) == (0, 0, {})
    assert summary.mean_reward is None
    assert summary.pass_at_1 is None
    assert summary.interval is None


def test_a_failure_is_no_reward_of_zero() -> None:
    summary = _summary(_scored("a", 1), _failed("b"), _failed("c", "model"), _failed("d"))
    assert summary.mean_reward == 1.0
    assert (summary.tasks, summary.scored) == (1, 1)
    assert summary.failures == {"sandbox": 2, "model": 1}


def test_every_task_weighs_the_same() -> None:
    summary = _summary(_scored("a", 1), _scored("a", 1), _scored("a", 1), _scored("b", 0))
    assert summary.mean_reward == 0.5
    assert summary.pass_at_1 == 0.5
    assert (summary.solved, summary.scored) == (3, 4)


def test_reward_and_pass_are_two_things() -> None:
    summary = _summary(_scored("a", 0.7, passed=False), _scored("b", -1, passed=False))
    assert summary.mean_reward == pytest.approx(-0.15)
    assert summary.pass_at_1 == 0.0


@pytest.mark.parametrize(("scored", "passed", "k"), [(4, 1, 2), (5, 3, 2), (6, 6, 3), (4, 0, 4)])
def test_pass_at_k_and_pass_hat_k_count_subsets(scored: int, passed: int, k: int) -> None:
    draws = list(itertools.combinations([True] * passed + [False] * (scored - passed), k))
    assert pass_at_k(scored, passed, k) == pytest.approx(sum(map(any, draws)) / len(draws))
    assert pass_hat_k(scored, passed, k) == pytest.approx(sum(map(all, draws)) / len(draws))


def test_pass_at_more_than_there_are_is_undefined() -> None:
    assert pass_at_k(3, 3, 4) is None
    assert pass_hat_k(3, 3, 4) is None
    summary = _summary(_scored("a", 1), ks=(1, 4))
    assert summary.pass_at == {1: 1.0, 4: None}


def test_pass_at_k_leaves_out_tasks_with_fewer_than_k() -> None:
    summary = _summary(_scored("a", 1), _scored("a", 0), _scored("b", 0), ks=(2,))
    assert summary.pass_at == {1: 0.25, 2: 1.0}
    assert summary.pass_hat[2] == 0.0


def test_wilson_agrees_with_published_values() -> None:
    assert wilson(8, 10) == pytest.approx((0.4902, 0.9433), abs=1e-4)
    assert wilson(0, 10) == pytest.approx((0.0, 0.2775), abs=1e-4)


def test_one_rollout_per_task_takes_wilson() -> None:
    tasks = [TaskTally(1, passed) for passed in (1, 1, 1, 0)]
    assert pass_interval(tasks) == wilson(3, 4)


def test_repeats_of_a_task_do_not_narrow_the_interval() -> None:
    few = pass_interval([TaskTally(4, 4), TaskTally(4, 0), TaskTally(4, 2)])
    many = pass_interval([TaskTally(400, 400), TaskTally(400, 0), TaskTally(400, 200)])
    assert few == many


def test_the_error_is_taken_over_tasks() -> None:
    means = (1.0, 0.0, 0.5, 0.25)
    interval = pass_interval([TaskTally(4, int(4 * mean)) for mean in means])
    error = standard_error(means)
    assert error is not None
    mean = sum(means) / 4
    assert interval == pytest.approx((max(0, mean - 1.96 * error), mean + 1.96 * error), abs=1e-3)


def test_tasks_that_are_all_alike_leave_some_doubt() -> None:
    interval = pass_interval([TaskTally(4, 4)] * 5)
    assert interval == wilson(5, 5)
    assert interval is not None
    assert interval.low < 0.6


def test_a_single_task_is_judged_by_its_repeats() -> None:
    assert pass_interval([TaskTally(8, 4)]) == wilson(4, 8)


@pytest.mark.parametrize("repeats", [1, 4])
def test_nineteen_of_twenty_intervals_hold_the_truth(repeats: int) -> None:
    rng = random.Random(7)
    hits = 0
    for _ in range(500):
        chances = [rng.betavariate(2, 2) for _ in range(50)]
        tasks = [TaskTally(repeats, sum(rng.random() < p for _ in range(repeats))) for p in chances]
        interval = pass_interval(tasks) or Interval(1, 0)
        hits += interval.low <= 0.5 <= interval.high
    assert 0.92 <= hits / 500 <= 0.98


def test_groups_without_variance_are_counted() -> None:
    outcomes = [_scored("a", 1), _scored("a", 1), _scored("b", 1), _scored("b", 0)]
    assert _summary(*outcomes, _scored("single", 1)).zero_variance == 0.5
    assert _summary(_scored("single", 1)).zero_variance is None


def test_environments_are_pooled_task_by_task() -> None:
    first, second = Tally(), Tally()
    first.add(_scored("t", 1))
    for task in "tuv":
        second.add(_scored(task, 0))
    second.add(_failed("w"))
    summary = summarize([first, second])
    assert (summary.tasks, summary.mean_reward) == (4, 0.25)
    assert summary.failures == {"sandbox": 1}


def test_rollouts_are_not_kept() -> None:
    tally = Tally()
    tracemalloc.start()
    for number in range(100_000):
        tally.add(_scored(str(number % 50), number % 2))
    size, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert size < 1_000_000
    assert summarize([tally]).scored == 100_000


def test_a_summary_survives_json() -> None:
    summary = _summary(_scored("a", 1), _scored("b", 0), ks=(1, 2))
    assert Summary.model_validate_json(summary.model_dump_json()) == summary
    assert math.isfinite(summary.reward_error or math.nan)
