"""An agent meets an environment: one rollout, with a score or a failure."""

import asyncio
import hashlib
import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Protocol

from gymsuite.environment import Environment, is_cancelled
from gymsuite.episode import Episode
from gymsuite.errors import (
    AgentError,
    DefinitionError,
    GymsuiteError,
    InfrastructureError,
    Truncated,
    UsageError,
    describe,
)
from gymsuite.sandbox.protocol import OpenSandbox
from gymsuite.types import (
    Action,
    Failure,
    Message,
    Observation,
    Rollout,
    Step,
    Task,
    TokenUsage,
    Usage,
)


class Agent(Protocol):
    """Plays one rollout. It sees observations, and nothing else of the episode."""

    async def act(self, observation: Observation) -> Action:
        """Answer what is new. Raises `Truncated` when a budget of its own is used up."""
        ...


AgentFactory = Callable[[Task], Agent]
"""Makes the agent of one rollout. Only the oracle's looks at the task's solution."""


def task_digest(task: Task) -> str:
    """A hash of all that a task is; stored rollouts of a changed task are not its rollouts."""
    return hashlib.sha256(task.model_dump_json().encode()).hexdigest()[:32]


def rollout_id(environment: str, digest: str, seed: int, repeat: int) -> str:
    """The same for every attempt at the same rollout, on every machine."""
    key = f"{environment}|{digest}|{seed}|{repeat}"
    return hashlib.sha256(key.encode()).hexdigest()[:32]


async def rollout(  # noqa: PLR0913 - what makes a rollout reproducible
    environment: Environment,
    task: Task,
    make_agent: AgentFactory,
    open_sandbox: OpenSandbox,
    *,
    seed: int = 0,
    repeat: int = 0,
    attempt: int = 0,
    agent_name: str = "",
) -> Rollout:
    """Play one episode to its end and record it.

    Whatever breaks is recorded as a `Failure`, and such a rollout has no score. Cancellation and
    `UsageError` are raised.
    """
    recorder = _Recorder(environment, open_sandbox)
    started, clock = datetime.now(UTC), time.monotonic()
    failure: Failure | None = None
    episode = recorder.episode
    try:
        async with episode:
            try:
                await recorder.play(task, make_agent, seed)
            except (InfrastructureError, DefinitionError) as error:
                failure = _failure(error, recorder.stage)
            except asyncio.CancelledError as error:
                if is_cancelled():
                    raise
                failure = _failure(_astray(recorder.stage, error), recorder.stage)
    except (InfrastructureError, DefinitionError) as error:  # of closing it
        failure = failure or _failure(error, recorder.stage)
    digest = task_digest(task)
    return Rollout(
        id=rollout_id(environment.id, digest, seed, repeat),
        environment=environment.id,
        task=task.id,
        task_digest=digest,
        seed=seed,
        repeat=repeat,
        attempt=attempt,
        agent=agent_name,
        messages=tuple(recorder.messages),
        submission=episode.submission,
        score=None if failure else episode.score,
        failure=failure,
        truncated=bool(episode.truncation),
        truncation=episode.truncation,
        usage=recorder.usage(time.monotonic() - clock),
        sandbox=episode.sandbox_description,
        started=started.isoformat(timespec="milliseconds"),
    )


def _astray(stage: str, error: BaseException) -> GymsuiteError:
    """Whose code cancelled itself: awaited a task of its own that was cancelled, say."""
    if stage == "agent":
        return AgentError("the agent cancelled itself", retryable=False)
    return DefinitionError(f"the environment's code cancelled itself in {stage} ({error!r})")


def _failure(error: GymsuiteError, stage: str) -> Failure:
    if isinstance(error, InfrastructureError):
        return Failure(kind=error.kind, stage=stage, message=str(error), retryable=error.retryable)
    return Failure(kind="definition", stage=stage, message=str(error), retryable=False)


class _Recorder:
    """The loop between agent and episode, and what it saw."""

    def __init__(self, environment: Environment, open_sandbox: OpenSandbox) -> None:
        self.episode = Episode(environment, open_sandbox)
        self.messages: list[Message] = []
        self._acting = False
        self._model_seconds = 0.0
        self._tokens: list[TokenUsage] = []

    @property
    def stage(self) -> str:
        return "agent" if self._acting else self.episode.stage

    async def play(self, task: Task, make_agent: AgentFactory, seed: int) -> None:
        agent = self._make(make_agent, task)
        observation, _ = await self.episode.reset(task, seed)
        self.messages.extend(observation.messages)
        while not self.episode.done:
            step = await self._turn(agent, observation)
            observation = step.observation
            self.messages.extend(observation.messages)

    def _make(self, make_agent: AgentFactory, task: Task) -> Agent:
        try:
            return make_agent(task)
        except (InfrastructureError, DefinitionError, UsageError):
            raise
        except (Exception, SystemExit) as error:
            self._acting = True
            raise AgentError(
                f"the agent's factory raised {describe(error)}", retryable=False
            ) from error

    async def _turn(self, agent: Agent, observation: Observation) -> Step:
        try:
            action = await self._act(agent, observation)
        except Truncated as reason:
            self._acting = False
            if isinstance(reason.action, Message):
                self._note(reason.action)
            return await self.episode.truncate(str(reason) or "agent budget")
        if action is None:
            return await self.episode.truncate("episode_seconds")
        self._note(action)
        return await self.episode.step(action)

    def _note(self, action: Action) -> None:
        self.messages.append(action)
        if action.usage is not None:
            self._tokens.append(action.usage)

    async def _act(self, agent: Agent, observation: Observation) -> Action | None:
        """The agent's next action, or None when the episode's time ran out first."""
        self._acting = True
        try:
            async with self.episode.on_the_clock() as deadline:
                action = await agent.act(observation)
        except GymsuiteError:
            raise
        except (Exception, SystemExit) as error:
            if isinstance(error, TimeoutError) and deadline.expired():
                self._acting = False
                return None
            raise AgentError(f"the agent raised {describe(error)}", retryable=False) from error
        finally:
            self._model_seconds += deadline.seconds
        if not isinstance(action, Message) or action.role != "assistant":
            raise AgentError(
                f"the agent returned {action!r:.200}, not an assistant message", retryable=False
            )
        self._acting = False
        return action

    def usage(self, wall_seconds: float) -> Usage:
        return self.episode.usage.model_copy(
            update={
                "model_calls": len(self._tokens),
                "input_tokens": sum(t.input_tokens for t in self._tokens),
                "cached_tokens": sum(t.cached_tokens for t in self._tokens),
                "output_tokens": sum(t.output_tokens for t in self._tokens),
                "reasoning_tokens": sum(t.reasoning_tokens for t in self._tokens),
                "model_seconds": self._model_seconds,
                "wall_seconds": wall_seconds,
            }
        )
