"""What every environment promises, each promise as a check over some of its tasks."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, NamedTuple, TypeVar

from gymsuite.agents import Seat, open_agent
from gymsuite.authoring.faults import Toll, dying, without_image
from gymsuite.environment import Environment
from gymsuite.episode import Episode
from gymsuite.errors import DefinitionError, InfrastructureError
from gymsuite.rollout import rollout
from gymsuite.runs.runner import first_cause
from gymsuite.sandbox.protocol import OpenSandbox
from gymsuite.types import Observation, Rollout, Score, Submission, Task

Outcome = Literal["kept", "broken", "unknown", "moot"]
"""`unknown`: something else broke, and it could not be told. `moot`: it does not apply here."""

Item = TypeVar("Item")
Made = TypeVar("Made")

_SEED = 7
_SHORTEST_SECRET = 24
_DEATHS = (0, 1, 3)
_SHOWN = 3


class Verdict(NamedTuple):
    """Whether a promise holds, and why not."""

    outcome: Outcome
    details: str = ""


KEPT = Verdict("kept")


@dataclass
class Case:
    """Some tasks of an environment, with sandboxes. `tick` hears of each step.

    `solved` and `idle` are rollouts of the oracle and of doing nothing: the first two promises
    make them, and others look at them.
    """

    environment: Environment
    tasks: Sequence[Task]
    open_sandbox: OpenSandbox
    concurrency: int = 4
    tick: Callable[[], None] = lambda: None
    solved: Sequence[Rollout] = field(default=(), init=False)
    idle: Sequence[Rollout] = field(default=(), init=False)


Promise = Callable[[Case], Awaitable[Verdict]]


async def solution_passes(case: Case) -> Verdict:
    """The oracle is scored on every task, and passes."""
    case.solved = await _play(case, "oracle")
    return _judge(case.solved, lambda score: score.passed)


async def doing_nothing_fails(case: Case) -> Verdict:
    """An agent that submits at once is scored on every task, and does not pass."""
    case.idle = await _play(case, "noop")
    return _judge(case.idle, lambda score: not score.passed)


async def scores_the_same_again(case: Case) -> Verdict:
    """A submission gets the same reward and verdict after it was stored as JSON."""
    tasks = {task.id: task for task in case.tasks}

    async def again(record: Rollout) -> str:
        stored = Rollout.model_validate_json(record.model_dump_json())
        if stored.score is None or stored.submission is None:
            return ""
        score = await case.environment.verify(
            tasks[record.task], stored.submission, case.open_sandbox
        )
        if (score.reward, score.passed) == (stored.score.reward, stored.score.passed):
            return ""
        return f"{record.task}: reward {stored.score.reward:g}, then {score.reward:g}"

    try:
        found = await each(case, again, (*case.solved, *case.idle))
    except (InfrastructureError, DefinitionError) as error:
        return Verdict("unknown", str(error))
    return complain([line for line in found if line])


async def reset_is_pure(case: Case) -> Verdict:
    """Two episodes of one task and one seed begin with equal observations."""

    async def begin(task: Task) -> Observation:
        async with Episode(case.environment, case.open_sandbox) as episode:
            observation, _ = await episode.reset(task, _SEED)
            return observation

    changed = [task.id for task in case.tasks if await begin(task) != await begin(task)]
    case.tick()
    return complain([f"{task}: two resets differ" for task in changed])


async def hides_what_is_hidden(case: Case) -> Verdict:
    """No string of `hidden` or `solution` is in what an agent that does nothing gets to see."""
    observed = {record.task: _observed(record) for record in case.idle}
    leaks = []
    for task in case.tasks:
        seen = "\n".join([task.prompt, observed.get(task.id, ""), *task.files.values()])
        secrets = (task.hidden, [dict(call.arguments) for call in task.solution])
        leaks += [
            f"{task.id}: {secret[:60]!r}"
            for secret in _strings(secrets)
            if len(secret.strip()) >= _SHORTEST_SECRET and secret.strip() in seen
        ]
    case.tick()
    return complain(leaks)


async def survives_a_broken_image(case: Case) -> Verdict:
    """Without its image there is no score."""
    toll = Toll()
    return await _no_score(case, without_image(case.open_sandbox, toll), toll)


async def survives_a_killed_sandbox(case: Case) -> Verdict:
    """Whenever a sandbox dies, there is no score."""
    verdicts = []
    for after in _DEATHS:
        toll = Toll()
        verdicts.append(await _no_score(case, dying(case.open_sandbox, toll, after=after), toll))
    worst: Sequence[Outcome] = ("broken", "unknown", "kept", "moot")
    return min(verdicts, key=lambda verdict: worst.index(verdict.outcome))


async def survives_a_dead_verifier(case: Case) -> Verdict:
    """Neither a verifier that raises nor one that loses its sandbox gives a score."""

    async def raises(_task: Task, _submission: Submission, _open: OpenSandbox) -> Score:
        raise RuntimeError("this verifier was made to fail")

    broken = replace(case, environment=replace(case.environment, verifier=raises))
    verdict = await _no_score(broken, case.open_sandbox, Toll(struck=1))
    if verdict.outcome != "kept" or not case.solved or case.solved[0].submission is None:
        return verdict
    submission = case.solved[0].submission
    for after in _DEATHS:
        toll = Toll()
        lost = dying(case.open_sandbox, toll, after=after)
        try:
            score = await case.environment.verify(case.tasks[0], submission, lost)
        except (InfrastructureError, DefinitionError):
            continue
        if toll.struck:
            return Verdict("broken", f"its sandbox died, and it said reward {score.reward:g}")
    return KEPT


PROMISES: Mapping[str, Promise] = {
    "the solution passes": solution_passes,
    "doing nothing fails": doing_nothing_fails,
    "a stored submission scores the same again": scores_the_same_again,
    "reset is a pure function of task and seed": reset_is_pure,
    "nothing hidden is ever observed": hides_what_is_hidden,
    "a broken image gives a failure and no score": survives_a_broken_image,
    "a killed sandbox gives a failure and no score": survives_a_killed_sandbox,
    "a dead verifier gives a failure and no score": survives_a_dead_verifier,
}
"""In an order in which later ones can look at what earlier ones have played."""


def steps(tasks: int) -> int:
    """How often `tick` is called for so many tasks."""
    return 4 * tasks + 2 + 1 + len(_DEATHS) + 1


async def _play(case: Case, agent: str) -> list[Rollout]:
    async with open_agent(agent) as source:

        async def play(task: Task) -> Rollout:
            seat = Seat(case.environment, case.open_sandbox, _SEED, 0)
            make_agent = source.seat(seat)
            return await rollout(
                case.environment, task, make_agent, case.open_sandbox, seed=_SEED, agent_name=agent
            )

        return await each(case, play, case.tasks)


async def each(
    case: Case, work: Callable[[Item], Awaitable[Made]], items: Sequence[Item]
) -> list[Made]:
    """Work on all items, so many at once, and tick after each."""
    gate = asyncio.Semaphore(case.concurrency)

    async def one(item: Item) -> Made:
        async with gate:
            made = await work(item)
        case.tick()
        return made

    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(one(item)) for item in items]
    except BaseExceptionGroup as error:
        raise first_cause(error) from error
    return [task.result() for task in tasks]


async def _no_score(case: Case, open_sandbox: OpenSandbox, toll: Toll) -> Verdict:
    """Let the oracle play the first task in a broken world."""
    (record,) = await _play(
        replace(case, tasks=case.tasks[:1], open_sandbox=open_sandbox), "oracle"
    )
    if not toll.struck:
        return Verdict("moot", "no sandbox was used")
    if record.score is not None:
        return Verdict("broken", f"{record.task}: scored all the same: {record.score.reward:g}")
    return KEPT


def _judge(records: Sequence[Rollout], right: Callable[[Score], bool]) -> Verdict:
    wrong = [
        f"{r.task}: reward {r.score.reward:g} {r.score.details[:200]}"
        for r in records
        if r.score is not None and not right(r.score)
    ]
    failures = [(r.task, r.failure) for r in records if r.failure is not None]
    wrong += [f"{task}: {f.message}" for task, f in failures if f.kind == "definition"]
    if not wrong and failures:
        task, failure = failures[0]
        return Verdict("unknown", f"{len(failures)} failed; {task}: {failure.message}")
    return complain(wrong)


def complain(wrong: Sequence[str]) -> Verdict:
    """Broken, with the first of what is wrong; kept if nothing is."""
    if not wrong:
        return KEPT
    more = f"; and {len(wrong) - _SHOWN} more" if len(wrong) > _SHOWN else ""
    return Verdict("broken", "; ".join(line.strip() for line in wrong[:_SHOWN]) + more)


def _observed(record: Rollout) -> str:
    return "\n".join(message.text for message in record.messages if message.role != "assistant")


def _strings(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for part in value.values():
            yield from _strings(part)
    elif isinstance(value, list | tuple):
        for part in value:
            yield from _strings(part)
