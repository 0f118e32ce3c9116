import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from gymsuite import Message, Submission, Task
from gymsuite.errors import DefinitionError
from gymsuite.formats.bfcl import RULES, bfcl_environment, judge, read_bfcl
from gymsuite.formats.bfcl_checker import Verdict, check
from gymsuite.formats.bfcl_decode import DecodeError, decode
from gymsuite.formats.bfcl_multi_turn import calls_in, check_turns, check_turns_strictly
from gymsuite.formats.bfcl_strict import check_strictly
from gymsuite.formats.bfcl_talk import (
    DOCUMENTS,
    bfcl_multi_turn_environment,
    read_bfcl_multi_turn,
)
from gymsuite.formats.bfcl_worlds import Worlds, reference_world
from gymsuite.rollout import Agent, rollout
from gymsuite.types import Action, Observation
from gymsuite.worlds.baselines import oracle
from gymsuite.worlds.replay import no_sandbox

BREW: dict[str, Any] = {
    "name": "bar.brew",
    "description": "Brew a drink.",
    "parameters": {
        "type": "dict",
        "properties": {
            "drink": {"type": "string"},
            "cups": {"type": "integer"},
            "heat": {"type": "float"},
            "stir": {"type": "boolean"},
            "extras": {"type": "array", "items": {"type": "string"}},
            "place": {"type": "dict"},
            "steps": {"type": "array", "items": {"type": "dict"}},
            "spot": {"type": "tuple", "items": {"type": "integer"}},
        },
        "required": ["drink"],
    },
}
ANSWER: dict[str, list[Any]] = {
    "drink": ["Green tea, hot", "tea"],
    "cups": [2, ""],
    "heat": [90.0, ""],
    "stir": [True, ""],
    "extras": [["Milk", "sugar"], ""],
    "place": [{"room": ["Kitchen"], "shelf": [1, ""]}, ""],
    "steps": [[{"do": ["boil"]}, {"do": ["pour"]}], ""],
    "spot": [[1, 2], ""],
}


def verdict(**given: Any) -> Verdict:
    return check([BREW], [{"bar.brew": given}], [{"bar.brew": ANSWER}], "simple_python")


@pytest.mark.parametrize(
    ("given", "error"),
    [
        ({"drink": "GREEN-TEA hot"}, None),
        ({"drink": "coffee"}, "value_error:string"),
        ({}, "simple_function_checker:missing_required"),
        ({"drink": "tea", "milk": 1}, "simple_function_checker:unexpected_param"),
        ({"drink": 5}, "type_error:simple"),
        ({"drink": "tea", "cups": 2}, None),
        ({"drink": "tea", "cups": 2.0}, "type_error:simple"),
        ({"drink": "tea", "cups": 3}, "value_error:others"),
        ({"drink": "tea", "cups": True}, "type_error:simple"),
        ({"drink": "tea", "heat": 90}, None),
        ({"drink": "tea", "stir": 1}, "type_error:simple"),
        ({"drink": "tea", "extras": ["milk", "SUGAR"]}, None),
        ({"drink": "tea", "extras": ["sugar", "milk"]}, "value_error:list/tuple"),
        ({"drink": "tea", "extras": []}, None),
        ({"drink": "tea", "extras": ("milk", "sugar")}, "type_error:simple"),
        ({"drink": "tea", "place": {"room": "kitchen"}}, None),
        ({"drink": "tea", "place": {"room": "hall"}}, "value_error:dict_value"),
        ({"drink": "tea", "place": {"room": "kitchen", "x": 1}}, "value_error:dict_key"),
        ({"drink": "tea", "place": {}}, "value_error:dict_key"),
        ({"drink": "tea", "steps": [{"do": "boil"}, {"do": "pour"}]}, None),
        ({"drink": "tea", "steps": [{"do": "boil"}]}, "value_error:list_dict_count"),
        ({"drink": "tea", "spot": (1, 2)}, None),
        ({"drink": "tea", "spot": [1, 2]}, None),
    ],
)
def test_the_leaderboards_rule_and_its_names_for_what_is_wrong(
    given: dict[str, Any], error: str | None
) -> None:
    assert verdict(**given) == Verdict(error is None, error)


