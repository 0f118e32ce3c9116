"""The tool worlds as tests meet them: an environment with the modules and tasks it is made of."""

import asyncio
import importlib
import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from types import ModuleType
from typing import Any

from gymsuite import Environment, Episode, Message, Score, Task, ToolCall
from gymsuite.registry import Registry
from gymsuite.suite import suite_root
from gymsuite.worlds.gate import play
from gymsuite.worlds.procedural import Procedural
from gymsuite.worlds.replay import no_sandbox

SPLITS = ("train", "val", "test-iid", "test-ood")
REGISTRY = suite_root() / "registry.yaml"


@dataclass(frozen=True)
class ToolWorld:
    """One environment, loaded once."""

    name: str
    environment: Environment

    def part(self, module: str) -> ModuleType:
        """A module of the environment's folder."""
        folder = re.sub(r"\W", "_", self.name)
        package = next(m for m in sys.modules if re.fullmatch(rf"_gymsuite_{folder}_\w+", m))
        return importlib.import_module(f"{package}.{module}")

    def tasks(self, split: str, count: int) -> list[Task]:
        """The first tasks of a split; no task is made twice."""
        assert isinstance(self.environment.tasks, Procedural)
        return [self.environment.tasks.at(split, index) for index in range(count)]

    def score(self, task: Task, plan: Sequence[ToolCall]) -> Score:
        """What making these calls is worth."""
        return asyncio.run(play(self.environment, task, plan, no_sandbox))

    def reply(self, task: Task, action: Message) -> str:
        """What comes back first after this action."""

        async def run() -> str:
            async with Episode(self.environment, no_sandbox) as episode:
                await episode.reset(task, 0)
                return (await episode.step(action)).observation.messages[0].text

        return asyncio.run(run())

    def complaint(self, task: Task, name: str, arguments: Mapping[str, Any]) -> str:
        """What a bad call is told; the episode goes on, and its solution is worth as much."""

        async def run() -> str:
            async with Episode(self.environment, no_sandbox) as episode:
                await episode.reset(task, 0)
                call = ToolCall(id="x", name=name, arguments=dict(arguments))
                step = await episode.step(Message(role="assistant", tool_calls=(call,)))
                reply = step.observation.messages[0].text
                plan = (*task.solution, ToolCall(name="submit"))
                step = await episode.step(Message(role="assistant", tool_calls=plan))
                assert (step.terminated, step.reward) == (True, 1.0)
                return reply

        reply = asyncio.run(run())
        assert reply.startswith("error: ")
        assert len(reply) < 2000
        return reply


@cache
def load(name: str) -> ToolWorld:
    """The tool world of this id, once for all tests: its tasks take a while to make."""
    return ToolWorld(name, Registry(REGISTRY).load(name))
