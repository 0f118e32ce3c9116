"""What policies without understanding earn in a search environment, and what its solution earns.

    python benchmarks/search_baselines.py search/hoptrail-v1 [TASKS_PER_SPLIT]

An index that is built from an image must be there already: run `gymsuite check ENV` first. Prints
one row for each policy: the share of tasks passed, and the share of right answers whatever they
cite.
"""

import argparse
import asyncio
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager

from gymsuite import Environment, Registry, Sandbox, SandboxSpec, Task
from gymsuite.errors import SandboxError
from gymsuite.search import Library, Retriever, answer_of
from gymsuite.search.floors import Known, RetrieverOf, common_answer, measure_floors


@asynccontextmanager
async def no_sandbox(_: SandboxSpec) -> AsyncIterator[Sandbox]:
    """Refuse: no search environment needs one here."""
    raise SandboxError("none here")
    yield


async def show(
    environment: Environment, tasks: Sequence[Task], remembered: Mapping[str, str]
) -> None:
    """Print the table of one split."""
    prior, times = common_answer(tasks)
    perturbed = tasks[0].metadata.get("edition") == "perturbed"
    known = Known(prior, remembered if perturbed else {})
    floors = await measure_floors(
        environment, tasks, _retriever_of(environment), no_sandbox, known=known
    )
    print(f"\n{tasks[0].split}: {len(tasks)} tasks; the most common answer, {times} times: {prior}")
    print(f"{'policy':34} passed  answer")
    for name, floor in sorted(floors.items(), key=lambda row: row[1]):
        print(f"{name:34} {floor.passed:6.3f}  {floor.answer:6.3f}")


def _retriever_of(environment: Environment) -> RetrieverOf:
    module = sys.modules[environment.verifier.__module__]

    async def of(task: Task) -> Retriever:
        if hasattr(module, "editions"):
            found: Retriever = await module.editions.open(task.metadata["edition"], no_sandbox)
            return found
        library: Library = module.library
        return await library.open()

    return of


def main() -> None:
    """Measure every split of one environment."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("environment")
    parser.add_argument("tasks", nargs="?", type=int, default=200)
    chosen = parser.parse_args()
    environment = Registry.default().load(chosen.environment)
    splits: dict[str, list[Task]] = {}
    for task in environment.tasks:
        splits.setdefault(task.split, []).append(task)

    remembered = {task.prompt: answer_of(task) for task in splits.get("true", ())}

    async def run() -> None:
        for tasks in splits.values():
            await show(environment, tasks[: chosen.tasks], remembered)

    asyncio.run(run())


if __name__ == "__main__":
    main()
