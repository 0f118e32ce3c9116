"""The data that flows through a rollout. Frozen, and nothing here does I/O."""

import json
import math
import re
from collections.abc import Mapping
from typing import Annotated, Any, Literal, NamedTuple

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator
from pydantic_core import from_json, to_json

_HOST_NAME_CHARACTERS = 253
_LABEL = re.compile(r"[A-Za-z0-9_]([A-Za-z0-9_-]{0,61}[A-Za-z0-9_])?")
_PATH_BYTES, _NAME_BYTES = 1024, 255
_PORT = re.compile(r":([1-9][0-9]{0,4})\Z")
_LAST_PORT = 65_535


class Model(BaseModel):
    """Base of all values that cross disk or network: frozen, strict about unknown keys."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", ser_json_bytes="base64", val_json_bytes="base64"
    )


def _finite(number: float) -> float:
    if not math.isfinite(number):
        message = "must be a finite number"
        raise ValueError(message)
    return number


Finite = Annotated[float, AfterValidator(_finite)]


def _host_name(name: str) -> str:
    port = _PORT.search(name)
    labels = _PORT.sub("", name).removeprefix("*.").split(".")
    wrong_port = port is not None and int(port[1]) > _LAST_PORT
    if len(name) > _HOST_NAME_CHARACTERS or wrong_port or not all(map(_LABEL.fullmatch, labels)):
        message = (
            f"no host name: {name[:80]!r}; right are 'example.org', '*.example.org' and "
            "'example.org:8443'"
        )
        raise ValueError(message)
    return name.lower()


HostName = Annotated[str, AfterValidator(_host_name)]
"""A host name in small letters; with `*.` before it, all names below it.

It is reached on the ports of the web, 80 and 443, or with `:8443` behind it on that port alone.
"""


def _directory(path: str) -> str:
    names = path.split("/")
    too_long = len(path) > _PATH_BYTES or any(len(name.encode()) > _NAME_BYTES for name in names)
    if names[0] or len(names) == 1 or ".." in names or "\0" in path or too_long:
        message = (
            f"no directory for commands: {path[:80]!r}; right is an absolute path such as "
            f"'/workspace', without '..', of at most {_PATH_BYTES} characters"
        )
        raise ValueError(message)
    return path


Directory = Annotated[str, AfterValidator(_directory)]
"""An absolute path in a sandbox."""


def _variables(variables: Mapping[str, str]) -> Mapping[str, str]:
    for name, value in variables.items():
        if not name or "=" in name or "\0" in name + value:
            message = f"no variable: {name[:80]!r}; a name has no '=', and neither has a NUL"
            raise ValueError(message)
    return variables


Variables = Annotated[Mapping[str, str], AfterValidator(_variables)]
"""Environment variables by name."""


def _encodable(text: str) -> str:
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode(errors="replace").decode()
    return text


Said = Annotated[str, AfterValidator(_encodable)]
"""Text of a model's; the lone surrogates that JSON lets through could never be recorded."""


def _recordable(arguments: dict[str, Any]) -> dict[str, Any]:
    """Return what a record can hold; raises an error for what JSON cannot carry, or not so deep."""
    if "\\ud" in json.dumps(arguments):
        text = json.dumps(arguments, ensure_ascii=False)
        arguments = json.loads(text.encode(errors="replace"))
    from_json(to_json([[[[[[[[arguments]]]]]]]]))  # a record lies around them, and is read again
    return arguments


class TextPart(Model):
    """A piece of text in a message."""

    type: Literal["text"] = "text"
    text: Said


class ImagePart(Model):
    """A picture in a message."""

    type: Literal["image"] = "image"
    media_type: str
    data: bytes = Field(repr=False)


class ToolCall(Model):
    """One call that the agent asks for.

    `error` says why the model's arguments could not be read (malformed JSON, say). Such a call is
    never run: its observation is the error. So are arguments that no record could hold.
    """

    id: Said = ""
    name: Said
    arguments: Mapping[str, Any] = {}
    error: Said | None = None

    @model_validator(mode="before")
    @classmethod
    def _readable(cls, data: object) -> object:
        if not isinstance(data, dict) or not isinstance(data.get("arguments"), Mapping):
            return data
        try:
            return {**data, "arguments": _recordable(dict(data["arguments"]))}
        except (TypeError, ValueError, RecursionError) as error:
            problem = f"they are too deep, too large or no JSON: {error}"
            return {**data, "arguments": {}, "error": data.get("error") or problem}


class TokenUsage(Model):
    """What one model call cost. `input_tokens` includes the cached ones."""

    input_tokens: int = 0
    cached_tokens: int = 0
    output_tokens: int = 0
    reasoning_tokens: int = 0


class Message(Model):
    """One message of a conversation, in the shape that chat-completion APIs share.

    `extra` is opaque (token ids, logprobs, weight version): carried, never read by the core.
    """

    role: Literal["system", "user", "assistant", "tool"]
    content: Said | tuple[TextPart | ImagePart, ...] = ""
    reasoning: Said = ""
    tool_calls: tuple[ToolCall, ...] = ()
    tool_call_id: Said | None = None
    usage: TokenUsage | None = None
    extra: Mapping[str, Any] = {}

    @property
    def text(self) -> str:
        """The text of the message, without pictures."""
        if isinstance(self.content, str):
            return self.content
        return "".join(part.text for part in self.content if isinstance(part, TextPart))


