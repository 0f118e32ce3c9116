import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import Any, Self

import pytest

from gymsuite import (
    Context,
    Environment,
    Limits,
    Message,
    ModelError,
    Observation,
    Sandbox,
    SandboxDead,
    SandboxSpec,
    Score,
    Task,
    TokenUsage,
    ToolCall,
    Truncated,
    VerifierError,
    rollout,
    submit,
)
from gymsuite.rollout import rollout_id, task_digest

from .conftest import FakeProvider

WRITE = ToolCall(id="1", name="edit", arguments={"path": "answer.txt", "old": "", "new": "42"})
SUBMIT = ToolCall(id="2", name="submit")


class Script:
    """Plays a list of actions; an exception in it is raised."""

    def __init__(self, *turns: Message | BaseException) -> None:
        self._turns = iter(turns)

    async def act(self, observation: Observation) -> Message:
        turn = next(self._turns)
        if isinstance(turn, BaseException):
            raise turn
        return turn


def say(*calls: ToolCall, usage: TokenUsage | None = None) -> Message:
    return Message(role="assistant", tool_calls=calls, usage=usage)


def test_a_rollout_records_all_messages_and_what_it_cost(
    environment: Environment, provider: FakeProvider
) -> None:
    tokens = TokenUsage(input_tokens=10, cached_tokens=4, output_tokens=3)
    agent = Script(say(WRITE, usage=tokens), say(SUBMIT, usage=tokens))
    record = asyncio.run(
        rollout(environment, environment.tasks[0], lambda _: agent, provider.open, seed=5)
    )
    assert record.score is not None
    assert record.score.passed
    assert [m.role for m in record.messages] == [
        *("system", "user", "assistant", "tool", "assistant", "tool")
    ]
    assert (record.usage.model_calls, record.usage.input_tokens) == (2, 20)
    assert (record.usage.cached_tokens, record.usage.output_tokens) == (8, 6)
    assert record.usage.sandbox_cpu_seconds == 1.5
    assert record.usage.verifier_cpu_seconds == 1.5
    assert record.usage.sandbox_peak_bytes == 1000
    assert record.sandbox == {"provider": "fake"}


@pytest.mark.parametrize(
    ("error", "kind", "retryable"),
    [
        (ModelError("503"), "model", True),
        (ModelError("401", retryable=False), "model", False),
        (SandboxDead("gone"), "sandbox", True),
        (KeyError("bug"), "agent", False),
        (TimeoutError("its own"), "agent", False),
        (SystemExit(5), "agent", False),
        (asyncio.CancelledError("its own"), "agent", False),
    ],
)
def test_a_failure_of_the_agent_has_no_score(
    environment: Environment,
    provider: FakeProvider,
    error: Exception,
    kind: str,
    *,
    retryable: bool,
) -> None:
    agent = Script(say(WRITE), error)
    record = asyncio.run(rollout(environment, environment.tasks[0], lambda _: agent, provider.open))
    assert record.score is None
    assert record.failure is not None
    assert (record.failure.kind, record.failure.stage) == (kind, "agent")
    assert record.failure.retryable is retryable
    assert [s.closed for s in provider.opened] == [True]


def test_a_failed_rollout_carries_what_its_sandbox_cost(
    environment: Environment, provider: FakeProvider
) -> None:
    agent = Script(say(WRITE), KeyError("bug"))
    record = asyncio.run(rollout(environment, environment.tasks[0], lambda _: agent, provider.open))
    assert record.failure is not None
    assert record.usage.sandbox_cpu_seconds == 1.5


def test_an_agent_out_of_budget_is_truncated_and_scored(
    environment: Environment, provider: FakeProvider
) -> None:
    agent = Script(say(WRITE), Truncated("context length"))
    record = asyncio.run(rollout(environment, environment.tasks[0], lambda _: agent, provider.open))
    assert record.score is not None
    assert record.score.reward == 1.0
    assert (record.truncated, record.truncation) == (True, "context length")


