"""The ledger of a run folds attempts, and keeps no rollout."""

import tracemalloc
from dataclasses import replace

from gymsuite import Environment, Failure, Rollout, Score, Task, Usage
from gymsuite.rollout import task_digest
from gymsuite.runs.ledger import Ledger
from gymsuite.runs.log import Row
from gymsuite.runs.plan import Plan, make_plan


def _plan(environment: Environment, tasks: int = 2, repeats: int = 1) -> Plan:
    made = tuple(Task(id=f"t{number}", prompt="p") for number in range(tasks))
    return make_plan([replace(environment, tasks=made)], repeats=repeats)


def _rollout(task: str, *, reward: float | None, attempt: int = 0, prompt: str = "p") -> Rollout:
    failure = Failure(kind="model", stage="agent", message=f"busy {attempt}")
    return Rollout(
        id="i",
        environment="test/write-v1",
        task=task,
        task_digest=task_digest(Task(id=task, prompt=prompt)),
        seed=1,
        attempt=attempt,
        score=None if reward is None else Score(reward=reward, passed=reward >= 1),
        failure=failure if reward is None else None,
        usage=Usage(input_tokens=10, wall_seconds=0.5, sandbox_peak_bytes=100 * (attempt + 1)),
    )


def test_the_last_attempt_counts_and_all_of_them_cost(environment: Environment) -> None:
    plan, ledger = _plan(environment), Ledger()
    for attempt, reward in enumerate((None, None, 1.0)):
        ledger.add(_rollout("t0", reward=reward, attempt=attempt))
    tally = ledger.tallies(plan)["test/write-v1"]
    assert tally.tasks["t0"].scored == 1
    assert not tally.failures
    total = ledger.costs["test/write-v1"].total
    assert (total.input_tokens, total.wall_seconds) == (30, 1.5)
    assert total.sandbox_peak_bytes == 300
    assert ledger.wasted.total.input_tokens == 20


def test_a_rollout_that_failed_for_good_is_a_failure(environment: Environment) -> None:
    ledger = Ledger()
    ledger.add(_rollout("t0", reward=None))
    tally = ledger.tallies(_plan(environment))["test/write-v1"]
    assert tally.failures == {"model": 1}
    assert not tally.tasks
    assert ledger.messages == {"model": "busy 0"}


def test_a_score_of_a_task_that_has_changed_does_not_count(environment: Environment) -> None:
    plan, ledger = _plan(environment), Ledger()
    ledger.add(_rollout("t0", reward=1.0, prompt="another"))
    slots = list(plan)
    assert ledger.standing(slots[0]) is None
    assert [ledger.is_outdated(slot) for slot in slots] == [True, False]
    assert not ledger.tallies(plan)["test/write-v1"].tasks


def test_rows_count_like_the_rollouts_they_are_of(environment: Environment) -> None:
    records = [_rollout("t0", reward=None), _rollout("t1", reward=0.5)]
    live, stored = Ledger(), Ledger(Row.model_validate_json(r.model_dump_json()) for r in records)
    for record in records:
        live.add(record)
    plan = _plan(environment)
    assert live.tallies(plan) == stored.tallies(plan)
    assert live.wasted.total == stored.wasted.total


def test_a_rollout_takes_a_few_hundred_bytes(environment: Environment) -> None:
    record = _rollout("t0", reward=1.0)
    tracemalloc.start()
    ledger = Ledger()
    for repeat in range(10_000):
        ledger.add(record.model_copy(update={"repeat": repeat}))
    size, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert size / 10_000 < 600