Action = Message
"""What the agent says: an assistant message, usually with tool calls."""


class ToolSchema(Model):
    """A tool as the model sees it. `parameters` is a JSON schema of an object."""

    name: str
    description: str
    parameters: Mapping[str, Any]


class Observation(NamedTuple):
    """The messages that are new to the agent; after reset also the tools it may call."""

    messages: tuple[Message, ...]
    tools: tuple[ToolSchema, ...] = ()


class SandboxSpec(Model):
    """What a sandbox is made of. `image` is the name of a folder in `sandboxes/`, or a snapshot's.

    `network` are the host names that may be reached, `*.example.org` for all below one; by default
    there is no network. What is written counts as memory where it lies in memory, so `disk_bytes`
    is enforced as at most half of `memory_bytes` there. A sandbox ends after `lifetime_seconds`,
    whatever its owner does. The least limits are those that a shell can run with.
    """

    image: str
    workdir: Directory = "/workspace"
    env: Variables = {}
    cpus: float = Field(default=1.0, ge=0.01, allow_inf_nan=False)
    memory_bytes: int = Field(default=2 << 30, ge=16 << 20)
    pids: int = Field(default=512, ge=4, le=4_194_304)
    disk_bytes: int = Field(default=1 << 30, ge=1 << 20)
    inodes: int = Field(default=100_000, ge=256, le=1 << 40)
    network: tuple[HostName, ...] = ()
    network_bytes: int = Field(default=64 << 20, gt=0)
    lifetime_seconds: float = Field(default=86_400, gt=0, allow_inf_nan=False)


class Limits(Model):
    """Where an episode and its verification end. Seconds are wall time."""

    max_steps: int = Field(default=50, gt=0)
    episode_seconds: float = Field(default=1800, gt=0)
    command_seconds: float = Field(default=60, gt=0)
    verify_seconds: float = Field(default=600, gt=0)
    reset_seconds: float = Field(default=300, gt=0)
    output_bytes: int = Field(default=20_000, gt=0)
    submission_bytes: int = Field(default=16 << 20, gt=0)


class Task(Model):
    """One problem. The agent sees `prompt` and `files`; only a verifier sees `hidden`.

    `solution` is what the oracle replays. `files` are written below the sandbox's workdir.
    """

    id: str = Field(min_length=1)
    prompt: str
    split: str = "train"
    level: int = 1
    files: Mapping[str, str] = {}
    hidden: Mapping[str, Any] = Field(default={}, repr=False)
    solution: tuple[ToolCall, ...] = Field(default=(), repr=False)
    sandbox: SandboxSpec | None = None
    limits: Limits | None = None
    metadata: Mapping[str, Any] = {}


class Submission(Model):
    """All that a verifier will ever know of the agent: what it left behind.

    `files` are by path below the workdir; `patch` is a git-format diff against the prepared
    workdir, made on our side; `state` is what an environment with state of its own collected.
    """

    answer: str = ""
    files: Mapping[str, bytes] = {}
    deletions: tuple[str, ...] = ()
    patch: bytes = b""
    state: Mapping[str, Any] = {}


class Score(Model):
    """A verifier's judgement. `passed` is strict success, `reward` what a trainer learns from."""

    reward: Finite
    passed: bool
    metrics: Mapping[str, Finite] = {}
    details: str = ""


class Step(NamedTuple):
    """Gymnasium's five values. `info` informs; nothing depends on it."""

    observation: Observation
    reward: float
    terminated: bool
    truncated: bool
    info: dict[str, Any]


class Failure(Model):
    """Why a rollout has no score."""

    kind: str
    stage: str
    message: str
    retryable: bool = True


class Usage(Model):
    """What a rollout cost: model tokens, sandbox time and wall time, by stage.

    `queue_seconds` is time spent waiting until a sandbox may be opened; no stage has it.
    """

    model_calls: int = 0
    input_tokens: int = 0
    cached_tokens: int = 0
    output_tokens: int = 0
    reasoning_tokens: int = 0
    sandbox_cpu_seconds: float = 0.0
    sandbox_peak_bytes: int = 0
    verifier_cpu_seconds: float = 0.0
    queue_seconds: float = 0.0
    reset_seconds: float = 0.0
    model_seconds: float = 0.0
    tool_seconds: float = 0.0
    verify_seconds: float = 0.0
    wall_seconds: float = 0.0


class Rollout(Model):
    """The record of one attempt: it has a score or a failure, never both, never neither.

    `sandbox` says what the sandbox was and which limits it really enforced.
    """

    id: str
    environment: str
    task: str
    task_digest: str = ""
    seed: int
    repeat: int = 0
    attempt: int = 0
    agent: str = ""
    messages: tuple[Message, ...] = ()
    submission: Submission | None = None
    score: Score | None = None
    failure: Failure | None = None
    truncated: bool = False
    truncation: str = ""
    usage: Usage = Usage()
    sandbox: Mapping[str, Any] = {}
    started: str = ""

    @model_validator(mode="after")
    def _scored_or_failed(self) -> "Rollout":
        if (self.score is None) == (self.failure is None):
            message = "a rollout has either a score or a failure"
            raise ValueError(message)
        return self
