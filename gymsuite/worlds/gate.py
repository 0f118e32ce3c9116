"""The task gate: what has to be true of a task before anybody learns from it."""

import random
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

from gymsuite.environment import Environment
from gymsuite.episode import Episode
from gymsuite.errors import UsageError
from gymsuite.sampling import sample_action
from gymsuite.sandbox.protocol import OpenSandbox
from gymsuite.tools import ToolError
from gymsuite.types import Message, Score, Task, ToolCall
from gymsuite.worlds.gold import Entity
from gymsuite.worlds.server import World, attend, parameters
from gymsuite.worlds.text import Identifier

_RANDOM_CALLS = 200
_RANDOM_REWARD = 0.05

Plan = Sequence[ToolCall]


class Finding(NamedTuple):
    """A promise that a task does not keep."""

    task: str
    check: str
    message: str


@dataclass(frozen=True)
class Gate:
    """What the gate has to know of a world to try its tasks.

    `refusals` are plans that refuse a task without looking; `irrelevant` are writes that work but
    that nobody asked for. A task's `hidden` may have `alternatives` (plans that are as right as
    the solution) and `described` (entities of which exactly one row may exist).
    """

    world: World
    refusals: Callable[[Task], Sequence[Plan]]
    irrelevant: Callable[[Task], Plan]

    async def faults(
        self, environment: Environment, task: Task, open_sandbox: OpenSandbox
    ) -> tuple[str, ...]:
        """What `check` finds, each finding in a line."""
        found = await check(environment, self, task, open_sandbox)
        return tuple(f"{finding.check}: {finding.message}" for finding in found)


async def play(
    environment: Environment, task: Task, plan: Plan, open_sandbox: OpenSandbox
) -> Score:
    """The score of making these calls, and no others."""
    async with Episode(environment, open_sandbox) as episode:
        await episode.reset(task, 0)
        if plan:
            await episode.step(Message(role="assistant", tool_calls=tuple(plan)))
        if not episode.done:
            await episode.truncate("end of the plan")
        if episode.score is None:
            raise UsageError("the episode ended without a score")
        return episode.score


async def check(
    environment: Environment, gate: Gate, task: Task, open_sandbox: OpenSandbox
) -> tuple[Finding, ...]:
    """Everything about one task that a single process can tell."""
    trial = _Trial(environment, gate, task, open_sandbox)
    found = [
        *await trial.refusals(),
        *await trial.mutants(),
        *await trial.equals(),
        *await trial.random_calls(),
    ]
    return (*await check_ends(environment, gate, task, open_sandbox), *found)


async def check_ends(
    environment: Environment, gate: Gate, task: Task, open_sandbox: OpenSandbox
) -> tuple[Finding, ...]:
    """The cheap half: the solution, doing nothing, what is described, and the budget."""
    trial = _Trial(environment, gate, task, open_sandbox)
    return (*await trial.ends(), *trial.described(), *trial.budget())


