"""An environment is a value that an author fills in: tasks, tools, a sandbox and a verifier."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

from gymsuite.deadline import Deadline
from gymsuite.errors import DeadlineError, GymsuiteError, Truncated, VerifierError, describe
from gymsuite.sandbox.protocol import OpenSandbox, Sandbox
from gymsuite.sandbox.turns import together
from gymsuite.tools import Context, Tool, Toolbox, submit
from gymsuite.types import (
    Action,
    Limits,
    Message,
    SandboxSpec,
    Score,
    Submission,
    Task,
    ToolCall,
)

Verifier = Callable[[Task, Submission, OpenSandbox], Awaitable[Score]]
"""Judges what was left behind. It never meets the agent, its sandbox or its words."""

Prepare = Callable[[Task, Sandbox], Awaitable[None]]
"""Puts a task's starting state into a fresh sandbox; a pure function of the task."""

Collect = Callable[[Task, Sandbox], Awaitable[Submission]]
"""Takes from the agent's sandbox, from outside, what the verifier will see."""

Respond = Callable[[Context, Action], Awaitable[tuple[Message, ...] | None]]
"""Answers a plain-text action (a user, a text protocol); None ends the episode."""

Solve = Callable[[Task, OpenSandbox], Awaitable[tuple[ToolCall, ...]]]
"""Works out a solution that is not stored with the task; only the oracle asks for it."""


class TaskGate(Protocol):
    """What has to be true of a task beyond the promises that every environment keeps."""

    async def faults(
        self, environment: "Environment", task: Task, open_sandbox: OpenSandbox
    ) -> Sequence[str]:
        """What is wrong with a task, each fault in a line."""
        ...


@dataclass(frozen=True)
class Environment:
    """Tasks, tools, a verifier, and what each episode runs in.

    `sandbox` may be None when no tool and no verifier needs one.
    """

    id: str
    tasks: Sequence[Task]
    verifier: Verifier
    sandbox: SandboxSpec | None = None
    limits: Limits = Limits()
    system_prompt: str = ""
    tools: tuple[Tool, ...] = (submit,)
    prepare: Prepare | None = None
    collect: Collect | None = None
    respond: Respond | None = None
    solve: Solve | None = None
    gate: TaskGate | None = None
    description: str = ""

    @cached_property
    def toolbox(self) -> Toolbox:
        """The tools by name; raises `DefinitionError` for one that has no schema."""
        return Toolbox.of(self.tools)

    def limits_of(self, task: Task) -> Limits:
        """The task's own limits, else the environment's."""
        return task.limits or self.limits

    async def verify(self, task: Task, submission: Submission, open_sandbox: OpenSandbox) -> Score:
        """Score a submission, live or stored, in sandboxes that the agent never saw.

        Raises `InfrastructureError` when there can be no score, whatever broke: `VerifierError`
        for a verifier that raised or returned no score, `DeadlineError` for one that took longer
        than `limits.verify_seconds`, of which waiting for its turn to open a sandbox is no part.
        """
        seconds = self.limits_of(task).verify_seconds
        deadline = Deadline(seconds)
        try:
            with together():
                async with deadline:
                    score = await self.verifier(task, submission, open_sandbox)
        except Truncated as error:  # a limit of a judge's, not of the agent's
            raise VerifierError(f"verifier of {self.id}: {error}") from error
        except GymsuiteError:
            raise
        except TimeoutError as error:
            if not deadline.expired():
                raise VerifierError(f"verifier of {self.id} timed out on its own") from error
            raise DeadlineError(
                f"verifier of {self.id} took more than {seconds} s for task {task.id!r}"
            ) from error
        except asyncio.CancelledError as error:
            if is_cancelled():
                raise
            raise VerifierError(f"verifier of {self.id} cancelled itself") from error
        except (Exception, SystemExit) as error:  # the one place where any has a name: verifier's
            raise VerifierError(
                f"verifier of {self.id} failed for task {task.id!r}: it raised {describe(error)}"
            ) from error
        if not isinstance(score, Score):
            raise VerifierError(
                f"verifier of {self.id} returned {type(score).__name__}, not a Score"
            )
        try:  # what was not validated (`model_copy`), or is no JSON, cannot be kept
            return Score.model_validate_json(score.model_dump_json())
        except ValueError as error:
            raise VerifierError(
                f"verifier of {self.id} returned a broken Score for task {task.id!r}: {error}"
            ) from error


def is_cancelled() -> bool:
    """Whether someone cancelled this task: a `CancelledError` also comes out of a broken await."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0
