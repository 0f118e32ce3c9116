"""Agents without a model: the oracle, one that does nothing, a random one, and a replay."""

import random
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager

from gymsuite.agents.source import AgentOptions, AgentSource, Seat
from gymsuite.environment import Solve
from gymsuite.errors import DefinitionError, GymsuiteError, Truncated, UsageError, describe
from gymsuite.rollout import AgentFactory
from gymsuite.sampling import sample_action
from gymsuite.types import Action, Message, Observation, Task, ToolCall, ToolSchema

_SUBMIT = ToolCall(id="submit", name="submit")


@asynccontextmanager
async def oracle(_: AgentOptions) -> AsyncIterator[AgentSource]:
    """Replays the task's own solution; what it scores proves the environment."""

    def seat(place: Seat) -> AgentFactory:
        return lambda task: OracleAgent(task, place)

    yield AgentSource("oracle", {}, seat)


@asynccontextmanager
async def noop(_: AgentOptions) -> AsyncIterator[AgentSource]:
    """Submits at once; what it scores must be nothing."""
    yield AgentSource("noop", {}, lambda _: lambda _: NoopAgent())


@asynccontextmanager
async def random_agent(_: AgentOptions) -> AsyncIterator[AgentSource]:
    """Draws tool calls from their schemas: the same ones for the same task, seed and repeat."""

    def seat(place: Seat) -> AgentFactory:
        return lambda task: RandomAgent(random.Random(f"{task.id}/{place.seed}"))

    yield AgentSource("random", {}, seat)


@asynccontextmanager
async def replay(options: AgentOptions) -> AsyncIterator[AgentSource]:
    """Repeats the recorded actions of a stored run."""
    recorded = options.recorded
    if recorded is None:
        raise UsageError("agent 'replay' needs the run directory to replay: --replay RUN")

    def seat(place: Seat) -> AgentFactory:
        return lambda task: ReplayAgent(recorded(place.environment.id, task.id, place.repeat))

    yield AgentSource("replay", {}, seat)


class OracleAgent:
    """One call of the solution per turn, then submits."""

    def __init__(self, task: Task, place: Seat) -> None:
        self._task = task
        self._place = place
        self._calls: Iterator[ToolCall] | None = None

    async def act(self, observation: Observation) -> Action:
        """Make the next call; raises `DefinitionError` for a task that has no solution."""
        if self._calls is None:
            self._calls = iter((*await self._solution(), *_ending(observation.tools)))
        call = next(self._calls, None)
        return Message(role="assistant", tool_calls=(call,) if call else ())

    async def _solution(self) -> Sequence[ToolCall]:
        calls = self._task.solution
        environment = self._place.environment
        if not calls and environment.solve is not None:
            calls = await _solve(environment.solve, self._task, self._place)
        if not calls:
            raise DefinitionError(
                f"{environment.id}: task {self._task.id!r} has no solution to replay; give it a "
                "`solution`, or the environment a `solve`"
            )
        return [
            call if call.id else call.model_copy(update={"id": f"solution_{number}"})
            for number, call in enumerate(calls)
        ]


async def _solve(solve: Solve, task: Task, place: Seat) -> tuple[ToolCall, ...]:
    """Name the author of what `solve` raises by accident: it is no agent's fault."""
    where = f"solve() of {place.environment.id} for task {task.id!r}"
    try:
        calls = await solve(task, place.open_sandbox)
    except GymsuiteError:
        raise
    except (Exception, SystemExit) as error:
        raise DefinitionError(f"{where} raised {describe(error)}") from error
    if isinstance(calls, tuple | list) and all(isinstance(call, ToolCall) for call in calls):
        return tuple(calls)
    raise DefinitionError(f"{where} returned {calls!r:.80}, not a tuple of ToolCall")


class NoopAgent:
    """Submits at once, or says nothing where there is no such tool."""

    async def act(self, observation: Observation) -> Action:
        """End the episode."""
        return Message(role="assistant", tool_calls=tuple(_ending(observation.tools)))


class RandomAgent:
    """Acts at random, until the episode ends it."""

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng
        self._tools: Sequence[ToolSchema] = ()

    async def act(self, observation: Observation) -> Action:
        """Draw one action."""
        self._tools = observation.tools or self._tools
        return sample_action(self._tools, self._rng)


class ReplayAgent:
    """Repeats actions in their order, whatever it observes."""

    def __init__(self, actions: Sequence[Action]) -> None:
        self._actions = iter(actions)

    async def act(self, _: Observation) -> Action:
        """Return the next action; raises `Truncated` after the last."""
        action = next(self._actions, None)
        if action is None:
            raise Truncated("the recording ends here")
        return action


def _ending(tools: Sequence[ToolSchema]) -> tuple[ToolCall, ...]:
    return (_SUBMIT,) if any(tool.name == _SUBMIT.name for tool in tools) else ()
