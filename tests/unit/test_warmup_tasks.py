import hashlib
import json
from collections import Counter

import pytest

from gymsuite import Environment, Registry, Task


@pytest.fixture(scope="module")
def warmup() -> Environment:
    return Registry.default().load("coding/warmup-v1")


def hidden_pairs(task: Task) -> list[tuple[str, str]]:
    """Arguments and results as JSON."""
    pairs = zip(task.hidden["calls"], task.hidden["results"], strict=True)
    return [(json.dumps(call), json.dumps(result)) for call, result in pairs]


def test_there_are_more_than_a_hundred_tasks_on_three_levels(warmup: Environment) -> None:
    assert len(warmup.tasks) > 100
    assert {task.level for task in warmup.tasks} == {1, 2, 3}
    assert len({task.id for task in warmup.tasks}) == len(warmup.tasks)


def test_every_level_is_in_every_split(warmup: Environment) -> None:
    found = {(task.level, task.split) for task in warmup.tasks}
    assert found == {(level, split) for level in (1, 2, 3) for split in ("train", "val", "test")}


def test_every_machine_makes_the_same_tasks(warmup: Environment) -> None:
    again = Registry.default().load("coding/warmup-v1")
    assert [task.model_dump_json() for task in again.tasks] == [
        task.model_dump_json() for task in warmup.tasks
    ]
    everything = "\n".join(task.model_dump_json() for task in warmup.tasks)
    assert hashlib.sha256(everything.encode()).hexdigest()[:16] == "f71c0ddc7838c5d9"


def test_no_two_tasks_have_the_same_hidden_calls(warmup: Environment) -> None:
    seen = Counter(json.dumps(hidden_pairs(task)) for task in warmup.tasks)
    assert set(seen.values()) == {1}


def test_a_prompt_shows_the_signature_and_two_examples_with_different_results(
    warmup: Environment,
) -> None:
    for task in warmup.tasks:
        name = task.metadata["function"]
        assert f"def {name}(" in task.prompt
        (first, one), (second, other) = task.metadata["examples"]
        assert one != other
        assert f">>> {name}({first!r})\n{one!r}" in task.prompt
        assert f">>> {name}({second!r})\n{other!r}" in task.prompt


def test_no_example_is_among_the_hidden_calls(warmup: Environment) -> None:
    for task in warmup.tasks:
        shown = {json.dumps(given) for given, _ in task.metadata["examples"]}
        assert not shown & {call for call, _ in hidden_pairs(task)}


def test_no_constant_is_right_more_often_than_chance(warmup: Environment) -> None:
    for task in warmup.tasks:
        results = Counter(result for _, result in hidden_pairs(task))
        share = max(results.values()) / results.total()
        is_truth_value = set(results) == {"true", "false"}
        assert share <= (0.5 if is_truth_value else 0.2), task.id


def test_an_echo_of_the_argument_is_rarely_right(warmup: Environment) -> None:
    for task in warmup.tasks:
        pairs = hidden_pairs(task)
        assert sum(call == result for call, result in pairs) <= len(pairs) / 5, task.id


def test_the_prompt_does_not_hold_the_solution(warmup: Environment) -> None:
    for task in warmup.tasks:
        body = str(task.solution[0].arguments["code"]).partition("    return ")[2].strip()
        assert body
        assert body not in task.prompt