def test_what_cannot_be_left_out_has_to_be_given() -> None:
    answer: dict[str, Any] = {"bar.brew": {"drink": ["tea"], "cups": [2]}}
    found = check([BREW], [{"bar.brew": {"drink": "tea"}}], [answer], "simple_python")
    assert found.error_type == "simple_function_checker:missing_optional"


def test_an_empty_string_passes_for_what_may_be_left_out_only_by_the_leaderboards_rule() -> None:
    answer = [{"bar.brew": {"drink": ["tea", ""]}}]
    optional = {**BREW, "parameters": {**BREW["parameters"], "required": []}}
    calls = [{"bar.brew": {"drink": ""}}]
    assert check([optional], calls, answer, "simple_python").valid
    assert not check_strictly([optional], calls, answer).valid
    assert check_strictly([optional], [{"bar.brew": {}}], answer).valid


def test_first_come_first_served_fails_a_right_answer_that_the_strict_rule_passes() -> None:
    answers = [{"bar.brew": {"drink": ["tea", "coffee"]}}, {"bar.brew": {"drink": ["tea"]}}]
    calls = [{"bar.brew": {"drink": "tea"}}, {"bar.brew": {"drink": "coffee"}}]
    assert check([BREW], calls, answers, "parallel").error_type == (
        "parallel_function_checker_no_order:cannot_find_match"
    )
    assert check_strictly([BREW], calls, answers).valid
    assert check([BREW], calls[::-1], answers, "parallel").valid


def test_the_number_of_calls_is_judged_by_category() -> None:
    call, answer = {"bar.brew": {"drink": "tea"}}, {"bar.brew": {"drink": ["tea"]}}
    for category, name in (
        ("simple_python", "simple_function_checker"),
        ("live_multiple", "multiple_function_checker"),
        ("parallel_multiple", "parallel_function_checker_no_order"),
    ):
        found = check([BREW], [call, call], [answer], category)
        assert found == Verdict(valid=False, error_type=f"{name}:wrong_count")
        assert not check([BREW], [], [answer], category).valid


def test_the_strict_rule_knows_numbers_from_truth_values() -> None:
    answer: list[Any] = [{"bar.brew": {"drink": ["tea"], "cups": [1]}}]
    for cups, valid in ((1, True), (1.0, True), (True, False), ("1", False)):
        calls = [{"bar.brew": {"drink": "Tea", "cups": cups}}]
        assert check_strictly([BREW], calls, answer).valid is valid


@pytest.mark.parametrize(
    ("text", "calls"),
    [
        ("f(a=1)", [{"f": {"a": 1}}]),
        ("```\n[f(a=x), g.h(b=[1, (2,)])]\n```", [{"f": {"a": "x"}}, {"g.h": {"b": [1, (2,)]}}]),
        ("[f(1, 2, a=-3)]", [{"f": {"a": -3}}]),
        ("[f(a=+2, b=not True)]", [{"f": {"a": -2, "b": -1}}]),
        ("[f(a=g(1), b=g(c=2))]", [{"f": {"a": "g(1)", "b": {"g": {"c": 2}}}}]),
        ("[f(a=x[1], b=..., c=2 * 3)]", [{"f": {"a": "x[1]", "b": "...", "c": 6}}]),
        ("[]", []),
        ("", []),
    ],
)
def test_calls_are_read_as_the_leaderboard_reads_them(text: str, calls: list[Any]) -> None:
    assert decode(text) == calls


@pytest.mark.parametrize(
    "text",
    ["I cannot.", "[1]", "[f]", "[f(a=)]", "[f(a=lambda: 1)]", "[f(a=__import__('os').x)]",
     "[f(a=9**9**9)]", "[f(a='x'*10**9)]", "[f(a=1/0)]", "(" * 5000, "x" * 30_000, "[f(a='\0')]"],
)  # fmt: skip
def test_what_is_no_list_of_calls_is_refused_and_never_run(text: str) -> None:
    with pytest.raises(DecodeError):
        decode(text)


