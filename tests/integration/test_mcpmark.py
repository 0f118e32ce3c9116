"""Task folders of MCPMark's schema: gold passes, nothing and cheats do not."""

import shutil
from pathlib import Path
from typing import Any

import pytest

from gymsuite import Message, OpenSandbox, Rollout, ToolCall, VerifierError, rollout
from gymsuite.errors import DefinitionError
from gymsuite.formats.mcpmark import mcpmark_environment, read_mcpmark
from gymsuite.formats.tree_change import TreeChange, apply_change, change_of

from .conftest import InSuite

FIXTURE = Path(__file__).parents[1] / "fixtures" / "mcpmark"
TASKS, STATES = FIXTURE / "tasks", FIXTURE / "states"
GOLD = (
    "mkdir archive && cd inbox && grep -lx done *.txt > ../archive/INDEX && "
    "mv $(cat ../archive/INDEX) ../archive"
)


class Shell:
    """Runs a command, and hands in."""

    def __init__(self, command: str) -> None:
        self.calls = [
            ToolCall(id="1", name="bash", arguments={"command": command}),
            ToolCall(id="2", name="submit", arguments={}),
        ]

    async def act(self, observation: object) -> Message:
        return Message(role="assistant", tool_calls=(self.calls.pop(0),))


def play(in_suite: InSuite, plays: list[tuple[str, str]], rule: str = "mcpmark") -> list[Rollout]:
    tasks = read_mcpmark(TASKS, STATES, rule=rule)
    environment = mcpmark_environment("tools/mcpmark-v1", tasks, STATES)
    by_id = {task.id: task for task in tasks}

    async def body(open_sandbox: OpenSandbox) -> Any:
        return [
            await rollout(environment, by_id[task], lambda _, c=command: Shell(c), open_sandbox)  # type: ignore[misc]
            for task, command in plays
        ]

    records: list[Rollout] = in_suite(body)
    assert [record.failure for record in records] == [None] * len(plays)
    return records


def test_gold_passes_and_neither_nothing_nor_a_cheat_does(in_suite: InSuite) -> None:
    task = "desk/tidy_notes"
    cheats = [
        "true",
        "cp -r inbox archive && ls archive > archive/INDEX",
        "echo 'import sys; sys.exit(0)' | tee sitecustomize.py os.py pathlib.py > verify.py",
        "rm -rf inbox && ln -s /etc inbox",
        f"{GOLD} ; rm ../inbox/boat.txt",
    ]
    records = play(in_suite, [(task, GOLD), *((task, cheat) for cheat in cheats)])
    assert [r.score and r.score.passed for r in records] == [True, *[False] * len(cheats)]
    submission = records[0].submission
    assert submission is not None
    assert sorted(submission.files) == ["archive/INDEX", "archive/bread.txt", "archive/roof.txt"]
    assert submission.deletions == ("inbox/bread.txt", "inbox/roof.txt")
    assert submission.state["folders"] == ["archive"]


def test_strictly_nobody_passes_by_doing_nothing(in_suite: InSuite) -> None:
    for rule, passed in (("mcpmark", True), ("strict", False)):
        (record,) = play(in_suite, [("desk/count_open", "true")], rule)
        assert record.score is not None
        assert record.score.passed is passed
        assert record.score.metrics == {"rule_mcpmark": 1.0, "rule_strict": 0.0}


def test_tasks_say_what_they_need(tmp_path: Path) -> None:
    tasks = read_mcpmark(TASKS, STATES)
    assert [(task.id, task.level) for task in tasks] == [
        ("desk/count_open", 1),
        ("desk/tidy_notes", 2),
    ]
    assert "INDEX" in tasks[1].prompt
    assert "verify" not in tasks[1].model_dump_json(exclude={"hidden"})
    with pytest.raises(DefinitionError, match=r"unpack https://example.org/desk.zip as"):
        read_mcpmark(TASKS, tmp_path)
    with pytest.raises(DefinitionError, match="no meta.json"):
        read_mcpmark(tmp_path, STATES)
    (tmp_path / "meta.json").write_text("{}")
    with pytest.raises(DefinitionError, match="task_id"):
        read_mcpmark(tmp_path, STATES)


def test_a_change_makes_one_tree_of_another(tmp_path: Path) -> None:
    before, after, made = (tmp_path / name for name in ("before", "after", "made"))
    for folder in ("a/b", "gone/deep", "swap", "link_target"):
        (before / folder).mkdir(parents=True)
    (before / "a/file").write_text("1")
    (before / "gone/deep/file").write_text("2")
    (before / "was_link").symlink_to("a")
    shutil.copytree(before, after, symlinks=True)
    shutil.rmtree(after / "gone")
    (after / "gone").write_text("a file now")
    (after / "swap").rmdir()
    (after / "swap").symlink_to("link_target")
    (after / "was_link").unlink()
    (after / "was_link/inner").mkdir(parents=True)
    (after / "was_link/file").write_bytes(b"\xff\x00")
    (after / "empty").mkdir()
    change = change_of(before, after)
    apply_change(before, change, made)
    assert change_of(after, made) == TreeChange()
    assert change_of(made, after) == TreeChange()


@pytest.mark.parametrize("path", ["../out", "/etc/passwd", "a/../../out", "", "was_link/x"])
def test_a_forged_change_leads_nowhere_else(tmp_path: Path, path: str) -> None:
    (tmp_path / "before").mkdir()
    (tmp_path / "before/was_link").symlink_to("elsewhere")
    with pytest.raises(VerifierError, match="a submission with a path"):
        apply_change(tmp_path / "before", TreeChange({path: b"x"}), tmp_path / "made")


def test_the_whole_state_is_no_part_of_a_submission(in_suite: InSuite) -> None:
    (record,) = play(in_suite, [("desk/tidy_notes", "echo new > inbox/new.txt")])
    assert record.submission is not None
    assert list(record.submission.files) == ["inbox/new.txt"]
