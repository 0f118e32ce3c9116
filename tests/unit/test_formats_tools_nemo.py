import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from gymsuite import Environment, Message, Rollout, Task, ToolCall, rollout
from gymsuite.agents import Seat
from gymsuite.agents.scripted import NoopAgent, OracleAgent
from gymsuite.errors import DefinitionError
from gymsuite.formats.nemo_gym_calls import (
    Calls,
    nemo_gym_calls_environment,
    read_nemo_gym_calls,
)
from gymsuite.formats.schemas import complaint
from gymsuite.worlds.replay import no_sandbox

FIXTURE = Path(__file__).parents[1] / "fixtures" / "nemo_gym_tools.jsonl"
GIVEN = Path(__file__).parents[3] / "shared" / "data" / "nemo_gym" / "workplace_assistant.jsonl"
IDA = {"to": "ida@example.org", "body": "Lunch is at noon"}
TOM = {"to": "tom@example.org", "body": "Lunch is at noon"}


class Speaker:
    """Makes its calls in one message, and then says something."""

    def __init__(self, *calls: ToolCall, text: str = "Done.") -> None:
        self.messages = [Message(role="assistant", content=text)]
        if calls:
            self.messages.insert(0, Message(role="assistant", tool_calls=calls))

    async def act(self, observation: object) -> Message:
        return self.messages.pop(0)


def play(environment: Environment, task: Task, agent: Any) -> Rollout:
    return asyncio.run(rollout(environment, task, lambda _: agent, no_sandbox))


def read(path: Path = FIXTURE, rule: str = "calls") -> Environment:
    return nemo_gym_calls_environment("tools/nemo-v1", read_nemo_gym_calls(path, rule=rule))


def passed(environment: Environment, number: int, agent: Any) -> bool:
    record = play(environment, environment.tasks[number], agent)
    assert record.score is not None, record.failure
    return record.score.passed


def send(**arguments: str) -> ToolCall:
    return ToolCall(id="1", name="mail_send", arguments=arguments)


@pytest.mark.parametrize("rule", ["calls", "strict"])
def test_gold_passes_and_an_empty_agent_does_not(rule: str) -> None:
    environment = read(rule=rule)
    seat = Seat(environment, no_sandbox, 0, 0)
    for number, task in enumerate(environment.tasks):
        assert passed(environment, number, OracleAgent(task, seat)), task.id
        nothing = passed(environment, number, Speaker(text=""))
        assert nothing == (number == 1 and rule == "calls"), task.id


def test_writes_count_each_once_in_any_order() -> None:
    environment = read()
    assert passed(environment, 0, Speaker(send(**TOM), send(**IDA)))
    assert not passed(environment, 0, Speaker(send(**IDA)))
    assert not passed(environment, 0, Speaker(send(**IDA), send(**TOM), send(**TOM)))
    assert not passed(environment, 0, Speaker(send(**IDA), send(**{**TOM, "body": "Lunch"})))


def test_looking_costs_nothing_and_a_refused_call_was_not_made() -> None:
    look = ToolCall(id="0", name="directory_find_address", arguments={"name": "Ida"})
    wrong = [send(to="x"), send(**IDA, more="x"), ToolCall(id="2", name="route", arguments={})]
    environment = read()
    assert passed(environment, 0, Speaker(look, *wrong, send(**IDA), look, send(**TOM)))


def test_only_the_strict_rule_minds_the_case_of_words() -> None:
    loud = {**IDA, "body": "LUNCH is at noon"}
    assert passed(read(), 0, Speaker(send(**loud), send(**TOM)))
    assert not passed(read(rule="strict"), 0, Speaker(send(**loud), send(**TOM)))


def test_with_tables_the_state_that_calls_leave_is_judged() -> None:
    def replay(calls: Calls) -> object:
        """A mailbox that takes each letter once, and none to strangers."""
        letters = [call["arguments"] for call in calls if call["name"] == "mail_send"]
        kept: list[Any] = []
        for letter in letters:
            if letter not in kept and letter["to"].endswith("@example.org"):
                kept.append(letter)
        return kept

    tasks = read_nemo_gym_calls(FIXTURE, rule="state")
    environment = nemo_gym_calls_environment("tools/nemo-v1", tasks, replay=replay)
    to_stranger = send(**{**IDA, "to": "someone@elsewhere.net"})
    assert passed(environment, 0, Speaker(send(**IDA), to_stranger, send(**IDA), send(**TOM)))
    assert not passed(environment, 0, Speaker(send(**TOM), send(**IDA)))
    assert not passed(environment, 0, Speaker())
    with pytest.raises(DefinitionError, match=r"'state' of task '0' needs `replay`"):
        nemo_gym_calls_environment("tools/nemo-v1", tasks)