def write(path: Path, *rows: object) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def question(**more: Any) -> dict[str, Any]:
    turns = [[{"role": "user", "content": "Tea, please."}]]
    return {"id": "simple_0", "question": turns, "function": [BREW], **more}


def score(task: Task, answer: str) -> Any:
    environment = bfcl_environment("tools/bfcl-v1", (task,))
    return asyncio.run(environment.verify(task, Submission(answer=answer), no_sandbox))


def test_rows_are_read_and_their_solution_passes_while_silence_fails(tmp_path: Path) -> None:
    questions = write(tmp_path / "q.json", question())
    answers = write(tmp_path / "a.json", {"id": "simple_0", "ground_truth": [{"bar.brew": ANSWER}]})
    for rule in RULES:
        (task,) = read_bfcl(questions, answers, category="simple_python", rule=rule)
        assert "bar.brew" in task.prompt
        assert "Tea, please." in task.prompt
        gold = task.solution[0].arguments["answer"]
        assert gold == "[bar.brew(drink='Green tea, hot')]"
        assert score(task, gold).passed
        assert not score(task, "").passed
        assert set(score(task, "").metrics) == {"rule_bfcl", "rule_strict"}


def test_silence_passes_for_irrelevance_only_by_the_leaderboards_rule(tmp_path: Path) -> None:
    questions = write(tmp_path / "q.json", question(id="irrelevance_0"))
    (task,) = read_bfcl(questions, None, category="irrelevance")
    words = task.solution[0].arguments["answer"]
    assert [judge(rule, task.hidden, "").valid for rule in RULES] == [True, False]
    assert [judge(rule, task.hidden, words).valid for rule in RULES] == [True, True]
    call = "[bar.brew(drink='tea')]"
    assert [judge(rule, task.hidden, call).valid for rule in RULES] == [False, False]


@pytest.mark.parametrize(
    ("changes", "gold", "problem"),
    [
        ({"function": [{"parameters": {}}]}, None, r"q\.json:1: function\.0\.name: Field required"),
        ({"function": [{**BREW, "parameters": 7}]}, None, r"q\.json:1: function\.0\.parameters"),
        ({"function": []}, None, r"q\.json: row 'simple_0': it has no function"),
        ({"function": [{**BREW, "parameters": {}}]}, None, "'bar.brew' lack `properties`"),
        ({}, [], r"q\.json: row 'simple_0': no answer row with a call"),
        ({}, [{}], "would have one name, not 0"),
        ({}, [{"bar.pour": {}}], "calls 'bar.pour', which is not among"),
        ({}, [{"bar.brew": 7}], r"a\.json:1: ground_truth\.0\.bar\.brew"),
    ],
)
def test_a_row_that_nobody_could_judge_is_named(
    tmp_path: Path, changes: dict[str, Any], gold: list[Any] | None, problem: str
) -> None:
    questions = write(tmp_path / "q.json", {**question(), **changes})
    calls = [{"bar.brew": ANSWER}] if gold is None else gold
    answers = write(tmp_path / "a.json", {"id": "simple_0", "ground_truth": calls})
    with pytest.raises(DefinitionError, match=problem):
        read_bfcl(questions, answers, category="simple_python")


@pytest.mark.parametrize(
    "text",
    [
        f"[f(a={'1+' * 2000}1)]",
        f"[f(a=x{'[0]' * 900})]",
        f"[f(a=g{'.y' * 900}())]",
        f"[f(a={'-' * 900}1)]",
        f"[f(a={'[' * 90}{']' * 90})]",
    ],
)
def test_no_nesting_breaks_the_judge(text: str) -> None:
    row = {"category": "simple_python", "functions": [BREW], "answers": [{"bar.brew": ANSWER}]}
    assert not any(judge(rule, row, text).valid for rule in RULES)
    assert isinstance(calls_in(text), list)


