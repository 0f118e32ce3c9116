"""What policies without understanding earn in a search environment: its measured floors.

A floor has two numbers: how often the policy passed, and how often its answer was right whatever
it cited. The second is what it would earn if proofs were not asked for.
"""

import functools
import random
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import NamedTuple

from gymsuite.environment import Environment
from gymsuite.errors import DefinitionError, Truncated
from gymsuite.rollout import rollout
from gymsuite.sandbox.protocol import OpenSandbox
from gymsuite.search import baselines
from gymsuite.search.retriever import Retriever
from gymsuite.search.trails import answer_of
from gymsuite.types import Action, Message, Observation, Task, ToolCall

MEMORY = "memory of the true edition"
_NEAR, _FAR = 1, 20

RetrieverOf = Callable[[Task], Awaitable[Retriever]]
"""Where a task's documents are."""


class Floor(NamedTuple):
    """The share of tasks that a policy passed, and the share of its answers that were right."""

    passed: float
    answer: float


class Known(NamedTuple):
    """What policies may know: the most common answer, and by prompt what is true elsewhere."""

    prior: str
    remembered: Mapping[str, str] = {}


class _Scripted:
    """Plays calls one by one, then gives up."""

    def __init__(self, calls: Sequence[ToolCall]) -> None:
        self._calls = iter(calls)

    async def act(self, _: Observation) -> Action:
        call = next(self._calls, None)
        if call is None:
            raise Truncated("the script ends here")
        return Message(role="assistant", tool_calls=(call.model_copy(update={"id": "1"}),))


async def measure_floors(
    environment: Environment,
    tasks: Sequence[Task],
    retriever_of: RetrieverOf,
    open_sandbox: OpenSandbox,
    *,
    known: Known | None = None,
) -> Mapping[str, Floor]:
    """Play every policy in every task, the solution among them.

    Without `known`, policies know the most common answer of these tasks. Raises
    `DefinitionError` for an environment that works out no solutions, or whose scorer breaks.
    """
    known = known or Known(common_answer(tasks)[0])
    passed: Counter[str] = Counter()
    right: Counter[str] = Counter()
    for task in tasks:
        retriever = await retriever_of(task)
        plans = await _plans(environment, retriever, task, known, open_sandbox)
        for name, calls in plans.items():
            seated = functools.partial(_seat, _Scripted(calls))
            record = await rollout(environment, task, seated, open_sandbox)
            if record.score is None:
                raise DefinitionError(f"{environment.id}: {task.id}, {name}: {record.failure}")
            passed[name] += record.score.passed
            right[name] += int(record.score.metrics["answer"])
    return {name: Floor(passed[name] / len(tasks), right[name] / len(tasks)) for name in passed}


def common_answer(tasks: Sequence[Task]) -> tuple[str, int]:
    """The most common answer of some tasks, and how often it is one."""
    return Counter(answer_of(task) for task in tasks).most_common(1)[0]


async def _plans(
    environment: Environment,
    retriever: Retriever,
    task: Task,
    known: Known,
    open_sandbox: OpenSandbox,
) -> dict[str, baselines.Calls]:
    """What each policy would do in a task."""
    if environment.solve is None:
        raise DefinitionError(f"{environment.id} works out no solutions")
    solution = tuple(await environment.solve(task, open_sandbox))
    question = task.prompt.split("\n")[0]
    rng = random.Random(task.id)
    first = await baselines.guess_from(retriever, question, rng, _NEAR)
    passage = await baselines.guess_from(retriever, question, rng, _FAR)
    memory = known.remembered.get(task.prompt)
    recalled = {} if memory is None else {MEMORY: baselines.answered(solution, memory)}
    return {
        **recalled,
        "no-op": baselines.answer_only(""),
        "most common answer": baselines.answer_only(known.prior),
        "no search, name in the question": baselines.answer_only(_word(question, rng)),
        "random passage": baselines.one_shot(question, passage),
        "first passage": baselines.one_shot(question, first),
        "solution, nothing opened": baselines.unopened(solution),
        "solution, citations shuffled": baselines.shuffled(solution),
        "solution, everything cited": baselines.stuffed(solution),
        "solution": solution,
    }


def _word(question: str, rng: random.Random) -> str:
    return rng.choice(question.rstrip("?").split())


def _seat(agent: _Scripted, _: Task) -> _Scripted:
    return agent