class _Trial:
    """One task under trial."""

    def __init__(
        self, environment: Environment, gate: Gate, task: Task, open_sandbox: OpenSandbox
    ) -> None:
        self._environment = environment
        self._gate = gate
        self._task = task
        self._open_sandbox = open_sandbox
        self._plan: Plan = task.solution

    async def ends(self) -> list[Finding]:
        """The solution is worth 1, and doing nothing is worth nothing."""
        return [
            *await self._expect("gold", self._plan, _whole),
            *await self._expect("no-op", (), _nothing),
        ]

    async def refusals(self) -> list[Finding]:
        """Refusing without looking is worth nothing, even where refusing is right."""
        plans = self._gate.refusals(self._task)
        return [f for plan in plans for f in await self._expect("refusal", plan, _nothing)]

    async def mutants(self) -> list[Finding]:
        """A write less or a write more is not success."""
        found: list[Finding] = []
        for at, _ in await self._effects():
            plan = [*self._plan[:at], *self._plan[at + 1 :]]
            what = f"without {self._plan[at].name} (call {at})"
            found += await self._expect("write left out", plan, _less, what)
        for call in self._gate.irrelevant(self._task):
            plan = [*self._plan[:-1], call, *self._plan[-1:]]
            found += await self._expect("irrelevant write", plan, _less, f"with {call.name}")
        return found

    async def equals(self) -> list[Finding]:
        """Another order of what commutes, another registered plan, other spellings: all as good."""
        found: list[Finding] = []
        for one, other in await self._commuting():
            plan = list(self._plan)
            plan[one], plan[other] = plan[other], plan[one]
            found += await self._expect("permutation", plan, _whole, f"calls {one} and {other}")
        for alternative in self._task.hidden.get("alternatives", ()):
            plan = [ToolCall.model_validate(call) for call in alternative]
            found += await self._expect("alternative", plan, _whole)
        return found + await self._expect("spelling", [*map(self._respelt, self._plan)], _whole)

    async def random_calls(self) -> list[Finding]:
        """Many calls that are valid but mean nothing are worth next to nothing."""
        rng = random.Random(self._task.id)
        schemas = [s for s in self._environment.toolbox.schemas if s.name != "submit"]
        plan = [c for _ in range(_RANDOM_CALLS) for c in sample_action(schemas, rng).tool_calls]
        return await self._expect("random calls", plan, _next_to_nothing)

    def described(self) -> list[Finding]:
        """Whatever the prompt describes, there is exactly one of it."""
        state = self._gate.world.start(self._task)
        try:
            entities = map(Entity.model_validate, self._task.hidden.get("described", ()))
            counts = [(e, len(state.find(e.table, e.where))) for e in entities]
        finally:
            state.close()
        return [
            self._finding("described", f"{count} rows answer to {entity}")
            for entity, count in counts
            if count != 1
        ]

    def budget(self) -> list[Finding]:
        """The solution takes at most half of the steps."""
        steps, most = len(self._plan) + 1, self._environment.limits_of(self._task).max_steps
        if 2 * steps <= most:
            return []
        return [self._finding("budget", f"the solution takes {steps} of {most} steps")]

    async def _effects(self) -> list[tuple[int, frozenset[tuple[str, str]]]]:
        """The calls of the solution that change something, with the rows that they touch."""
        world = self._gate.world
        state = world.start(self._task)
        found = []
        try:
            for at, call in enumerate(self._plan):
                before = set(map(repr, state.changes()))
                if call.name in world.tool:
                    with suppress(ToolError):  # an attempt that fails is part of the plan
                        await attend(world, state, call.name, call.arguments)
                rows = {(c.table, c.id) for c in state.changes() if repr(c) not in before}
                if rows:
                    found.append((at, frozenset(rows)))
        finally:
            state.close()
        return found

    async def _commuting(self) -> list[tuple[int, int]]:
        """Neighbouring writes that touch different rows."""
        effects = await self._effects()
        return [
            (one, other) for (one, rows), (other, others) in pairwise(effects) if not rows & others
        ]

    def _respelt(self, call: ToolCall) -> ToolCall:
        """The call with every id in another case and with white space around it."""
        tool = self._gate.world.tool.get(call.name)
        if tool is None:
            return call
        ids = {p.name for p in parameters(tool) if p.annotation == Identifier}
        spelt = {
            name: f"  {value.lower()} " if name in ids else value
            for name, value in call.arguments.items()
        }
        return call.model_copy(update={"arguments": spelt})

    async def _expect(
        self, check: str, plan: Plan, holds: Callable[[Score], bool], what: str = ""
    ) -> list[Finding]:
        score = await play(self._environment, self._task, plan, self._open_sandbox)
        if holds(score):
            return []
        message = f"{what or check}: reward {score.reward:g} ({score.details})"
        return [self._finding(check, message)]

    def _finding(self, check: str, message: str) -> Finding:
        return Finding(self._task.id, check, message)


def _whole(score: Score) -> bool:
    return score.passed and score.reward == 1


def _less(score: Score) -> bool:
    return not score.passed and score.reward < 1


def _next_to_nothing(score: Score) -> bool:
    return score.reward <= _RANDOM_REWARD


def _nothing(score: Score) -> bool:
    return not score.passed and score.reward == 0
