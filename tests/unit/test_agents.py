"""The agents: scripted ones, the model behind an endpoint, and a user's own."""

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from gymsuite import (
    AgentError,
    Environment,
    Message,
    OpenSandbox,
    Rollout,
    Task,
    ToolCall,
    UsageError,
    rollout,
)
from gymsuite.agents import AgentOptions, Seat, open_agent
from tests.stub_model import Reply, completion, serve


def _play(
    environment: Environment,
    provider: Any,
    agent: str,
    *,
    seed: int = 0,
    options: AgentOptions | None = None,
) -> Rollout:
    async def play() -> Rollout:
        async with open_agent(agent, options) as source:
            seat = Seat(environment, provider.open, seed, 0)
            factory = source.seat(seat)
            return await rollout(
                environment, environment.tasks[0], factory, provider.open, seed=seed
            )

    return asyncio.run(play())


def _actions(record: Rollout) -> list[Message]:
    return [message for message in record.messages if message.role == "assistant"]


def test_the_oracle_replays_the_solution_and_submits(
    environment: Environment, provider: Any
) -> None:
    record = _play(environment, provider, "oracle")
    assert record.score is not None
    assert record.score.passed
    assert [call.name for m in _actions(record) for call in m.tool_calls] == ["edit", "submit"]
    assert all(call.id for m in _actions(record) for call in m.tool_calls)


def test_the_oracle_asks_the_environment_for_a_solution_that_no_task_stores(
    environment: Environment, provider: Any
) -> None:
    task = environment.tasks[0].model_copy(update={"solution": ()})

    async def solve(task: Task, open_sandbox: OpenSandbox) -> tuple[ToolCall, ...]:
        arguments = {"path": "answer.txt", "old": "", "new": task.hidden["answer"]}
        return (ToolCall(name="edit", arguments=arguments),)

    solvable = replace(environment, tasks=(task,), solve=solve)
    record = _play(solvable, provider, "oracle")
    assert record.score is not None
    assert record.score.passed


def test_a_task_without_a_solution_is_its_authors_fault(
    environment: Environment, provider: Any
) -> None:
    task = environment.tasks[0].model_copy(update={"solution": ()})
    record = _play(replace(environment, tasks=(task,)), provider, "oracle")
    assert record.failure is not None
    assert record.failure.kind == "definition"
    assert "write-42" in record.failure.message
    assert not record.failure.retryable


@pytest.mark.parametrize("answer", [ValueError("too hard"), "abc", None])
def test_a_solve_that_fails_is_its_authors_fault(
    environment: Environment, provider: Any, answer: object
) -> None:
    async def solve(task: Task, open_sandbox: OpenSandbox) -> Any:
        if isinstance(answer, Exception):
            raise answer
        return answer

    task = environment.tasks[0].model_copy(update={"solution": ()})
    record = _play(replace(environment, tasks=(task,), solve=solve), provider, "oracle")
    assert record.failure is not None
    assert record.failure.kind == "definition"
    assert "solve() of test/write-v1 for task 'write-42'" in record.failure.message


def test_doing_nothing_is_scored(environment: Environment, provider: Any) -> None:
    record = _play(environment, provider, "noop")
    assert record.score is not None
    assert not record.score.passed
    assert len(_actions(record)) == 1


def test_doing_nothing_ends_an_episode_that_has_no_submit(
    environment: Environment, provider: Any
) -> None:
    record = _play(replace(environment, tools=environment.tools[:1]), provider, "noop")
    assert record.score is not None
    assert not record.truncated


def test_the_random_agent_repeats_itself_for_a_seed(
    environment: Environment, provider: Any
) -> None:
    first, again, other = (
        _actions(_play(environment, provider, "random", seed=seed)) for seed in (1, 1, 2)
    )
    assert first == again
    assert first != other


def test_a_replay_repeats_what_was_recorded(environment: Environment, provider: Any) -> None:
    record = _play(environment, provider, "oracle")
    asked: list[tuple[str, str, int]] = []

    def recorded(name: str, task: str, repeat: int) -> list[Message]:
        asked.append((name, task, repeat))
        return _actions(record)

    again = _play(environment, provider, "replay", options=AgentOptions(recorded=recorded))
    assert _actions(again) == _actions(record)
    assert again.score == record.score
    assert asked == [("test/write-v1", "write-42", 0)]


def test_a_replay_that_runs_out_truncates(environment: Environment, provider: Any) -> None:
    options = AgentOptions(recorded=lambda *_: [])
    record = _play(environment, provider, "replay", options=options)
    assert record.truncation == "the recording ends here"
    assert record.score is not None


def test_a_replay_needs_a_recording(environment: Environment, provider: Any) -> None:
    with pytest.raises(UsageError, match="--replay"):
        _play(environment, provider, "replay")