def test_an_action_that_a_budget_cut_off_is_recorded_and_paid_for_but_not_carried_out(
    environment: Environment, provider: FakeProvider
) -> None:
    tokens = TokenUsage(input_tokens=10, output_tokens=3)
    cut = Message(role="assistant", content="The answer is", usage=tokens)
    agent = Script(say(WRITE), Truncated("out of tokens", action=cut))
    record = asyncio.run(rollout(environment, environment.tasks[0], lambda _: agent, provider.open))
    assert (record.truncation, record.messages[-1]) == ("out of tokens", cut)
    assert (record.usage.model_calls, record.usage.output_tokens) == (1, 3)
    assert record.submission is not None
    assert record.submission.answer == ""


def test_what_breaks_after_a_truncation_is_not_the_agents_stage(
    environment: Environment, provider: FakeProvider
) -> None:
    async def verify(*_: object) -> Score:
        raise VerifierError("broken")

    broken = replace(environment, verifier=verify)
    agent = Script(Truncated("context length"))
    record = asyncio.run(rollout(broken, broken.tasks[0], lambda _: agent, provider.open))
    assert record.failure is not None
    assert (record.failure.kind, record.failure.stage) == ("verifier", "verify")


def test_an_agent_that_never_answers_is_truncated_by_the_episodes_limit(
    environment: Environment, provider: FakeProvider
) -> None:
    class Silent:
        async def act(self, observation: Observation) -> Message:
            await asyncio.sleep(3600)
            raise AssertionError

    quick = replace(environment, limits=Limits(episode_seconds=0.1))
    record = asyncio.run(rollout(quick, quick.tasks[0], lambda _: Silent(), provider.open))
    assert record.truncation == "episode_seconds"
    assert record.score is not None


def test_an_agent_that_returns_nonsense_is_a_failure(
    environment: Environment, provider: FakeProvider
) -> None:
    agent = Script(Message(role="user", content="I am confused"))
    record = asyncio.run(rollout(environment, environment.tasks[0], lambda _: agent, provider.open))
    assert record.failure is not None
    assert "not an assistant message" in record.failure.message


def test_a_factory_that_raises_is_a_failure(
    environment: Environment, provider: FakeProvider
) -> None:
    def broken(task: Task) -> Script:
        raise KeyError(task.id)

    record = asyncio.run(rollout(environment, environment.tasks[0], broken, provider.open))
    assert record.failure is not None
    assert (record.failure.kind, record.failure.retryable) == ("agent", False)


@pytest.mark.parametrize("part", ["prepare", "collect"])
def test_a_bug_of_the_author_is_a_failure_that_is_not_tried_again(
    environment: Environment, provider: FakeProvider, part: str
) -> None:
    async def broken(*_: object) -> Any:
        raise TimeoutError("its own")

    parts: dict[str, Any] = {part: broken}
    bad = replace(environment, **parts)
    agent = Script(say(WRITE), say(SUBMIT))
    record = asyncio.run(rollout(bad, bad.tasks[0], lambda _: agent, provider.open))
    assert record.failure is not None
    assert (record.failure.kind, record.failure.retryable) == ("definition", False)
    assert f"{part}() of test/write-v1 raised TimeoutError" in record.failure.message


@pytest.mark.parametrize("error", [SystemExit(5), asyncio.CancelledError("its own")])
def test_a_tool_that_exits_or_cancels_itself_is_its_authors_fault(
    environment: Environment, provider: FakeProvider, error: BaseException
) -> None:
    async def edit(context: Context, path: str, old: str, new: str) -> str:
        """Fail."""
        raise error

    bad = replace(environment, tools=(edit,))
    record = asyncio.run(rollout(bad, bad.tasks[0], lambda _: Script(say(WRITE)), provider.open))
    assert record.failure is not None
    assert (record.failure.kind, record.failure.stage) == ("definition", "step")


