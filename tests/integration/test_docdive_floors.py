"""What policies without understanding earn over real documentation, also those that remember it."""

import sys
from collections.abc import Mapping

import pytest

from gymsuite import OpenSandbox, Registry, Task
from gymsuite.search import Retriever, answer_of
from gymsuite.search.floors import MEMORY, Floor, Known, common_answer, measure_floors

from .conftest import InSuite

EACH = 8
NO_SEARCH, RANDOM_PASSAGE, PRIOR = 0.05, 0.02, 0.05


@pytest.mark.timeout(1200)  # the first one here builds the image
def test_only_finding_and_proving_pays_and_memory_is_wrong(in_suite: InSuite) -> None:
    environment = Registry.default().load("search/docdive-v1")
    editions = sys.modules[environment.verifier.__module__].editions
    splits: dict[str, list[Task]] = {}
    for task in environment.tasks:
        splits.setdefault(task.split, []).append(task)
    remembered = {task.prompt: answer_of(task) for task in splits["true"]}

    async def measure(open_sandbox: OpenSandbox) -> dict[str, Mapping[str, Floor]]:
        async def retriever(task: Task) -> Retriever:
            found: Retriever = await editions.open(task.metadata["edition"], open_sandbox)
            return found

        floors = {}
        for split, tasks in splits.items():
            known = Known(common_answer(tasks)[0], {} if split == "true" else remembered)
            sample = tasks[:: len(tasks) // EACH][:EACH]
            floors[split] = await measure_floors(
                environment, sample, retriever, open_sandbox, known=known
            )
        return floors

    measured = in_suite(measure)
    assert measured["test"][MEMORY] == Floor(0.0, 0.0)
    for split, floors in measured.items():
        assert floors["solution"] == Floor(1.0, 1.0)
        assert {floor.passed for name, floor in floors.items() if name != "solution"} == {0.0}
        if split != "true":  # where memory is right, only proof counts
            assert common_answer(splits[split])[1] <= PRIOR * len(splits[split])
            assert floors["no search, name in the question"].answer <= NO_SEARCH
            assert floors["random passage"].answer <= RANDOM_PASSAGE
