import asyncio
import math
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import pytest

from gymsuite import (
    Context,
    DeadlineError,
    DefinitionError,
    Environment,
    Episode,
    Limits,
    Message,
    ModelError,
    Observation,
    OpenSandbox,
    PathRefused,
    Sandbox,
    SandboxError,
    SandboxSpec,
    Score,
    Step,
    Submission,
    Task,
    ToolCall,
    Truncated,
    UsageError,
    VerifierError,
    submit,
)

from .conftest import FakeProvider

WRITE = ToolCall(id="1", name="edit", arguments={"path": "answer.txt", "old": "", "new": "42"})
SUBMIT = ToolCall(id="2", name="submit")


FINE = Score(reward=1.0, passed=True)


async def cancelled() -> None:
    """Await a task of one's own that was cancelled."""
    task = asyncio.create_task(asyncio.sleep(60))
    task.cancel()
    await task


def say(*calls: ToolCall, text: str = "") -> Message:
    return Message(role="assistant", content=text, tool_calls=calls)


def play(
    environment: Environment, open_sandbox: OpenSandbox, *actions: Message
) -> tuple[Observation, list[Step], Episode]:
    async def run() -> tuple[Observation, list[Step], Episode]:
        async with Episode(environment, open_sandbox) as episode:
            first, _ = await episode.reset(environment.tasks[0], 0)
            return first, [await episode.step(action) for action in actions], episode

    return asyncio.run(run())


def test_the_solution_scores(environment: Environment, provider: FakeProvider) -> None:
    first, steps, episode = play(environment, provider.open, say(WRITE), say(SUBMIT))
    assert [m.role for m in first.messages] == ["system", "user"]
    assert {t.name for t in first.tools} == {"bash", "edit", "submit"}
    assert [s.reward for s in steps] == [0.0, 1.0]
    assert (steps[-1].terminated, steps[-1].truncated) == (True, False)
    assert episode.submission == Submission(files={"answer.txt": b"42"})
    assert provider.opened[0].files["note.txt"] == b"hello"


def test_the_agents_sandbox_is_gone_before_the_verifier_starts(
    environment: Environment, provider: FakeProvider
) -> None:
    async def verify(task: Task, submission: Submission, open_sandbox: OpenSandbox) -> Score:
        return Score(reward=float(provider.opened[0].closed), passed=True)

    _, steps, _ = play(replace(environment, verifier=verify), provider.open, say(WRITE, SUBMIT))
    assert steps[-1].reward == 1.0


def test_reset_is_a_pure_function_of_task_and_seed(
    environment: Environment, provider: FakeProvider
) -> None:
    assert play(environment, provider.open)[0] == play(environment, provider.open)[0]


def test_an_episode_without_need_opens_no_sandbox(
    environment: Environment, provider: FakeProvider
) -> None:
    async def verify(task: Task, submission: Submission, open_sandbox: OpenSandbox) -> Score:
        return Score(reward=float(submission.answer == "Paris"), passed=True)

    quiz = replace(environment, verifier=verify, collect=None)
    _, steps, _ = play(quiz, provider.open, say(text="Paris"))
    assert steps[-1].reward == 1.0
    assert provider.opened == []


def test_the_step_limit_truncates_and_still_scores(
    environment: Environment, provider: FakeProvider
) -> None:
    echo = ToolCall(name="bash", arguments={"command": "echo x"})
    _, steps, episode = play(environment, provider.open, say(WRITE), say(echo), say(echo))
    assert (steps[-1].terminated, steps[-1].truncated) == (False, True)
    assert steps[-1].reward == 1.0
    assert episode.truncation == "max_steps"


def test_the_episodes_deadline_interrupts_a_tool_and_scores_what_is_there(
    environment: Environment, provider: FakeProvider
) -> None:
    async def hang(context: Context) -> str:
        await asyncio.sleep(3600)
        return "never"

    slow = replace(
        environment, tools=(*environment.tools, hang), limits=Limits(episode_seconds=0.2)
    )
    _, steps, episode = play(slow, provider.open, say(WRITE, ToolCall(id="3", name="hang")))
    assert episode.truncation == "episode_seconds"
    assert steps[-1].reward == 1.0
    assert [m.tool_call_id for m in steps[-1].observation.messages] == ["1", "3"]


def test_a_slow_start_of_the_sandbox_is_not_the_agents_time(
    environment: Environment, provider: FakeProvider
) -> None:
    @asynccontextmanager
    async def slow_open(spec: SandboxSpec) -> AsyncIterator[Sandbox]:
        await asyncio.sleep(0.4)
        async with provider.open(spec) as sandbox:
            yield sandbox

    quick = replace(environment, limits=Limits(episode_seconds=0.3))
    _, steps, episode = play(quick, slow_open, say(WRITE, SUBMIT))
    assert (steps[-1].reward, episode.truncation) == (1.0, "")


@asynccontextmanager
async def broken_open(spec: SandboxSpec) -> AsyncIterator[Sandbox]:
    raise SandboxError("no image 'nope'")
    yield


def test_broken_infrastructure_is_not_reward_zero(environment: Environment) -> None:
    with pytest.raises(SandboxError, match="nope"):
        play(environment, broken_open, say(WRITE))
    with pytest.raises(SandboxError, match="nope"):
        play(environment, broken_open, say(SUBMIT))


