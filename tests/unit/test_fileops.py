import hashlib
import importlib
import os
import re
import subprocess
import sys
from dataclasses import dataclass
from itertools import combinations
from types import ModuleType
from typing import Any

import pytest

from gymsuite import Environment, Registry, Submission, Task
from gymsuite.suite import suite_root
from gymsuite.worlds.procedural import Procedural

SPLITS = ("train", "val", "test-iid", "test-ood")
SCENES = [(split, index) for split in SPLITS for index in range(15)]


@pytest.fixture(scope="module")
def fileops() -> Environment:
    return Registry(suite_root() / "registry.yaml").load("tools/fileops-v1")


@pytest.fixture(scope="module")
def scenes(fileops: Environment) -> ModuleType:
    return part("scenes")


def part(name: str) -> ModuleType:
    package = next(m for m in sys.modules if re.fullmatch(r"_gymsuite_tools_fileops_v1_\w+", m))
    return importlib.import_module(f"{package}.{name}")


def tasks(fileops: Environment, split: str, count: int) -> list[Task]:
    assert isinstance(fileops.tasks, Procedural)
    return [fileops.tasks.at(split, index) for index in range(count)]


def judged(expected: Any, found: dict[str, Any]) -> Any:
    return part("judging").judge(expected, found)


def whole(tree: Any) -> dict[str, Any]:
    found: dict[str, Any] = part("tree").whole(tree)
    return found


def expected_of(scenes: ModuleType, family: str, level: int) -> Any:
    """The visible copy of the first scene of a level that has this family in it."""
    for index in range(level - 1, 500, 5):
        made = scenes.scene("train", index)
        if family in [job.family for job in made.jobs]:
            return made.expected(0)
    raise AssertionError(family)


PRINT = """
import hashlib
from gymsuite import Registry
from gymsuite.suite import suite_root
tasks = Registry(suite_root() / "registry.yaml").load("tools/fileops-v1").tasks
text = "".join(tasks[at].model_dump_json() for at in range(0, len(tasks), 17))
print(hashlib.sha256(text.encode()).hexdigest())
"""


def test_tasks_and_trees_are_the_same_in_another_process_zone_and_locale() -> None:
    def digest(**place: str) -> str:
        command = [sys.executable, "-c", PRINT]
        return subprocess.run(
            command, env={**os.environ, **place}, stdout=subprocess.PIPE, text=True, check=True
        ).stdout

    one = digest(PYTHONHASHSEED="1", TZ="Pacific/Chatham", LC_ALL="C")
    assert digest(PYTHONHASHSEED="4242", TZ="America/St_Johns", LC_ALL="C.UTF-8") == one


def test_the_tasks_of_this_version_stay_what_they_are(fileops: Environment) -> None:
    some = [task for split in SPLITS for task in tasks(fileops, split, 20)]
    text = "".join(task.model_dump_json() for task in some)
    assert hashlib.sha256(text.encode()).hexdigest()[:32] == "cc66d5e1bd6008e4174e75d08a102f37"


def test_no_two_tasks_have_the_same_prompt_or_tree(fileops: Environment) -> None:
    some = [task for split in SPLITS for task in tasks(fileops, split, 60)]
    assert len({task.prompt for task in some}) == len(some)
    assert len({digest for task in some for digest in task.hidden["trees"]}) == 4 * len(some)


def test_splits_share_no_folder_no_name_and_no_composition(scenes: ModuleType) -> None:
    for one, other in combinations(SPLITS, 2):
        assert not set(scenes.pairs(one)) & set(scenes.pairs(other))
        assert not set(part("names").stems(one)) & set(part("names").stems(other))
        folders = [
            {job.folder for at in range(60) for job in scenes.scene(split, at).jobs}
            for split in (one, other)
        ]
        assert not folders[0] & folders[1]


def test_every_level_and_every_family_comes_in_every_split(scenes: ModuleType) -> None:
    for split in SPLITS:
        made = [scenes.scene(split, index) for index in range(150)]
        assert {scene.level for scene in made} == {1, 2, 3, 4, 5}
        assert {scene.jobs[0].family for scene in made if scene.level == 3} == set(scenes.FAMILIES)