@pytest.mark.parametrize("part", ["tool", "verifier", "factory"])
def test_a_context_that_is_full_ends_nothing_but_the_agents_own_turn(
    environment: Environment, provider: FakeProvider, part: str
) -> None:
    async def full(*_: object, **__: object) -> Any:
        raise Truncated("a context is full")

    async def edit(context: Context, path: str, old: str, new: str) -> str:
        """Ask a model."""
        return str(await full(context, path, old, new))

    def factory(task: Task) -> Script:
        if part == "factory":
            raise Truncated(task.id)
        return Script(say(WRITE), say(SUBMIT))

    parts: dict[str, Any] = {"tool": {"tools": (edit, submit)}, "verifier": {"verifier": full}}
    bad = replace(environment, **parts.get(part, {}))
    record = asyncio.run(rollout(bad, bad.tasks[0], factory, provider.open))
    assert record.failure is not None
    kinds = {"tool": ("model", "step"), "verifier": ("verifier", "verify")}
    assert (record.failure.kind, record.failure.stage) == kinds.get(part, ("agent", "agent"))


@dataclass
class Stuck:
    """State that cannot be let go of, nor copied."""

    def fork(self) -> Self:
        raise KeyError("fork")

    async def left(self) -> dict[str, Any]:
        return {}

    def close(self) -> None:
        raise KeyError("close")


@pytest.mark.parametrize("end", [say(SUBMIT), KeyError("a bug of the agent's")])
def test_state_that_cannot_be_closed_is_its_authors_fault_and_ends_no_run(
    environment: Environment, provider: FakeProvider, end: Message | KeyError
) -> None:
    async def edit(context: Context, path: str, old: str, new: str) -> str:
        """Keep something."""
        context.state["stuck"] = Stuck()
        return path + old + new

    bad = replace(environment, tools=(edit, submit))
    agent = Script(say(WRITE), end)
    record = asyncio.run(rollout(bad, bad.tasks[0], lambda _: agent, provider.open))
    assert record.failure is not None
    if isinstance(end, KeyError):
        assert record.failure.kind == "agent"
    else:
        assert "close() of test/write-v1 raised KeyError" in record.failure.message


def test_what_someone_elses_code_raised_names_their_line(
    environment: Environment, provider: FakeProvider
) -> None:
    agent = Script(KeyError("bug"))
    record = asyncio.run(rollout(environment, environment.tasks[0], lambda _: agent, provider.open))
    assert record.failure is not None
    assert re.search(r"raised KeyError: 'bug' \(test_rollout\.py:\d+\)$", record.failure.message)


def test_a_dead_sandbox_in_the_verifier_is_a_failure_at_verify(
    environment: Environment, provider: FakeProvider
) -> None:
    @asynccontextmanager
    async def dies_on_the_second(spec: SandboxSpec) -> AsyncIterator[Sandbox]:
        if provider.opened:
            raise SandboxDead("daemon restarted")
        async with provider.open(spec) as sandbox:
            yield sandbox

    agent = Script(say(WRITE), say(SUBMIT))
    record = asyncio.run(
        rollout(environment, environment.tasks[0], lambda _: agent, dies_on_the_second)
    )
    assert record.score is None
    assert record.failure is not None
    assert (record.failure.kind, record.failure.stage) == ("sandbox", "verify")
    assert record.submission is not None


def test_cancellation_is_passed_on_and_leaves_nothing(
    environment: Environment, provider: FakeProvider
) -> None:
    class Slow:
        def __init__(self) -> None:
            self.turn = 0

        async def act(self, observation: Observation) -> Message:
            self.turn += 1
            if self.turn == 1:
                return say(WRITE)
            await asyncio.sleep(3600)
            raise AssertionError

    async def run() -> None:
        task = asyncio.create_task(
            rollout(environment, environment.tasks[0], lambda _: Slow(), provider.open)
        )
        await asyncio.sleep(0.05)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(run())
    assert [s.closed for s in provider.opened] == [True]


def test_the_id_of_a_rollout_depends_on_what_it_is_and_not_on_the_attempt() -> None:
    task = Task(id="t", prompt="p")
    digest = task_digest(task)
    assert rollout_id("e", digest, 1, 0) == rollout_id("e", digest, 1, 0)
    assert rollout_id("e", digest, 1, 0) != rollout_id("e", digest, 1, 1)
    assert digest != task_digest(task.model_copy(update={"prompt": "q"}))