def test_the_model_sees_the_whole_history_and_its_mistakes(
    environment: Environment, provider: Any
) -> None:
    replies = [
        completion(None, ("edit", '{"path": "answer.txt", "old"'), reasoning="hm"),
        completion(None, ("edit", {"path": "answer.txt", "old": "", "new": "42"})),
        completion("done", ("submit", {})),
    ]
    with serve(lambda _, number: replies[number]) as server:
        options = AgentOptions(base_url=server.base_url, model="m")
        record = _play(environment, provider, "openai", options=options)
    assert record.score is not None
    assert record.score.passed
    assert record.usage.model_calls == 3
    assert record.usage.input_tokens == 30
    last = server.requests[-1].body
    assert [m["role"] for m in last["messages"]] == ["system", "user"] + ["assistant", "tool"] * 2
    assert "not JSON" in last["messages"][3]["content"]
    assert {tool["function"]["name"] for tool in last["tools"]} == {"bash", "edit", "submit"}


def test_a_broken_model_is_a_failure_and_no_score(environment: Environment, provider: Any) -> None:
    body = {"error": {"message": "no such key"}}
    with serve(lambda *_: Reply(body, 401)) as server:
        options = AgentOptions(base_url=server.base_url, model="m", api_key="sk-secret-secret")
        record = _play(environment, provider, "openai", options=options)
    assert record.score is None
    assert record.failure is not None
    assert (record.failure.kind, record.failure.stage) == ("model", "agent")
    assert "sk-secret" not in record.model_dump_json()


def test_a_full_context_truncates_and_is_scored(environment: Environment, provider: Any) -> None:
    body = {"error": {"message": "too long", "code": "context_length_exceeded"}}
    with serve(lambda *_: Reply(body, 400)) as server:
        options = AgentOptions(base_url=server.base_url, model="m")
        record = _play(environment, provider, "openai", options=options)
    assert record.truncated
    assert record.score is not None


def test_half_an_answer_is_not_an_answer(environment: Environment, provider: Any) -> None:
    with serve(lambda *_: completion("The answer", finish_reason="length")) as server:
        options = AgentOptions(base_url=server.base_url, model="m")
        record = _play(environment, provider, "openai", options=options)
    assert "cut off" in record.truncation
    assert record.messages[-1].text == "The answer"
    assert (record.usage.model_calls, record.usage.output_tokens) == (1, 2)
    assert record.score is not None
    assert record.submission is not None
    assert record.submission.answer == ""


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        (AgentOptions(), "--model"),
        (AgentOptions(model="m"), "--base-url"),
        (AgentOptions(model="m", base_url="u:pw@localhost"), "http://localhost:8000/v1"),
    ],
)
def test_a_model_that_is_not_named_is_asked_for(options: AgentOptions, complaint: str) -> None:
    with pytest.raises(UsageError, match=complaint) as caught:
        asyncio.run(_open("openai", options))
    assert "pw" not in str(caught.value)


@pytest.mark.parametrize(
    ("name", "complaint"),
    [
        ("orcale", "did you mean 'oracle'"),
        ("something", "oracle, noop, random, replay, openai"),
        ("no_such_module_here:make", "no module 'no_such_module_here'"),
        ("json:dumbs", "did you mean 'dumps'"),
        ("json:__doc__", "no function or class but str"),
        ("user_broken:make", "raised RuntimeError: at import"),
        ("user_exits:make", "raised SystemExit: 7"),
        ("user_needs:make", "needs 'not_installed_anywhere'"),
        (":make", "':make'"),
    ],
)
def test_a_name_that_stands_for_no_agent_says_why(
    name: str, complaint: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "user_broken.py").write_text("raise RuntimeError('at import')")
    (tmp_path / "user_exits.py").write_text("raise SystemExit(7)")
    (tmp_path / "user_needs.py").write_text("import not_installed_anywhere")
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(UsageError, match=complaint):
        asyncio.run(_open(name))


def test_a_users_own_agent_plays(
    environment: Environment, provider: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "user_agent.py").write_text(
        "from gymsuite import Message\n"
        "class Mine:\n"
        "    def __init__(self, task): self.task = task\n"
        "    async def act(self, observation):\n"
        "        return Message(role='assistant', content=self.task.id)\n"
        "def broken(task): raise KeyError('x')\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    record = _play(environment, provider, "user_agent:Mine")
    assert _actions(record)[0].text == "write-42"
    broken = _play(environment, provider, "user_agent:broken")
    assert broken.failure is not None
    assert broken.failure.kind == AgentError.kind
    assert "user_agent.py:6" in broken.failure.message


async def _open(name: str, options: AgentOptions | None = None) -> None:
    async with open_agent(name, options):
        pass
