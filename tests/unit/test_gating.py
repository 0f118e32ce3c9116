import asyncio
from collections.abc import Sequence
from pathlib import Path

import pytest

from gymsuite import Environment, OpenSandbox, SandboxError, Task
from gymsuite.authoring.gating import gate_opens, plays_the_same
from gymsuite.authoring.promises import Case, Verdict
from gymsuite.errors import DefinitionError
from gymsuite.registry import Registry
from gymsuite.worlds.replay import Source, no_sandbox

FOLDER = """
from gymsuite import Score, Task, ToolCall

{more}
tasks = (Task(id="one", prompt="{prompt}", solution=(ToolCall(name="submit"),)),)


async def verify(task, submission, open_sandbox):
    return Score(reward=1.0, passed=True)
"""


class Fake:
    """A gate that says the same of every task."""

    def __init__(self, *faults: str) -> None:
        self._faults = faults

    async def faults(self, _: Environment, __: Task, ___: OpenSandbox) -> Sequence[str]:
        return self._faults


class Broken:
    async def faults(self, _: Environment, __: Task, ___: OpenSandbox) -> Sequence[str]:
        raise SandboxError("no room")


def verdict(environment: Environment, gate: Fake | Broken) -> Verdict:
    case = Case(environment, environment.tasks, no_sandbox)
    return asyncio.run(gate_opens(case, gate))


def registry(folder: Path, *, prompt: str = "p", more: str = "") -> Path:
    (folder / "mine").mkdir()
    text = FOLDER.format(prompt=prompt, more=more)
    (folder / "mine" / "environment.py").write_text(text, encoding="utf-8")
    file = folder / "registry.yaml"
    file.write_text("environments: {test/mine-v1: {path: mine, description: d}}", encoding="utf-8")
    return file


def test_each_fault_that_a_gate_finds_is_told_with_its_task(environment: Environment) -> None:
    found = verdict(environment, Fake("no-op: reward 1"))
    assert found.outcome == "broken"
    assert found.details.startswith(f"{environment.tasks[0].id}: no-op: reward 1")
    assert verdict(environment, Fake()).outcome == "kept"


def test_a_gate_that_could_not_be_tried_says_nothing_of_the_tasks(environment: Environment) -> None:
    assert verdict(environment, Broken()).outcome == "unknown"


def test_a_task_that_depends_on_the_hash_seed_is_found(tmp_path: Path) -> None:
    for name, words, outcome in (("same", "'p'", "kept"), ("not", "str(hash('p'))", "broken")):
        folder = tmp_path / name
        folder.mkdir()
        file = registry(folder, more=f"WORDS = {words}", prompt='" + WORDS + "')
        environment = Registry(file).load("test/mine-v1")
        source = Source(file, environment.id, None, tmp_path)
        found = asyncio.run(plays_the_same(environment, environment.tasks, source))
        assert found.outcome == outcome, found


def test_a_gate_of_the_wrong_kind_is_named_when_it_is_loaded(tmp_path: Path) -> None:
    file = registry(tmp_path, more="gate = 7")
    with pytest.raises(DefinitionError, match="`gate` is int"):
        Registry(file).load("test/mine-v1")


def test_a_registry_knows_the_file_of_each_id(tmp_path: Path) -> None:
    file = registry(tmp_path)
    assert Registry(file).file_of("test/mine-v1") == file.resolve()
