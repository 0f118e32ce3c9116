"""Calls what an environment's author wrote, and names the author for what it raises by accident."""

import copy
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from gymsuite.environment import Environment
from gymsuite.errors import (
    DefinitionError,
    GymsuiteError,
    ModelError,
    PathRefused,
    Truncated,
    describe,
)
from gymsuite.sandbox.protocol import Sandbox
from gymsuite.tools import Context, Stateful
from gymsuite.types import Action, Message, Submission, Task


async def prepare(environment: Environment, task: Task, sandbox: Sandbox) -> None:
    """Put a task's starting state into a fresh sandbox."""
    for path, content in task.files.items():
        await sandbox.write(path, content.encode())
    if environment.prepare is not None:
        with _blamed(environment, "prepare"):
            await environment.prepare(task, sandbox)


async def respond(
    environment: Environment, context: Context, action: Action
) -> tuple[Message, ...] | None:
    """What follows plain text; None where that ends the episode."""
    if environment.respond is None:
        return None
    with _blamed(environment, "respond"):
        said = await environment.respond(context, action)
        if said is None or _are_messages(said):
            return None if said is None else tuple(said)
        raise TypeError(f"it returned {said!r:.80}, not a tuple of Message")


async def collect(environment: Environment, task: Task, sandbox: Sandbox) -> Submission:
    """What the environment collects; what an agent made unreadable was not handed in."""
    if environment.collect is None:
        return Submission()
    try:
        with _blamed(environment, "collect"):
            submission = await environment.collect(task, sandbox)
            if not isinstance(submission, Submission):
                raise TypeError(f"it returned {type(submission).__name__}, not a Submission")
            return submission
    except PathRefused as refusal:
        return Submission(state={"refused": str(refusal)})


async def left(environment: Environment, state: Mapping[str, object]) -> dict[str, Any]:
    """What the environment's own state has to say to the verifier."""
    said: dict[str, Any] = {}
    with _blamed(environment, "left"):
        for value in state.values():
            if isinstance(value, Stateful):
                said |= await value.left()
    return said


def fork(environment: Environment, state: Mapping[str, Any]) -> dict[str, Any]:
    """A second state with the same content; plain data is copied."""
    with _blamed(environment, "fork"):
        return {
            name: value.fork() if isinstance(value, Stateful) else copy.deepcopy(value)
            for name, value in state.items()
        }


def close(environment: Environment, value: object) -> None:
    """Let go of what a part of the state holds."""
    if isinstance(value, Stateful):
        with _blamed(environment, "close"):
            value.close()


def _are_messages(said: object) -> bool:
    return isinstance(said, tuple | list) and all(isinstance(part, Message) for part in said)


@contextmanager
def _blamed(environment: Environment, part: str) -> Iterator[None]:
    try:
        yield
    except Truncated as error:  # a limit of a model that is not the agent's
        raise ModelError(f"{part}() of {environment.id}: {error}") from error
    except GymsuiteError:
        raise
    except (Exception, SystemExit) as error:
        raise DefinitionError(f"{part}() of {environment.id} raised {describe(error)}") from error
