"""Which rollouts a run consists of."""

from collections import Counter
from dataclasses import replace

import pytest

from gymsuite import Environment, Task, UsageError
from gymsuite.runs.plan import Choice, make_plan, rollout_seed


def _environment(environment: Environment, tasks: int, name: str = "test/e-v1") -> Environment:
    made = tuple(
        Task(id=f"t{n}", prompt="p", split="test" if n % 4 == 0 else "train", level=n // 10)
        for n in range(tasks)
    )
    return replace(environment, id=name, tasks=made)


def test_every_task_of_every_environment_is_played_every_time(environment: Environment) -> None:
    pair = [_environment(environment, 3, "a/x-v1"), _environment(environment, 2, "b/y-v1")]
    plan = make_plan(pair, repeats=2)
    keys = [slot.key for slot in plan]
    assert len(plan) == len(keys) == len(set(keys)) == 10
    assert Counter(key.environment for key in keys) == {"a/x-v1": 6, "b/y-v1": 4}


def test_every_task_comes_once_before_any_comes_twice(environment: Environment) -> None:
    plan = make_plan([_environment(environment, 5)], repeats=3)
    assert [slot.repeat for slot in plan] == [0] * 5 + [1] * 5 + [2] * 5


def test_a_plan_is_the_same_every_time(environment: Environment) -> None:
    first, again = (
        [(s.key, s.seed) for s in make_plan([_environment(environment, 20)], Choice(7), seed=3)]
        for _ in range(2)
    )
    assert first == again


def test_a_larger_choice_contains_a_smaller_one(environment: Environment) -> None:
    few, many, other_seed = (
        {slot.task.id for slot in make_plan([_environment(environment, 100)], Choice(n), seed=s)}
        for n, s in ((10, 0), (30, 0), (10, 5))
    )
    assert few < many
    assert few == other_seed


def test_a_choice_is_spread_over_the_environment(environment: Environment) -> None:
    plan = make_plan([_environment(environment, 100)], Choice(30))
    assert len({slot.task.level for slot in plan}) >= 7


def test_more_than_there_are_is_all_of_them(environment: Environment) -> None:
    assert len(make_plan([_environment(environment, 3)], Choice(10))) == 3


def test_seeds_differ_by_run_task_and_repeat() -> None:
    seeds = {
        rollout_seed(seed, name, task, repeat)
        for seed in (0, 1)
        for name in ("a/x-v1", "b/y-v1")
        for task in ("t", "u")
        for repeat in (0, 1)
    }
    assert len(seeds) == 16


def test_a_seed_is_the_same_on_every_machine() -> None:
    assert rollout_seed(0, "coding/pybugs-v1", "t", 0) == 1380676339


def test_a_split_leaves_out_the_others(environment: Environment) -> None:
    plan = make_plan([_environment(environment, 8)], Choice(split="test"))
    assert [slot.task.id for slot in plan] == ["t0", "t4"]


def test_a_split_without_tasks_names_those_there_are(environment: Environment) -> None:
    with pytest.raises(UsageError, match=r"'dev'.*test, train"):
        make_plan([_environment(environment, 8)], Choice(split="dev"))


def test_tasks_are_chosen_by_their_ids(environment: Environment) -> None:
    pair = [_environment(environment, 8), _environment(environment, 3, "b/y-v1")]
    plan = make_plan(pair, Choice(names=("t6", "t2", "t1")))
    assert [task.id for task in plan.tasks["test/e-v1"]] == ["t1", "t2", "t6"]
    assert [task.id for task in plan.tasks["b/y-v1"]] == ["t1", "t2"]


def test_an_id_of_no_task_is_a_mistake(environment: Environment) -> None:
    pair = [_environment(environment, 8), _environment(environment, 3, "b/y-v1")]
    with pytest.raises(UsageError, match=r"e-v1, b/y-v1 has no task 't66'; did you mean 't6'"):
        make_plan(pair, Choice(names=("t1", "t66")))
    with pytest.raises(UsageError, match="b/y-v1 has none of the tasks t5, t6"):
        make_plan(pair, Choice(names=("t5", "t6")))


def test_an_environment_named_twice_is_a_mistake(environment: Environment) -> None:
    with pytest.raises(UsageError, match="twice"):
        make_plan([environment, environment])


def test_the_digest_follows_the_content_of_the_tasks(environment: Environment) -> None:
    before = _environment(environment, 3)
    changed = (before.tasks[0].model_copy(update={"prompt": "q"}), *before.tasks[1:])
    first, second = make_plan([before]), make_plan([replace(before, tasks=changed)])
    assert first.digest("test/e-v1") != second.digest("test/e-v1")
    assert first.digest("test/e-v1") == make_plan([before]).digest("test/e-v1")
