"""Training environments for language-model agents: sandboxed episodes with verified rewards."""

from gymsuite.environment import Environment, Verifier
from gymsuite.episode import Episode
from gymsuite.errors import (
    AgentError,
    DeadlineError,
    DefinitionError,
    GymsuiteError,
    InfrastructureError,
    ModelError,
    PathRefused,
    SandboxDead,
    SandboxError,
    Truncated,
    UsageError,
    VerifierError,
)
from gymsuite.registry import Registry
from gymsuite.rollout import Agent, AgentFactory, rollout
from gymsuite.sandbox.protocol import Changes, ExecResult, OpenSandbox, Sandbox
from gymsuite.sandbox.provider import open_provider
from gymsuite.tools import Context, Tool, ToolError, bash, edit, submit
from gymsuite.types import (
    Action,
    Failure,
    Limits,
    Message,
    Observation,
    Rollout,
    SandboxSpec,
    Score,
    Step,
    Submission,
    Task,
    TokenUsage,
    ToolCall,
    ToolSchema,
    Usage,
)

__version__ = "0.1.0"

__all__ = [
    "Action",
    "Agent",
    "AgentError",
    "AgentFactory",
    "Changes",
    "Context",
    "DeadlineError",
    "DefinitionError",
    "Environment",
    "Episode",
    "ExecResult",
    "Failure",
    "GymsuiteError",
    "InfrastructureError",
    "Limits",
    "Message",
    "ModelError",
    "Observation",
    "OpenSandbox",
    "PathRefused",
    "Registry",
    "Rollout",
    "Sandbox",
    "SandboxDead",
    "SandboxError",
    "SandboxSpec",
    "Score",
    "Step",
    "Submission",
    "Task",
    "TokenUsage",
    "Tool",
    "ToolCall",
    "ToolError",
    "ToolSchema",
    "Truncated",
    "Usage",
    "UsageError",
    "Verifier",
    "VerifierError",
    "bash",
    "edit",
    "open_provider",
    "rollout",
    "submit",
]