@pytest.mark.parametrize("steps", [[1], ["x"], [[1]], [{"do": 1}, 2]])
def test_a_list_of_what_is_no_dict_is_wrong(steps: list[Any]) -> None:
    assert not verdict(drink="tea", steps=steps).valid


def test_a_row_without_its_answer_is_the_authors_fault(tmp_path: Path) -> None:
    questions = write(tmp_path / "q.json", question())
    with pytest.raises(DefinitionError, match="simple_0"):
        read_bfcl(questions, write(tmp_path / "a.json"), category="simple_python")
    with pytest.raises(DefinitionError, match="Python"):
        read_bfcl(questions, None, category="simple_java")
    with pytest.raises(DefinitionError, match="rule"):
        read_bfcl(questions, None, category="irrelevance", rule="kind")


class Lamp:
    """A world of this test's own, shaped as the reference's are."""

    def _load_scenario(self, config: dict[str, Any], *, long_context: bool = False) -> None:
        self.level = config["level"]
        self._secret = 0

    def turn(self, by: int) -> dict[str, int]:
        self.level += by
        self._secret += 1
        return {"level": self.level}

    def look(self) -> str:
        return f"level {self.level}"

    def kill(self) -> str:
        return "killed"

    def hang(self, what: object) -> str:
        raise OSError("stuck")


def lamp(name: str) -> object:
    assert name == "Lamp"
    return Lamp()


ROW = {
    "id": "multi_turn_base_0",
    "involved_classes": ["Lamp"],
    "initial_config": {"Lamp": {"level": 1}},
}
EXPECTED = [["turn(by=2)"], [], ["look()"]]


def turns(*texts: str) -> list[list[list[str]]]:
    return [[calls_in(text)] if text else [] for text in texts]


@pytest.mark.parametrize(
    ("said", "error"),
    [
        (("[turn(by=2)]", "", "[look()]"), None),
        (("[turn(by=2)]", "", "[turn(by=0)]"), "execution_response_mismatch"),
        (("[turn(by=1), turn(by=1)]", "", "[look()]"), None),
        (("[look(), turn(by=2), look()]", "", "[look()]"), None),
        (("[turn(by=3)]", "", "[look()]"), "instance_state_mismatch"),
        (("", "", "[look()]"), "empty_turn_model_response"),
        (("[turn(by=2)]", "", ""), "empty_turn_model_response"),
        (("[turn(by=2)]", "[turn(by=1)]", "[look()]"), "instance_state_mismatch"),
        (("[turn(by=2)]", ""), "force_terminated"),
    ],
)
def test_a_conversation_is_judged_after_each_turn(said: tuple[str, ...], error: str | None) -> None:
    found = check_turns(turns(*said), EXPECTED, ROW, lamp)
    assert found.error_type == (f"multi_turn:{error}" if error else None)
    assert found.valid is (error is None)


def test_calling_where_nothing_can_be_done_fails_only_by_the_strict_rule() -> None:
    said = turns("[turn(by=2)]", "[look()]", "[look()]")
    assert check_turns(said, EXPECTED, ROW, lamp).valid
    assert not check_turns_strictly(said, EXPECTED, ROW, lamp).valid


@pytest.mark.parametrize(
    ("call", "result"),
    [
        ("kill()", "not allowed"),
        ("fly()", "not defined"),
        ("hang(what=1)", "stuck"),
        ("turn(by=look())", "str"),
        ("turn(by=10**99)", "malformed"),
        ("turn(by=1e300)", "too large"),
        ("look().upper()", "not a function's name"),
        ("open('x')", "not defined"),
        ("turn(", "Error"),
    ],
)
def test_what_goes_wrong_in_a_world_is_a_result(call: str, result: str) -> None:
    said = Worlds(["Lamp"], ROW["initial_config"], lamp).run(call)  # type: ignore[arg-type]
    assert said.startswith("Error during execution: ")
    assert result in said


def test_a_missing_reference_world_says_how_to_get_it() -> None:
    with pytest.raises(DefinitionError, match="there are"):
        reference_world("Lamp")