@pytest.mark.parametrize(
    ("verdict", "error", "says"),
    [
        (lambda: 1 / 0, VerifierError, "ZeroDivisionError"),
        (lambda: None, VerifierError, "NoneType, not a Score"),
        (lambda: sys.exit(4), VerifierError, "SystemExit"),
        (lambda: FINE.model_copy(update={"reward": math.nan}), VerifierError, "broken Score"),
        (lambda: FINE.model_copy(update={"details": "\ud800"}), VerifierError, "broken Score"),
        (cancelled, VerifierError, "cancelled itself"),
        (lambda: asyncio.sleep(60), DeadlineError, "more than 0.1 s"),
        (lambda: asyncio.wait_for(asyncio.sleep(60), 0.01), VerifierError, "on its own"),
    ],
)
def test_a_broken_verifier_gives_no_score(
    environment: Environment,
    provider: FakeProvider,
    verdict: Callable[[], Any],
    error: type[Exception],
    says: str,
) -> None:
    async def verify(task: Task, submission: Submission, open_sandbox: OpenSandbox) -> Any:
        result = verdict()
        return await result if asyncio.iscoroutine(result) else result

    broken = replace(environment, verifier=verify, limits=Limits(verify_seconds=0.1))
    with pytest.raises(error, match=says):
        play(broken, provider.open, say(SUBMIT))


@pytest.mark.parametrize(
    ("part", "returned"),
    [("collect", {"answer.txt": b"42"}), ("respond", "hello"), ("respond", ("hello",))],
)
def test_what_an_author_returns_by_mistake_is_named(
    environment: Environment, provider: FakeProvider, part: str, returned: object
) -> None:
    async def mistaken(*_: object) -> object:
        return returned

    parts: dict[str, Any] = {part: mistaken}
    with pytest.raises(DefinitionError, match=rf"{part}\(\) of test/write-v1 .* it returned"):
        play(replace(environment, **parts), provider.open, say(text="hello"))


def test_a_slow_prepare_is_a_failure(environment: Environment, provider: FakeProvider) -> None:
    async def prepare(task: Task, sandbox: Sandbox) -> None:
        await asyncio.sleep(60)

    slow = replace(environment, prepare=prepare, limits=Limits(reset_seconds=0.1))
    with pytest.raises(DeadlineError, match="preparing"):
        play(slow, provider.open, say(WRITE))
    assert provider.opened[0].closed


def test_what_an_agent_made_unreadable_was_not_handed_in(
    environment: Environment, provider: FakeProvider
) -> None:
    async def collect(task: Task, sandbox: Sandbox) -> Submission:
        raise PathRefused("answer.txt is larger than 1000 bytes")

    _, steps, episode = play(replace(environment, collect=collect), provider.open, say(SUBMIT))
    assert steps[-1].reward == 0.0
    assert episode.submission is not None
    assert "larger" in episode.submission.state["refused"]


def test_the_caller_is_told_about_misuse(environment: Environment, provider: FakeProvider) -> None:
    async def run() -> None:
        async with Episode(environment, provider.open) as episode:
            with pytest.raises(UsageError, match="reset the episode"):
                await episode.step(say(SUBMIT))
            await episode.reset(environment.tasks[0], 0)
            with pytest.raises(UsageError, match="reset once"):
                await episode.reset(environment.tasks[0], 0)
            with pytest.raises(UsageError, match="'assistant', not 'user'"):
                await episode.step(Message(role="user", content="x"))
            await episode.step(say(SUBMIT))
            with pytest.raises(UsageError, match="over"):
                await episode.step(say(SUBMIT))

    asyncio.run(run())


def test_respond_keeps_a_conversation_going_until_it_returns_none(
    environment: Environment, provider: FakeProvider
) -> None:
    async def respond(context: Context, action: Message) -> tuple[Message, ...] | None:
        context.state["turns"] = context.state.get("turns", 0) + 1
        return (Message(role="user", content="go on"),) if context.state["turns"] < 2 else None

    chat = replace(environment, respond=respond, tools=(submit,))
    _, steps, episode = play(chat, provider.open, say(text="hello"), say(text="bye"))
    assert steps[0].observation.messages[0].text == "go on"
    assert [s.terminated for s in steps] == [False, True]
    assert episode.submission is not None
    assert episode.submission.answer == "bye"


def test_a_users_model_out_of_budget_is_a_failure_and_not_the_agents_end(
    environment: Environment, provider: FakeProvider
) -> None:
    async def respond(context: Context, action: Message) -> tuple[Message, ...] | None:
        raise Truncated("context length")

    with pytest.raises(ModelError, match="context length"):
        play(replace(environment, respond=respond), provider.open, say(text="hello"))


def test_hidden_and_solution_are_in_no_observation(
    environment: Environment, provider: FakeProvider
) -> None:
    first, steps, _ = play(environment, provider.open, say(SUBMIT))
    shown = repr((first, [s.observation for s in steps], steps[-1].info))
    assert "42" not in shown


def test_leaving_the_block_closes_the_sandbox(
    environment: Environment, provider: FakeProvider
) -> None:
    play(environment, provider.open, say(WRITE))
    assert [s.closed for s in provider.opened] == [True]
