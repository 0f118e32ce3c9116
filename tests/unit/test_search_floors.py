"""What policies without understanding earn: bounds that every search environment keeps."""

import asyncio
import sys

import pytest

from gymsuite import Registry, Task
from gymsuite.search import Retriever
from gymsuite.search.floors import Floor, Known, common_answer, measure_floors

from .conftest import no_sandbox

EACH = 12
NO_SEARCH, RANDOM_PASSAGE, PRIOR = 0.05, 0.02, 0.05
UNPROVED = ("nothing opened", "citations shuffled", "everything cited")


@pytest.mark.parametrize("name", ["search/hoptrail-v1", "search/dossier-v1"])
def test_only_finding_and_proving_pays(name: str) -> None:
    environment = Registry.default().load(name)
    library = sys.modules[environment.verifier.__module__].library

    async def retriever(_: Task) -> Retriever:
        found: Retriever = await library.open()
        return found

    for split in sorted({task.split for task in environment.tasks}):
        tasks = [task for task in environment.tasks if task.split == split]
        prior, times = common_answer(tasks)
        assert times <= PRIOR * len(tasks)
        sample = tasks[:: len(tasks) // EACH][:EACH]
        measuring = measure_floors(environment, sample, retriever, no_sandbox, known=Known(prior))
        floors = dict(asyncio.run(measuring))
        assert floors.pop("solution") == Floor(1.0, 1.0)
        assert floors["no-op"].answer == 0.0
        assert floors["no search, name in the question"].answer <= NO_SEARCH
        assert floors["random passage"].answer <= RANDOM_PASSAGE
        for policy in UNPROVED:
            assert floors[f"solution, {policy}"].passed == 0.0
        assert {floor.passed for floor in floors.values()} == {0.0}
