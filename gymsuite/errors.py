"""The error model: whose fault is it?

* `GymsuiteError`
    * `UsageError`: the caller broke the protocol (step before reset, an unknown id).
    * `DefinitionError`: an author's registry.yaml, task, image or environment.py is wrong.
    * `InfrastructureError`: the world broke. Retried within a budget, never scored.
        * `SandboxError`, with `SandboxDead` for one that was alive, and `PathRefused`
        * `ModelError`
        * `UserFault`
        * `VerifierError`
        * `DeadlineError`
        * `AgentError`
    * `Truncated`: an agent ran out of a budget of its own. The episode ends, and is scored.

A mistake of the agent is not an exception: a bad tool call, a failing command or a command that
timed out is an observation.
"""

import traceback
from pathlib import Path


class GymsuiteError(Exception):
    """Base of every error that gymsuite raises on purpose."""


class UsageError(GymsuiteError):
    """The caller broke the protocol."""


class DefinitionError(GymsuiteError):
    """An environment, task, image or registry entry is wrong; retrying cannot help."""


class InfrastructureError(GymsuiteError):
    """The rollout could not be carried out; it has no score.

    `retryable` says whether another attempt may fare better.
    """

    kind = "infrastructure"

    def __init__(self, message: str, *, retryable: bool = True) -> None:
        super().__init__(message)
        self.retryable = retryable


class SandboxError(InfrastructureError):
    """A sandbox could not start, or could not do what it was asked."""

    kind = "sandbox"


class SandboxDead(SandboxError):  # noqa: N818 - a state, read as "the sandbox is dead"
    """A live sandbox was lost: its channel closed, broke the protocol, or fell silent."""

    def __init__(self, reason: str, *, retryable: bool = True) -> None:
        super().__init__(reason, retryable=retryable)
        self.reason = reason


class PathRefused(SandboxError):  # noqa: N818 - an answer rather than an error
    """A live sandbox refused one path: it is a directory, too large, read-only and so on.

    Where an agent chose the path, or what lies there, this is the agent's doing.
    """


class ModelError(InfrastructureError):
    """The model behind an agent, a user or a judge could not be reached, or answered nonsense."""

    kind = "model"


class UserFault(InfrastructureError):  # noqa: N818 - a fault rather than an error
    """A simulated user fell out of its role: what the agent made of it says nothing."""

    kind = "user"


class VerifierError(InfrastructureError):
    """The verifier itself failed, which says nothing about the submission."""

    kind = "verifier"


class DeadlineError(InfrastructureError):
    """A stage outlived its deadline, and it was not the agent's doing."""

    kind = "deadline"


class AgentError(InfrastructureError):
    """An agent's own code raised; what it had done so far says nothing about the model."""

    kind = "agent"


class Truncated(GymsuiteError):  # noqa: N818 - an outcome rather than an error
    """Raised by an agent whose own budget is used up, such as its model's context length.

    `action` is a `Message` that the budget cut off: recorded and paid for, but never carried out.
    """

    def __init__(self, message: str = "", *, action: object = None) -> None:
        super().__init__(message)
        self.action = action


def describe(error: BaseException) -> str:
    """What someone else's code raised, and the line of theirs where it did: `f.py:3`."""
    ours = str(Path(__file__).parent)
    frames = [
        (Path(summary.filename), summary.lineno)
        for summary in traceback.extract_tb(error.__traceback__)
        if not summary.filename.startswith((ours, "<"))
    ]
    theirs = [frame for frame in frames if frame[0] == frames[0][0]]
    where = f" ({theirs[-1][0].name}:{theirs[-1][1]})" if theirs else ""
    return f"{type(error).__name__}: {error}{where}"