@pytest.mark.parametrize(("split", "index"), SCENES)
def test_what_is_right_changes_something_and_doing_nothing_is_worth_nothing(
    scenes: ModuleType, split: str, index: int
) -> None:
    made = scenes.scene(split, index)
    assert list(part("gate").faults_of_ends(made)) == []
    assert made.expected(0).before != made.expected(1).before
    names = [name for name in made.expected(0).before if not name.startswith("misc/")]
    assert len(set(names) & set(made.expected(1).before)) < len(names) / 2


@pytest.mark.parametrize(("split", "index"), SCENES[::3])
def test_one_change_less_or_more_is_no_success(scenes: ModuleType, split: str, index: int) -> None:
    expected = scenes.scene(split, index).expected(0)
    assert list(part("gate").faults_of_changes(expected)) == []
    file = part("tree").text("nobody asked\n")
    more = judged(expected, {**whole(expected.after), "misc/extra.txt": file})
    assert (more.exact, more.collateral) == (False, ("misc/extra.txt",))


def test_the_gate_finds_a_scene_in_which_nothing_has_to_be_done(scenes: ModuleType) -> None:
    @dataclass
    class Idle:
        level: int

        def expected(self, _: int) -> Any:
            expected = scenes.scene("train", 2).expected(0)
            return expected._replace(after=expected.before)

    found = list(part("gate").faults_of_ends(Idle(3)))
    assert [fault.partition(":")[0] for fault in found] == [*["gold", "no-op"] * 2, "sibling"]


def test_touching_what_is_protected_takes_all_progress(scenes: ModuleType) -> None:
    made = scenes.scene("train", 2)
    expected = made.expected(0)
    inside = next(path for path in expected.before if path.startswith(f"{made.protected}/"))
    found = whole(expected.after)
    del found[inside]
    verdict = judged(expected, found)
    assert verdict.mines == (inside,)
    assert verdict.progress == 0


def test_contents_that_are_nowhere_any_more_take_all_progress(scenes: ModuleType) -> None:
    expected = expected_of(scenes, "renaming", 1)
    moved = sorted(set(expected.after) - set(expected.before))
    found = whole(expected.after)
    del found[moved[0]]
    verdict = judged(expected, found)
    assert len(verdict.mines) == 1
    assert verdict.progress == 0


@pytest.mark.parametrize("family", ["renaming", "archives"])
def test_removing_everything_that_has_to_go_earns_nothing(scenes: ModuleType, family: str) -> None:
    expected = expected_of(scenes, family, 1)
    found = {p: node for p, node in whole(expected.before).items() if p in whole(expected.after)}
    verdict = judged(expected, found)
    assert verdict.right > 0
    assert verdict.progress == 0


def test_archives_that_are_half_unpacked_are_half_of_the_way(scenes: ModuleType) -> None:
    expected = expected_of(scenes, "archives", 1)
    made = sorted(set(expected.after) - set(expected.before))
    found = whole(expected.after)
    for path in made[::2]:
        del found[path]
    assert 0.3 < judged(expected, found).progress < 0.7


def test_a_copy_that_stays_behind_is_half_of_a_move(scenes: ModuleType) -> None:
    expected = expected_of(scenes, "renaming", 1)
    verdict = judged(expected, {**whole(expected.before), **whole(expected.after)})
    assert verdict.mines == ()
    assert verdict.progress == 0.5


ALIKE = [
    ('{"b": 1, "a": [1, 2]}', '{ "a":[1,2],\n"b":1}\n\n'),
    ('{"b": 10}', '{"b": 10.0}'),
    ("[10, 0.5, -0, 120]", "[1e1, 5E-1, 0.0, 1.2e+2]"),
    ("[1e400]", "[10e399]"),
    ('["\\u00e9"]', '["é"]'),
]
DIFFERENT = [
    ('{"b": 1}', '{"b": true}'),
    ('{"b": 10}', '{"b": "10"}'),
    ('{"b": 10}', '{"b": ["10", 0]}'),
    ('{"b": 10}', '{"b": 100}'),
    ('{"b": 10}', '{"b": -10}'),
    ('{"b": 10}', '{"b": 1, "b": 10}'),
    ("[9007199254740993]", "[9007199254740992]"),
    ("[0.1]", "[0.1000000000000000055511151231257827]"),
    ("[1, 2]", "[2, 1]"),
    ("[NaN]", "[ NaN]"),
    ("[1]", "\ufeff[1]"),
    ("[null]", "[false]"),
]


