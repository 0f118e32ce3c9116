"""Plays cheats in an environment: each has to be scored exactly as doing nothing is."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from functools import partial

from gymsuite.agents import Seat, open_agent
from gymsuite.authoring.check import CheckRequest, Finding, Watcher
from gymsuite.authoring.promises import KEPT, Verdict
from gymsuite.authoring.redteam.cheat import Cheat
from gymsuite.environment import Environment
from gymsuite.rollout import AgentFactory, rollout
from gymsuite.runs.plan import Choice, make_plan
from gymsuite.runs.runner import first_cause
from gymsuite.runs.sandboxes import images_of, open_sandboxes
from gymsuite.sandbox.protocol import OpenSandbox
from gymsuite.types import Action, Message, Observation, Rollout, Task, ToolCall

_SEED = 7


class Scripted:
    """An agent that makes its calls in one action after another, whatever it observes."""

    def __init__(self, calls: Sequence[ToolCall]) -> None:
        self._calls = iter(calls)

    async def act(self, _: Observation) -> Action:
        """Make the next call."""
        call = next(self._calls, None)
        return Message(role="assistant", tool_calls=(call,) if call else ())


async def attack(
    environment: Environment, cheats: Sequence[Cheat], request: CheckRequest, watcher: Watcher
) -> list[Finding]:
    """Play every cheat on every chosen task; a finding for each cheat, the solution's first.

    A cheat that the environment has no tool for is moot. One whose rollout broke is unknown.
    """
    count = request.count or 1
    tasks = make_plan([environment], Choice(count)).tasks[environment.id]
    watcher.begin(len(cheats) + 1)
    findings: dict[str, Finding] = {}
    gate = asyncio.Semaphore(request.concurrency)

    async def look(promise: str, work: Callable[[], Awaitable[Verdict]]) -> None:
        async with gate:
            started = time.monotonic()
            verdict = await work()
        finding = Finding(
            promise=promise,
            outcome=verdict.outcome,
            details=verdict.details,
            seconds=time.monotonic() - started,
        )
        findings[promise] = finding
        watcher.found(finding)
        watcher.tick()

    images = sorted(images_of(environment, tasks))
    async with open_sandboxes(request.sandboxes, images, watcher.note) as opened:
        plays = _Plays(environment, tasks, opened.open)
        await look("the solution passes", plays.solution)
        try:
            async with asyncio.TaskGroup() as group:
                for cheat in cheats:
                    group.create_task(look(cheat.name, partial(plays.cheat, cheat)))
        except BaseExceptionGroup as error:
            raise first_cause(error) from error
    return [findings[name] for name in ("the solution passes", *(c.name for c in cheats))]


class _Plays:
    """Plays the tasks of an environment, and remembers what doing nothing scores."""

    def __init__(
        self, environment: Environment, tasks: Sequence[Task], open_sandbox: OpenSandbox
    ) -> None:
        self._environment = environment
        self._tasks = tasks
        self._open = open_sandbox
        self._nothing: dict[str, asyncio.Task[Rollout]] = {}

    async def solution(self) -> Verdict:
        """The oracle passes."""
        async with open_agent("oracle") as source:
            seat = Seat(self._environment, self._open, _SEED, 0)
            played = [await self._play(task, source.seat(seat)) for task in self._tasks]
        for record in played:
            if record.score is None:
                return Verdict("unknown", f"{record.task}: {record.failure}")
            if not record.score.passed:
                return Verdict("broken", f"{record.task}: {record.score.details[:200]}")
        return KEPT

    async def cheat(self, cheat: Cheat) -> Verdict:
        """A cheat is scored as nothing is, on every task."""
        calls = cheat.calls(self._environment.toolbox)
        if calls is None:
            return Verdict("moot", f"no tool to play it with; it is played {cheat.kind}")
        for task in self._tasks:
            nothing = (await self._of_nothing(task)).score
            record = await self._play(task, lambda _: Scripted(calls))
            if nothing is None or record.score is None:
                return Verdict("unknown", f"{task.id}: {record.failure}")
            got, wanted = record.score, nothing
            if (got.reward, got.passed) != (wanted.reward, wanted.passed):
                return Verdict(
                    "broken", f"{task.id}: reward {got.reward:g}, and nothing {wanted.reward:g}"
                )
        return KEPT

    async def _of_nothing(self, task: Task) -> Rollout:
        if task.id not in self._nothing:
            submit = ToolCall(id="submit", name="submit")
            played = self._play(task, lambda _: Scripted((submit,)))
            self._nothing[task.id] = asyncio.ensure_future(played)
        return await self._nothing[task.id]

    async def _play(self, task: Task, make_agent: AgentFactory) -> Rollout:
        return await rollout(
            self._environment, task, make_agent, self._open, seed=_SEED, agent_name="red team"
        )