def test_an_expected_action_is_one_step() -> None:
    environment = read()
    task = environment.tasks[2]
    assert task.prompt == (
        "[user] Which way to the weir?\n\n[call] where_am_i({})\n\n[result] the mill"
    )
    right = {"start": "the mill", "end": "the weir"}
    record = play(environment, task, Speaker(ToolCall(name="route", arguments=right)))
    assert record.score is not None
    assert (record.score.passed, len(record.messages)) == (True, 3)
    assert not passed(
        environment, 2, Speaker(ToolCall(name="route", arguments={**right, "walk": True}))
    )
    assert not passed(environment, 4, Speaker(ToolCall(name="route", arguments=right)))


def test_a_tool_of_another_row_is_not_there() -> None:
    environment = read()
    route = ToolCall(id="1", name="route", arguments={"start": "a", "end": "b"})
    record = play(environment, environment.tasks[0], Speaker(route, send(**IDA), send(**TOM)))
    assert "no tool 'route' here" in record.messages[2].text
    assert record.score is not None
    assert record.score.passed


def test_the_given_rows_are_read_and_their_gold_passes() -> None:
    if not GIVEN.exists():
        pytest.skip("the example rows of NeMo Gym are not here")
    environment = read(GIVEN, rule="strict")
    seat = Seat(environment, no_sandbox, 0, 0)
    assert (len(environment.tasks), len(environment.tools)) == (5, 28)
    for number, task in enumerate(environment.tasks):
        assert passed(environment, number, OracleAgent(task, seat))
        assert not passed(environment, number, NoopAgent())


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"expected_action": {"type": "message", "content": ""}}, "or an `expected_action`"),
        ({"ground_truth": [{"name": "x", "arguments": "{"}]}, "x: arguments are not JSON"),
        ({"ground_truth": [{"name": "x", "arguments": "[]"}]}, "x: arguments are no JSON object"),
        ({"ground_truth": None}, "or an `expected_action`"),
        ({"responses_create_params": {"input": [{"role": "user"}]}}, "input: nothing is said"),
    ],
)
def test_a_broken_row_is_named(tmp_path: Path, change: dict[str, Any], problem: str) -> None:
    row = json.loads(FIXTURE.read_text().splitlines()[0])
    path = tmp_path / "rows.jsonl"
    path.write_text(json.dumps({**row, **change}))
    with pytest.raises(DefinitionError, match=r"rows\.jsonl:1.*" + problem):
        read_nemo_gym_calls(path)


def test_two_rows_whose_tools_differ_under_one_name_are_refused(tmp_path: Path) -> None:
    row = json.loads(FIXTURE.read_text().splitlines()[1])
    other = json.loads(json.dumps(row))
    other["responses_create_params"]["tools"][0]["parameters"] = {"type": "object"}
    path = tmp_path / "rows.jsonl"
    path.write_text("\n".join(map(json.dumps, (row, {**other, "id": 2}))))
    with pytest.raises(DefinitionError, match="differs from another task's"):
        read(path)


@pytest.mark.parametrize(
    ("schema", "value", "problem"),
    [
        ({"type": "integer"}, True, "arguments: it would be of the type integer"),
        ({"type": "integer"}, "5", "arguments: it would be of the type integer"),
        ({"type": ["string", "null"]}, None, ""),
        ({"type": "number"}, 5, ""),
        ({"enum": ["a", "b"]}, "c", "arguments: it would be one of 'a', 'b'"),
        ({"anyOf": [{"type": "null"}, {"type": "string"}]}, "x", ""),
        ({"type": "array", "items": {"type": "string"}}, ["a", 1], "arguments[1]: it would be"),
        ({"type": "object", "required": ["a"]}, {}, "a: it is missing"),
        ({"properties": {"a": {"type": "string"}}}, {"a": 1}, "a: it would be of the type string"),
        ({"additionalProperties": False}, {"a": 1}, "a: there is no such argument"),
        ({}, {"a": 1}, ""),
    ],
)
def test_what_does_not_fit_a_schema_is_said(
    schema: dict[str, Any], value: object, problem: str
) -> None:
    said = complaint(schema, value)
    assert said.startswith(problem)
    assert bool(said) == bool(problem)