@pytest.mark.parametrize(("one", "other"), ALIKE)
def test_json_of_equal_values_is_alike(scenes: ModuleType, one: str, other: str) -> None:
    meaning = part("tree").meaning
    assert meaning("a.json", one.encode()) == meaning("a.json", other.encode())
    assert meaning("a.conf", one.encode()) != meaning("a.conf", other.encode())


@pytest.mark.parametrize(("one", "other"), DIFFERENT)
def test_json_of_other_values_or_that_readers_disagree_on_is_not(
    scenes: ModuleType, one: str, other: str
) -> None:
    meaning = part("tree").meaning
    assert meaning("a.json", one.encode()) != meaning("a.json", other.encode())


@pytest.mark.parametrize(
    "bomb",
    [b"[" * 10**5, b"1" * 50_000, b"[1e" + b"9" * 50_000 + b"]", b"[" + b"[]," * 10**6 + b"1]"],
)
def test_no_json_is_too_much_for_the_judge(scenes: ModuleType, bomb: bytes) -> None:
    meaning = part("tree").meaning
    assert meaning("a.json", bomb) == meaning("a.json", bytes(bomb))
    assert meaning("a.json", bomb) != meaning("a.json", bomb[:-1])


def test_a_report_counts_by_its_lines_and_other_files_by_their_bytes(scenes: ModuleType) -> None:
    meaning = part("tree").meaning
    for report in ("a/report.csv", "removed.tsv", "b/lost.txt"):
        assert meaning(report, b"a,1\r\nb,2") == meaning(report, b"a,1\nb,2\n")
        assert meaning(report, b"a,1\nb,2") != meaning(report, b"b,2\na,1\n")
    for other in ("a.txt", "notes.csv", "a/my-report.csv"):
        assert meaning(other, b"x\n") != meaning(other, b"x")


def test_the_rights_of_files_that_were_there_count_and_those_of_new_ones_do_not(
    scenes: ModuleType,
) -> None:
    expected = expected_of(scenes, "logs", 1)
    found = whole(expected.after)
    report = next(path for path in found if path.endswith("report.csv"))
    assert judged(expected, {**found, report: found[report]._replace(mode=0o600)}).exact
    other = next(path for path in found if path.endswith(".log"))
    assert not judged(expected, {**found, other: found[other]._replace(mode=0o755)}).exact


def test_a_submission_tells_the_whole_tree_again(scenes: ModuleType) -> None:
    leaving, node = part("leaving"), part("tree").Node
    for index in range(10):
        expected = scenes.scene("train", index).expected(0)
        found = whole(expected.after)
        found["odd \\udcff\nname"] = node("file", 0o600, b"\0\xff")
        found["misc/link"] = node("link", 0o777, b"../nowhere")
        submission = leaving.left_of(expected.before, found, {"solve.sh": b"true"})
        stored = Submission.model_validate_json(submission.model_dump_json())
        assert leaving.found_in(expected.before, stored) == found


def test_archives_are_the_same_bytes_everywhere() -> None:
    tree = part("tree")
    packed = tree.packed({"a/b.txt": tree.text("words\n"), "c": tree.link("a/b.txt")})
    assert (
        hashlib.sha256(packed).hexdigest()
        == "b971dec55edfc93b2afb43668bd6c75e0027aa06c3551a69202dcba030b5b337"
    )
    assert (
        hashlib.sha256(tree.gzipped(packed)).hexdigest()
        == "a0535affc9631e03ab10c6d5bd555e8bc8f6842b1062acbb83130a9d495c5d77"
    )
