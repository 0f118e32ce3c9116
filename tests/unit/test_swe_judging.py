"""What is made of a run, before and after the sandbox."""

import asyncio
import json
import time
from collections.abc import Collection
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from gymsuite import SandboxError, UsageError
from gymsuite.swe import script
from gymsuite.swe.grading import Resolution, Split, Verdict
from gymsuite.swe.harness import Done, Run, evaluate
from gymsuite.swe.judgement import Ending, Evidence, Judgement
from gymsuite.swe.parsers.results import Parsed
from gymsuite.swe.predictions import Prediction
from gymsuite.swe.rows import Row
from gymsuite.swe.running import read_records
from gymsuite.swe.vetting import Vetted, Vettings, vet
from gymsuite.verify.policy import is_protected_but, lifted_for

ROW = Row(
    instance_id="o__n-1",
    repo="o/n",
    dialect="swe-bench",
    base_commit="0" * 40,
    problem_statement="p",
    fail_to_pass=("t.py::a",),
    pass_to_pass=("t.py::b",),
    patch="gold",
    eval_script="set -x\n: '>>>>> Start Test Output'\npytest\n: '>>>>> End Test Output'\n",
    log_parser="parse_log_pytest",
)


def lines(*records: object, nonce: str = "n") -> bytes:
    return "".join(f"{nonce} {json.dumps(record)}\n" for record in records).encode()


WHOLE = (
    ["started", "3.11"],
    ["collected", ["a", "b"]],
    ["test", ["a", "PASSED"]],
    ["test", ["b", "SKIPPED"]],
    ["ended", 0],
)


def test_the_records_of_a_whole_run_stand_for_its_log() -> None:
    records = read_records(lines(*WHOLE), "n")
    assert records.usable
    assert records.results == {"a": "PASSED", "b": "SKIPPED"}
    assert [*records.listed()] == [("a", "PASSED")]


def test_a_run_that_did_not_end_is_not_usable() -> None:
    assert not read_records(lines(*WHOLE[:-1]), "n").usable
    assert not read_records(b"", "n").usable


@pytest.mark.parametrize(
    "data",
    [
        lines(*WHOLE, ["test", ["c", "PASSED"]]),
        lines(*WHOLE[:3], ["test", ["a", "PASSED"]], WHOLE[4]),
        lines(WHOLE[0], ["test", ["a", "GREAT"]], WHOLE[4]),
        lines(*WHOLE[:2], nonce="other"),
        b"PASSED a\n" + lines(*WHOLE),
        b"n [[[[\n",
    ],
)
def test_what_no_run_writes_is_a_disturbance(data: bytes) -> None:
    records = read_records(data, "n")
    assert records.disturbed
    assert not records.usable


def test_an_eval_script_stays_as_it_is() -> None:
    assert script.of(ROW, strict=False) == ROW.eval_script


def test_upstream_adds_how_the_tests_exited() -> None:
    added = script.of(ROW, strict=True).split("\n")
    assert added[3] == "SWEBENCH_TEST_EXIT_CODE=$?"
    assert added[5] == 'echo ">>>>> Test Exit Code: $SWEBENCH_TEST_EXIT_CODE"'


@pytest.mark.parametrize("path", ["setup.py", "a/pyproject.toml", "src/fast.pyx", "x/y.c"])
def test_what_an_installation_reads_asks_for_a_new_one(path: str) -> None:
    assert script.is_of_install(path)
    assert not script.is_of_install(f"{path}.py")


def test_the_paths_of_a_patch_are_read_whatever_it_does() -> None:
    patch = "--- a/x.py\n+++ /dev/null\nrename from o/l.py\nrename to n/w.py\n+++ b/y z.py\t\n"
    assert script.paths_of(patch) == ("x.py", "o/l.py", "n/w.py", "y z.py")


@pytest.mark.parametrize(
    "patch",
    [
        "diff --git a/t b/conftest.py b/t b/conftest.py\nnew file mode 100644\nindex 0..e69de29\n",
        "diff --git a/t b/conftest.py b/t b/conftest.py\nGIT binary patch\n",
        'diff --git "a/t b/conftest.py" "b/t b/conftest.py"\r\nold mode 100644\r\n',
        '--- "a/t b/conftest.py"\n+++ "b/t b/conftest.py"\n',
    ],
)
def test_files_without_a_line_of_text_are_among_a_patchs_paths(patch: str) -> None:
    assert script.paths_of(patch) == ("t b/conftest.py",)


def test_a_hostile_line_of_a_patch_costs_little() -> None:
    began = time.process_time()
    script.paths_of("diff --git a/" + "x b/" * 200_000)
    assert time.process_time() - began < 5


def test_what_a_solution_touches_is_free_for_others_but_for_what_steers_the_runner() -> None:
    lifted = lifted_for(["src/_pytest/skipping.py", "setup.cfg", "conftest.py"])
    assert not is_protected_but("src/_pytest/other.py", lifted)
    assert not is_protected_but("setup.cfg", lifted)
    assert is_protected_but("tox.ini", lifted)
    assert is_protected_but("src/_pytest/conftest.py", lifted)


class FakeSupply:
    def label(self, row: Row) -> str:
        return "image"

    def ready(self, row: Row) -> str:
        return "image"


