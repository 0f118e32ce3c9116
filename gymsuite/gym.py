"""The same environments as `gymnasium.Env`; the only module that imports gymnasium.

Importing it registers every id, so that `gymnasium.make("gymsuite.gym:coding/pybugs-v1")` works.
"""

import operator
import random
import warnings
from collections.abc import Mapping
from typing import Any, SupportsIndex

import gymnasium
from gymnasium.utils.env_checker import check_env

from gymsuite.environment import Environment
from gymsuite.episode import Episode
from gymsuite.errors import UsageError
from gymsuite.portal import LazyProvider, Portal
from gymsuite.registry import Registry
from gymsuite.sampling import sample_action
from gymsuite.sandbox.protocol import OpenSandbox
from gymsuite.suite import default_cache
from gymsuite.types import Action, Message, Observation, Task, ToolSchema
from gymsuite.worlds.procedural import find_task


class ActionSpace(gymnasium.Space[Action]):
    """Assistant messages. Samples call one of the environment's tools."""

    def __init__(self, tools: tuple[ToolSchema, ...], seed: int | None = None) -> None:
        self.tools = tools
        super().__init__(seed=seed)

    @property
    def is_np_flattenable(self) -> bool:
        """A message is no array."""
        return False

    def sample(self, mask: Any = None, probability: Any = None) -> Action:  # noqa: ANN401, ARG002 - overridden
        """A random but valid action."""
        rng = random.Random(int(self.np_random.integers(2**63)))
        return sample_action(self.tools, rng)

    def contains(self, x: object) -> bool:
        """Whether `x` is an assistant message."""
        return isinstance(x, Message) and x.role == "assistant"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ActionSpace) and other.tools == self.tools

    __hash__ = None  # type: ignore[assignment]


class ObservationSpace(gymnasium.Space[Observation]):
    """Tuples of messages with the tools that go with them."""

    @property
    def is_np_flattenable(self) -> bool:
        """An observation is no array."""
        return False

    def sample(self, mask: Any = None, probability: Any = None) -> Observation:  # noqa: ANN401, ARG002 - overridden
        """An observation of one short message."""
        text = f"sample {int(self.np_random.integers(1000))}"
        return Observation((Message(role="user", content=text),))

    def contains(self, x: object) -> bool:
        """Whether `x` is an `Observation`."""
        return isinstance(x, Observation) and all(isinstance(m, Message) for m in x.messages)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ObservationSpace)

    __hash__ = None  # type: ignore[assignment]


class GymEnv(gymnasium.Env[Observation, Action]):
    """Forwards each call to an `Episode`; `reset` throws the old one away.

    `reset(options={"task": ...})` takes a task's id or index; without it the seed chooses. A
    failure raises `InfrastructureError` out of `reset` or `step`: it never becomes a reward.

    Args:
        environment: An environment, or the id of a registered one.
        provider: "local", "docker", or None for what this machine has.
        open_sandbox: Sandboxes of the caller's own, instead of a provider.
        own_provider: A provider of the caller's own instead, closed with this environment.
        render_mode: None, or "ansi" for the transcript so far.
    """

    metadata: dict[str, Any] = {"render_modes": ["ansi"]}  # noqa: RUF012 - as the base declares it

    def __init__(
        self,
        environment: Environment | str,
        *,
        provider: str | None = None,
        open_sandbox: OpenSandbox | None = None,
        own_provider: LazyProvider | None = None,
        render_mode: str | None = None,
    ) -> None:
        if render_mode not in (None, "ansi"):
            raise UsageError(f"no render mode {render_mode!r}; there is 'ansi'")
        registry = Registry.default()
        if isinstance(environment, str):
            environment = registry.load(environment)
        self._environment = environment
        self.render_mode = render_mode
        self.action_space = ActionSpace(self._environment.toolbox.schemas)
        self.observation_space = ObservationSpace()
        self._provider = own_provider or LazyProvider(
            provider, image_roots=registry.image_roots, cache=default_cache()
        )
        self._open_sandbox = open_sandbox or self._provider.open
        self._portal: Portal | None = None
        self._episode: Episode | None = None
        self._transcript: list[Message] = []

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        """Begin a new episode; see the class for `options`."""
        super().reset(seed=seed)
        task = self._choose(options or {})
        episode_seed = seed if seed is not None else int(self.np_random.integers(2**31))
        if self._portal is None:
            self._portal = Portal()
        observation, info = self._portal.call(self._begin(task, episode_seed))
        self._transcript = list(observation.messages)
        return observation, info

    def step(self, action: Action) -> tuple[Observation, float, bool, bool, dict[str, Any]]:
        """Carry out one assistant message; see `Episode.step`."""
        if self._episode is None or self._portal is None:
            raise UsageError("reset the environment before stepping it")
        step = self._portal.call(self._episode.step(action))
        self._transcript += [action, *step.observation.messages]
        return step

    def render(self) -> str | None:
        """The transcript so far, in the mode "ansi"."""
        if self.render_mode is None:
            return None
        return "\n".join(f"[{m.role}] {m.text}{_calls(m)}" for m in self._transcript)

    def close(self) -> None:
        """End the episode and everything it held; may be called again."""
        portal, self._portal = self._portal, None
        if portal is None:
            return
        try:
            portal.call(self._release())
        finally:
            portal.close()

    def _choose(self, options: Mapping[str, Any]) -> Task:
        if unknown := options.keys() - {"task"}:
            raise UsageError(f"no option {min(unknown)!r} for reset; there is 'task'")
        tasks = self._environment.tasks
        wanted = options.get("task", int(self.np_random.integers(len(tasks))))
        if not isinstance(wanted, SupportsIndex):
            return find_task(self._environment, wanted)
        number = operator.index(wanted)
        if not 0 <= number < len(tasks):
            raise UsageError(f"{self._environment.id} has no task {number}: it has {len(tasks)}")
        return tasks[number]

    async def _begin(self, task: Task, seed: int) -> tuple[Observation, dict[str, Any]]:
        await self._end_episode()
        self._episode = Episode(self._environment, self._open_sandbox)
        return await self._episode.reset(task, seed)

    async def _end_episode(self) -> None:
        episode, self._episode = self._episode, None
        if episode is not None:
            await episode.__aexit__(None, None, None)

    async def _release(self) -> None:
        try:
            await self._end_episode()
        finally:
            await self._provider.aclose()


def check_gymnasium(environment: Environment, provider: LazyProvider) -> None:
    """Run Gymnasium's own `check_env`; raises what it finds wrong. Closes the provider."""
    env = GymEnv(environment, own_provider=provider)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # it also warns of what is only unusual
            check_env(env, skip_render_check=True)
    finally:
        env.close()


def _calls(message: Message) -> str:
    return "".join(f"\n  {call.name}({dict(call.arguments)})" for call in message.tool_calls)


def _register_all() -> None:
    for name in Registry.default().specs:
        if name not in gymnasium.registry:
            gymnasium.register(
                name, entry_point="gymsuite.gym:GymEnv", kwargs={"environment": name}
            )


_register_all()
