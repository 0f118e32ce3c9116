"""The tasks of coding/pybugs-v1 as data: what holds for every row."""

import importlib
import json
import re
from collections import Counter
from pathlib import Path

import pytest

from gymsuite import DefinitionError, Registry, Task

PYBUGS = Registry.default().load("coding/pybugs-v1")
MODULE = PYBUGS.verifier.__module__
TASKS = {task.id: task for task in PYBUGS.tasks}
FOLDER = Path(str(importlib.import_module(MODULE).__file__)).parent
row_of = importlib.import_module(f"{MODULE}.row").row_of
LIBRARIES = importlib.import_module(f"{MODULE}.libraries").LIBRARIES


def named_in(text: str, word: str) -> bool:
    return re.search(rf"(?<!\w){re.escape(word)}(?!\w)", text, re.IGNORECASE) is not None


def test_there_are_enough_tasks_over_enough_libraries_at_all_levels() -> None:
    assert len(TASKS) >= 40
    assert len({row_of(task).library for task in TASKS.values()}) >= 6
    assert {task.level for task in TASKS.values()} == {1, 2, 3}


def test_no_two_tasks_share_a_function() -> None:
    broken = Counter(
        (row_of(task).library, bug.file, bug.function)
        for task in TASKS.values()
        for bug in row_of(task).bugs
    )

    assert [place for place, times in broken.items() if times > 1] == []


def test_a_level_says_how_much_is_broken() -> None:
    for task in TASKS.values():
        operators = [bug.operator for bug in row_of(task).bugs]
        assert len(operators) == (2 if task.level == 2 else 1), task.id
        assert ("removed_body" in operators) == (task.level == 3), task.id


@pytest.mark.parametrize("name", TASKS)
def test_a_prompt_names_neither_the_file_nor_the_function_nor_a_hidden_test(name: str) -> None:
    task, row = TASKS[name], row_of(TASKS[name])
    words = {test.rpartition("::")[2].rpartition("[")[0] for test in row.expected.fail_to_pass}
    for bug in row.bugs:
        file = bug.file.rpartition("/")[2]
        module = bug.file.removesuffix(".py").removeprefix("src/").replace("/", ".")
        words |= {bug.function, bug.function.rpartition(".")[2], bug.file, file, module}
        words |= {file.removesuffix(".py")} - {row.library, "__init__"}
    words -= {row.library}

    assert [word for word in sorted(words) if named_in(task.prompt, word)] == []


@pytest.mark.parametrize("name", TASKS)
def test_a_prompt_says_what_is_wrong_with_which_library(name: str) -> None:
    row = row_of(TASKS[name])

    assert f"{row.library} {row.version}" in TASKS[name].prompt
    assert re.search(r"^- .*`", TASKS[name].prompt, re.MULTILINE)


def test_every_task_has_tests_that_show_its_bug_and_tests_that_guard_the_rest() -> None:
    for task in TASKS.values():
        expected = row_of(task).expected
        assert expected.fail_to_pass, task.id
        assert expected.pass_to_pass, task.id
        assert not expected.fail_to_pass.keys() & expected.pass_to_pass.keys(), task.id


def test_every_task_has_a_sealed_value_that_a_forger_would_have_to_know() -> None:
    assert [t.id for t in TASKS.values() if not any(row_of(t).expected.fail_to_pass.values())] == []


def test_every_bug_is_of_a_file_that_is_pinned() -> None:
    for task in TASKS.values():
        for bug in row_of(task).bugs:
            assert re.fullmatch(r"[0-9a-f]{64}", bug.digest), task.id


def test_the_libraries_are_those_that_the_image_pins() -> None:
    sources = FOLDER.parents[1] / "sandboxes/pybugs/sources.txt"
    pins = re.findall(
        r"^(\S+)==(\S+) --hash=sha256:[0-9a-f]{64}$", sources.read_text(), re.MULTILINE
    )

    assert dict(pins) == {library.name: library.version for library in LIBRARIES.values()}


def test_every_task_was_made_of_a_line_of_bugs_jsonl() -> None:
    lines = (FOLDER / "bugs.jsonl").read_text().splitlines()
    written = {entry["id"]: entry for entry in map(json.loads, lines)}
    fields = ("file", "function", "operator", "site")

    for name, task in TASKS.items():
        bugs = [bug.model_dump(include=set(fields)) for bug in row_of(task).bugs]
        assert bugs == written[name]["bugs"], name
        assert all(topic in task.prompt for topic in written[name]["topics"]), name


def test_rows_hold_names_and_digests_and_no_code_of_a_library() -> None:
    lines = (FOLDER / "tasks.jsonl").read_text().splitlines()

    assert sum(map(len, lines)) < 3 << 20
    for line in lines:
        hidden = json.loads(line)["hidden"]
        texts = json.dumps(hidden)
        assert "\\n" not in texts
        assert not re.search(r"\b(def|return|import|assert|lambda)\b", texts)
    assert all(not task.solution for task in TASKS.values())


def test_a_task_without_a_row_is_the_authors_mistake() -> None:
    with pytest.raises(DefinitionError, match="task 'x': "):
        row_of(Task(id="x", prompt="?"))