class FakeJudge:
    """Says what its patch asks for, and counts how often it was asked."""

    strict = False
    seconds = 1.0
    supply = FakeSupply()

    def __init__(self) -> None:
        self.asked: list[str | bytes | None] = []

    async def judge(
        self, row: Row, patch: str | bytes | None, *, waived: Collection[str] = ()
    ) -> Judgement:
        self.asked.append(patch)
        if patch == "broken":
            raise SandboxError("the disk is full")
        if patch == "full":
            raise OSError(28, "No space left on device")
        if patch == "once" and self.asked.count("once") == 1:
            raise SandboxError("lost")
        if not patch:
            return Judgement(Ending.EMPTY)
        if patch == "stale":
            return Judgement(Ending.NOT_APPLIED, patch_log="error: no such file")
        full = patch in {"gold", "once"}
        verdict = Verdict(
            Split(("t.py::a",)) if full else Split((), ("t.py::a",)),
            Split(("t.py::b",)),
            Resolution.FULL if full else Resolution.NO,
        )
        ending = Ending.RESOLVED if full else Ending.UNRESOLVED
        return Judgement(ending, verdict, Evidence.SEALED, log=b"a log \xff")

    async def run(self, row: Row, patch: str | bytes, *, waived: Collection[str] = ()) -> Judgement:
        self.asked.append(patch)
        status = "FAILED" if len(self.asked) == 2 else "PASSED"
        ending = Ending.RESOLVED if patch else Ending.UNRESOLVED
        results = Parsed({"t.py::a": "PASSED", "t.py::b": status})
        return Judgement(ending, results=results, test_seconds=1.5)


def judged(
    folder: Path,
    judge: FakeJudge,
    patch: str | None,
    name: str = "o__n-1",
    waived: Collection[str] = (),
) -> tuple[list[Done], dict[str, object]]:
    run = Run("r", "rows.jsonl", "test", folder, folder, jobs=2)
    predictions = {name: Prediction(instance_id=name, model="org/m", patch=patch)}
    seen: list[Done] = []
    flaky = {ROW.instance_id: waived}
    _, report = asyncio.run(
        evaluate(run, [ROW], predictions, judge, waived=flaky, hear=seen.append)  # type: ignore[arg-type]
    )
    return seen, dict(report)


@pytest.mark.parametrize(
    ("patch", "column"),
    [
        ("gold", "resolved_ids"),
        ("wrong", "unresolved_ids"),
        ("", "empty_patch_ids"),
        (None, "empty_patch_ids"),
        ("stale", "error_ids"),
        ("broken", "error_ids"),
        ("once", "resolved_ids"),
    ],
)
def test_every_outcome_has_its_column_in_upstreams_report(
    tmp_path: Path, patch: str | None, column: str
) -> None:
    _, report = judged(tmp_path, FakeJudge(), patch)
    columns = ("resolved_ids", "unresolved_ids", "empty_patch_ids", "error_ids")
    assert [name for name in columns if report[name]] == [column]
    folder = tmp_path / "logs/run_evaluation/r/org__m/o__n-1"
    assert (folder / "report.json").exists() == (column in columns[:2])
    assert json.loads((tmp_path / "org__m.r.json").read_text())["schema_version"] == 2


def test_a_broken_world_is_no_verdict_and_is_tried_again_next_time(tmp_path: Path) -> None:
    judge = FakeJudge()
    (done,), _ = judged(tmp_path, judge, "broken")
    assert (done.stored.ending, done.stored.error) == ("", "SandboxError: the disk is full")
    assert len(judge.asked) == 3
    judged(tmp_path, judge, "broken")
    assert len(judge.asked) == 6


def test_a_row_that_is_left_without_a_test_of_repairs_has_no_verdict(tmp_path: Path) -> None:
    (one,), report = judged(tmp_path, FakeJudge(), "gold", waived=("t.py::a",))
    assert "any patch would be resolved" in one.stored.error
    assert report["error_ids"] == ["o__n-1"]
    (one,), _ = judged(tmp_path, FakeJudge(), "gold", waived=("t.py::b",))
    assert one.stored.ending == "resolved"


def test_what_ends_the_whole_run_is_one_error(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="No space left"):
        judged(tmp_path, FakeJudge(), "full")


def test_what_is_done_is_kept_until_the_patch_changes(tmp_path: Path) -> None:
    judge = FakeJudge()
    for patch, kept in (("gold", False), ("gold", True), ("wrong", False), ("gold", False)):
        (done,), _ = judged(tmp_path, judge, patch)
        assert done.kept is kept
    assert judge.asked == ["gold", "wrong", "gold"]


def test_a_prediction_for_no_row_is_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"does not have: o__n-2"):
        judged(tmp_path, FakeJudge(), "gold", name="o__n-2")


def test_vetting_tells_flaky_tests_from_sound_rows() -> None:
    vetted = asyncio.run(vet(ROW, FakeJudge()))  # type: ignore[arg-type]
    assert vetted.is_sound
    assert vetted.gold == ("resolved",) * 3
    assert vetted.flaky == {"t.py::b": ("PASSED", "FAILED", "PASSED")}
    assert vetted.seconds == 1.5


def test_two_who_measure_a_row_at_once_do_not_take_each_others_file_away(tmp_path: Path) -> None:
    """Two processes share one folder of what was vetted; each writes it whole."""
    found = Vetted(instance_id="o__n-1", gold=("resolved",), empty=("unresolved",))
    judge = FakeJudge()

    def write(_: int) -> None:
        Vettings(tmp_path).write(ROW, judge, found)  # type: ignore[arg-type]

    with ThreadPoolExecutor(8) as threads:
        list(threads.map(write, range(200)))
    assert Vettings(tmp_path).read(ROW, judge) == found  # type: ignore[arg-type]
    assert len(list(tmp_path.iterdir())) == 1
