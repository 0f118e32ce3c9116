"""What policies without understanding earn in a search environment, and what its solution earns.

    python benchmarks/search_baselines.py search/hoptrail-v1 [TASKS_PER_SPLIT]

An index that is built from an image must be there already: run `gymsuite check ENV` first. Prints
one row for each policy: the share of tasks passed, and the share of right answers whatever they
cite.
"""

import argparse
import asyncio
import functools
import random
import sys
from collections import Counter
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass

from gymsuite import Environment, Message, Registry, Sandbox, SandboxSpec, Task, rollout
from gymsuite.errors import SandboxError, Truncated
from gymsuite.search import Library, Retriever, baselines
from gymsuite.types import Action, Observation, ToolCall


class Scripted:
    """Plays calls one by one, then gives up."""

    def __init__(self, calls: Sequence[ToolCall]) -> None:
        self._calls = iter(calls)

    async def act(self, _: Observation) -> Action:
        """Play the next call."""
        call = next(self._calls, None)
        if call is None:
            raise Truncated("the script ends here")
        return Message(role="assistant", tool_calls=(call.model_copy(update={"id": "1"}),))


@asynccontextmanager
async def no_sandbox(_: SandboxSpec) -> AsyncIterator[Sandbox]:
    """Refuse: no search environment needs one here."""
    raise SandboxError("none here")
    yield


@dataclass(frozen=True)
class Known:
    """What policies may know: the split's most common answer, and what is true elsewhere."""

    prior: str
    remembered: Mapping[str, str]


async def plans(
    environment: Environment, retriever: Retriever, task: Task, known: Known
) -> dict[str, Sequence[ToolCall]]:
    """What each policy would do in a task."""
    if environment.solve is None:
        raise SystemExit(f"{environment.id} works out no solutions")
    solution = await environment.solve(task, no_sandbox)
    question = task.prompt.split("\n")[0]
    rng = random.Random(task.id)
    first = await baselines.guess_from(retriever, question, rng, 1)
    passage = await baselines.guess_from(retriever, question, rng, 20)
    memory = known.remembered.get(task.prompt)
    recalled = {} if memory is None else {
        "memory of the true edition": baselines.answered(solution, memory)
    }  # fmt: skip
    return {
        **recalled,
        "no-op": baselines.answer_only(""),
        "most common answer": baselines.answer_only(known.prior),
        "no search, name in the question": baselines.answer_only(_name(question, rng)),
        "random passage": baselines.one_shot(question, passage),
        "first passage": baselines.one_shot(question, first),
        "solution, nothing opened": baselines.unopened(solution),
        "solution, citations shuffled": baselines.shuffled(solution),
        "solution, everything cited": baselines.stuffed(solution),
        "solution": solution,
    }


def _name(question: str, rng: random.Random) -> str:
    return rng.choice(question.rstrip("?").split())


async def measure(
    environment: Environment, tasks: Sequence[Task], remembered: Mapping[str, str]
) -> None:
    """Print the table of one split."""
    prior, times = Counter(_first(task) for task in tasks).most_common(1)[0]
    known = Known(prior, remembered if tasks[0].metadata.get("edition") == "perturbed" else {})
    passed: Counter[str] = Counter()
    right: Counter[str] = Counter()
    for task in tasks:
        retriever = await _retriever(environment, task)
        for name, calls in (await plans(environment, retriever, task, known)).items():
            agent = Scripted(calls)
            record = await rollout(environment, task, functools.partial(_seat, agent), no_sandbox)
            if record.score is None:
                raise SystemExit(f"{task.id}, {name}: {record.failure}")
            passed[name] += record.score.passed
            right[name] += int(record.score.metrics["answer"])
    print(f"\n{tasks[0].split}: {len(tasks)} tasks; the most common answer, {times} times: {prior}")
    print(f"{'policy':34} passed  answer")
    for name in sorted(right, key=lambda name: (passed[name], right[name])):
        print(f"{name:34} {passed[name] / len(tasks):6.3f}  {right[name] / len(tasks):6.3f}")


def _seat(agent: Scripted, _: Task) -> Scripted:
    return agent


def _first(task: Task) -> str:
    answer = task.hidden["answer"]
    if answer["kind"] == "set":
        return ", ".join(item[0] for item in answer["items"])
    return str(answer["answers"][0] if answer["kind"] == "text" else answer["value"])


async def _retriever(environment: Environment, task: Task) -> Retriever:
    module = sys.modules[environment.verifier.__module__]
    if hasattr(module, "editions"):
        found: Retriever = await module.editions.open(task.metadata["edition"], no_sandbox)
        return found
    library: Library = module.library
    return await library.open()


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

    remembered = {task.prompt: _first(task) for task in splits.get("true", ())}

    async def run() -> None:
        for tasks in splits.values():
            await measure(environment, tasks[: chosen.tasks], remembered)

    asyncio.run(run())


if __name__ == "__main__":
    main()
