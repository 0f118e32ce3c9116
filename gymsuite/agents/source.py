"""Where agents come from: what a source may know, and what a run records of it."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from gymsuite.environment import Environment
from gymsuite.rollout import AgentFactory
from gymsuite.sandbox.protocol import OpenSandbox
from gymsuite.types import Action

Recorded = Callable[[str, str, int], Sequence[Action]]
"""The recorded actions of an environment's task and repeat; raises `UsageError` for none."""


@dataclass(frozen=True)
class Seat:
    """The place of one rollout in a run. Only the oracle looks at the environment."""

    environment: Environment
    open_sandbox: OpenSandbox
    seed: int
    repeat: int


@dataclass(frozen=True)
class AgentSource:
    """A named supply of agents, one per rollout.

    `config` is all that shapes their behaviour, as stored with a run: no secrets.
    """

    name: str
    config: Mapping[str, Any]
    seat: Callable[[Seat], AgentFactory]


@dataclass(frozen=True)
class AgentOptions:
    """What the built-in agents may need: `openai` a model, `replay` a recording."""

    base_url: str | None = field(default=None, repr=False)
    model: str | None = None
    api_key: str | None = field(default=None, repr=False)
    temperature: float | None = None
    max_tokens: int | None = None
    timeout_seconds: float = 600.0
    body: Mapping[str, Any] = field(default_factory=dict)
    recorded: Recorded | None = None