class Numbers:
    """A world with a function that could take for ever."""

    def power(self, base: float, exponent: float) -> dict[str, float]:
        return {"result": base**exponent}


def test_a_call_that_would_take_for_ever_is_not_made() -> None:
    worlds = Worlds(["Numbers"], {}, lambda _: Numbers())
    assert worlds.run("power(2, exponent=10)") == '{"result": 1024}'
    for call in ("power(10, 10**9)", "power(10, 1000000000)", "power(base=7, exponent=-99999)"):
        assert worlds.run(call).startswith("Error during execution: ")


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"ground_truth": [["turn(2)"]]}, "3 turns, and calls for 1"),
        ({"ground_truth": [["turn(2)"], [], ["fly(1)"]]}, "without a document, or no call: 'fly'"),
        ({"ground_truth": [["turn(2"], [], []]}, "without a document, or no call"),
        ({"id": "other"}, "no answer row has this id"),
    ],
)
def test_a_conversation_that_cannot_be_judged_is_named(
    tmp_path: Path, change: dict[str, Any], problem: str
) -> None:
    conversation(tmp_path)
    file = tmp_path / "possible_answer" / "BFCL_v4_multi_turn_base.json"
    write(file, {"id": ROW["id"], "ground_truth": [[], [], []], **change})
    with pytest.raises(DefinitionError, match=rf"base\.json: row .*{problem}"):
        read_bfcl_multi_turn(tmp_path, "multi_turn_base")


class Words:
    async def act(self, observation: Observation) -> Action:
        return Message(role="assistant", content="I would rather not.")


def conversation(folder: Path) -> Task:
    (folder / "possible_answer").mkdir()
    (folder / "multi_turn_func_doc").mkdir()
    file = "BFCL_v4_multi_turn_base.json"
    said = [[{"role": "user", "content": text}] for text in ("Up two.", "Fly.", "How far?")]
    write(folder / file, {**ROW, "question": said, "missed_function": {"2": ["look"]}, "path": []})
    gold = {"id": ROW["id"], "ground_truth": [["turn(2)"], [], ["look()"]]}
    write(folder / "possible_answer" / file, gold)
    documents = [
        {"name": "turn", "description": "Turn.", "parameters": {"properties": {"by": {}}}},
        {"name": "look", "description": "Look.", "parameters": {"properties": {}}},
    ]
    assert "Lamp" not in DOCUMENTS
    write(folder / "multi_turn_func_doc" / "Lamp.json", *documents)
    (task,) = read_bfcl_multi_turn(folder, "multi_turn_base")
    return task


def test_a_conversation_is_played_to_its_end_and_words_alone_earn_nothing(tmp_path: Path) -> None:
    task = conversation(tmp_path)
    environment = bfcl_multi_turn_environment("tools/bfcl-talk-v1", (task,), lamp)

    def words(_: Task) -> Agent:
        return Words()

    right = asyncio.run(rollout(environment, task, oracle, no_sandbox))
    silent = asyncio.run(rollout(environment, task, words, no_sandbox))
    assert right.score is not None
    assert right.score.passed
    assert silent.score is not None
    assert (silent.score.passed, silent.score.details) == (
        False,
        "multi_turn:empty_turn_model_response",
    )
    heard = [message.text for message in silent.messages if message.role == "user"]
    assert len(heard) == 3
    assert "Look." not in heard[0]
    assert "Look." in heard[2]


def test_too_many_replies_in_one_turn_end_the_conversation(tmp_path: Path) -> None:
    task = conversation(tmp_path)
    environment = bfcl_multi_turn_environment("tools/bfcl-talk-v1", (task,), lamp)

    class Tireless:
        async def act(self, observation: Observation) -> Action:
            return Message(role="assistant", content="[look()]")

    def tireless(_: Task) -> Agent:
        return Tireless()

    record = asyncio.run(rollout(environment, task, tireless, no_sandbox))
    assert record.score is not None
    assert record.score.details == "multi_turn:force_terminated"
