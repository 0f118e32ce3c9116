"""How far one gets without a model: players of known skill, and their table by level."""

import asyncio
import random
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from statistics import mean

from gymsuite.environment import Environment
from gymsuite.episode import Episode
from gymsuite.rollout import Agent
from gymsuite.sampling import sample_action
from gymsuite.sandbox.protocol import OpenSandbox
from gymsuite.types import Action, Message, Observation, Task, ToolCall, ToolSchema

Player = Callable[[Task], Agent]
"""Makes the agent that plays a task."""

_SUBMIT = ToolCall(id="submit", name="submit")
_MOST_RANDOM_CALLS = 30


class PlanAgent:
    """Makes the calls of a plan, then submits."""

    def __init__(self, plan: Sequence[ToolCall]) -> None:
        self._plan = iter(plan)

    async def act(self, _: Observation) -> Action:
        """The next call."""
        return Message(role="assistant", tool_calls=(next(self._plan, _SUBMIT),))


def noop(_: Task) -> Agent:
    """Submits at once."""
    return PlanAgent(())


def oracle(task: Task) -> Agent:
    """Makes the calls of the solution."""
    return PlanAgent(task.solution)


def noisy_oracle(percent: int) -> Player:
    """Makes the calls of the solution, but leaves each out in so many of a hundred cases."""

    def player(task: Task) -> Agent:
        rng = random.Random(f"noise/{task.id}")
        return PlanAgent([call for call in task.solution if rng.random() * 100 >= percent])

    return player


class _RandomAgent:
    """Makes valid calls that mean nothing."""

    def __init__(self, task: Task) -> None:
        self._rng = random.Random(f"random/{task.id}")
        self._tools: Sequence[ToolSchema] = ()
        self._left = _MOST_RANDOM_CALLS

    async def act(self, observation: Observation) -> Action:
        self._tools = observation.tools or self._tools
        self._left -= 1
        if not self._left:
            return Message(role="assistant", tool_calls=(_SUBMIT,))
        return sample_action([tool for tool in self._tools if tool.name != "submit"], self._rng)


def random_player(task: Task) -> Agent:
    """Makes valid calls that mean nothing, then submits."""
    return _RandomAgent(task)


async def success(
    environment: Environment, tasks: Sequence[Task], player: Player, open_sandbox: OpenSandbox
) -> Mapping[int, float]:
    """The share of tasks that a player passes, by level."""
    passed: dict[int, list[bool]] = defaultdict(list)
    for task in tasks:
        passed[task.level].append(await _passes(environment, task, player, open_sandbox))
    return {level: mean(of) for level, of in sorted(passed.items())}


async def _passes(
    environment: Environment, task: Task, player: Player, open_sandbox: OpenSandbox
) -> bool:
    agent = player(task)
    async with Episode(environment, open_sandbox) as episode:
        observation, _ = await episode.reset(task, 0)
        while not episode.done:
            observation = (await episode.step(await agent.act(observation))).observation
        return episode.score is not None and episode.score.passed


def table(
    environment: Environment,
    tasks: Sequence[Task],
    players: Mapping[str, Player],
    open_sandbox: OpenSandbox,
) -> str:
    """The shares as a Markdown table."""
    levels = sorted({task.level for task in tasks})
    lines = [
        "| player | " + " | ".join(f"level {level}" for level in levels) + " |",
        "|---|" + "---|" * len(levels),
    ]
    for name, player in players.items():
        shares = asyncio.run(success(environment, tasks, player, open_sandbox))
        cells = " | ".join(f"{shares[level]:.2f}" for level in levels)
        lines.append(f"| {name} | {cells} |")
    return "\n".join(lines)
