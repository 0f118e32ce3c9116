"""An environment with a finite menu of tool calls as arrays, for methods that know no text."""

import itertools
import re
from collections.abc import Iterator, Mapping
from typing import Any

import gymnasium
import numpy as np
from numpy.typing import NDArray

from gymsuite.errors import UsageError
from gymsuite.gym import ActionSpace
from gymsuite.types import Action, Message, Observation, ToolCall, ToolSchema

Numbers = NDArray[np.float32]

_NUMBER = re.compile(r"[-+]?\d+(?:\.\d+)?")


class NumericEnv(gymnasium.Env[Numbers, np.int64]):
    """The index of a tool call in, the numbers at the end of the last reply out.

    `menu` holds every call that the tools' schemas allow. A reply with fewer numbers than `size`
    leaves the observation as it was.

    Args:
        env: An environment of `gymsuite.gym`, also one that `gymnasium.make` has wrapped.
        size: How many numbers an observation has.
        bound: Numbers are clipped to lie between `-bound` and `bound`.
    """

    def __init__(
        self, env: gymnasium.Env[Observation, Action], *, size: int, bound: float = 10.0
    ) -> None:
        if not isinstance(env.action_space, ActionSpace):
            raise UsageError(f"{env} is no environment of gymsuite: its actions are no messages")
        self.menu = tuple(call for tool in env.action_space.tools for call in _calls(tool))
        self.action_space = gymnasium.spaces.Discrete(len(self.menu))
        self.observation_space = gymnasium.spaces.Box(-bound, bound, (size,), np.float32)
        self.render_mode = env.render_mode
        self.metadata = env.metadata
        self._env = env
        self._bound = bound
        self._numbers = np.zeros(size, np.float32)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Numbers, dict[str, Any]]:
        """Begin a new episode; raises `UsageError` if its first messages hold too few numbers."""
        super().reset(seed=seed)
        observation, info = self._env.reset(seed=seed, options=options)
        numbers = self._read(observation)
        if numbers is None:
            raise UsageError(f"the prompt holds fewer than {self._numbers.size} numbers")
        self._numbers = numbers
        return numbers, info

    def step(self, action: np.int64) -> tuple[Numbers, float, bool, bool, dict[str, Any]]:
        """Make the call with this index in `menu`."""
        message = Message(role="assistant", tool_calls=(self.menu[action],))
        observation, reward, terminated, truncated, info = self._env.step(message)
        numbers = self._read(observation)
        if numbers is not None:
            self._numbers = numbers
        return self._numbers, float(reward), terminated, truncated, info

    def render(self) -> Any:  # noqa: ANN401 - as the base declares it
        """What the environment behind it shows."""
        return self._env.render()

    def close(self) -> None:
        """Close the environment behind it."""
        self._env.close()

    def _read(self, observation: Observation) -> Numbers | None:
        text = observation.messages[-1].text if observation.messages else ""
        found = _NUMBER.findall(text)[-self._numbers.size :]
        if len(found) < self._numbers.size:
            return None
        return np.clip(np.array(found, np.float32), -self._bound, self._bound)


def _calls(tool: ToolSchema) -> Iterator[ToolCall]:
    """Every call that the schema allows."""
    properties: Mapping[str, Any] = tool.parameters.get("properties", {})
    choices = [_values(tool.name, name, schema) for name, schema in properties.items()]
    for values in itertools.product(*choices):
        arguments = dict(zip(properties, values, strict=True))
        yield ToolCall(id="call", name=tool.name, arguments=arguments)


def _values(tool: str, name: str, schema: Mapping[str, Any]) -> tuple[object, ...]:
    if "enum" in schema:
        return tuple(schema["enum"])
    if "const" in schema:
        return (schema["const"],)
    if schema.get("type") == "boolean":
        return (False, True)
    if schema.get("type") == "integer" and {"minimum", "maximum"} <= schema.keys():
        return tuple(range(schema["minimum"], schema["maximum"] + 1))
    raise UsageError(
        f"tool {tool!r}: {name!r} can be anything, so its calls are no menu; a literal, a boolean "
        "or an integer with ge= and le= would be one"
    )
