"""Rows of every dialect: what is read of them, what is refused, and that nothing of them is run."""

import contextlib
import json
import re
import subprocess
from pathlib import Path
from typing import Any

import pyarrow as pa  # type: ignore[import-untyped]
import pytest
from pyarrow import parquet

from gymsuite.errors import DefinitionError, UsageError
from gymsuite.swe.columns import parse_python_list
from gymsuite.swe.dialects.table import DIALECTS
from gymsuite.swe.ladder import without_binary_files
from gymsuite.swe.loading import load_rows
from gymsuite.swe.reverse import reverse_patch
from gymsuite.swe.rows import Ladder, Row, Rule, TestPatch

_FIXTURES = Path(__file__).parents[1] / "fixtures" / "swe"
_ROWS = _FIXTURES / "rows"
_DIALECTS = {
    "classic": "swe_bench",
    "verified": "swe_bench",
    "multilingual": "swe_bench",
    "multimodal": "swe_bench",
    "swe_gym": "swe_gym",
    "swe_smith": "swe_smith",
    "r2e_gym": "r2e_gym",
    "swe_rebench": "swe_rebench",
    "swe_rebench_v2": "swe_rebench_v2",
    "swe_bench_live": "swe_bench_live",
    "swe_bench_pro": "swe_bench_pro",
    "multi_swe": "multi_swe",
}


def _load(name: str) -> Row:
    return load_rows(str(_ROWS / f"{name}.jsonl"))[0]


def _raw(name: str) -> dict[str, Any]:
    first = (_ROWS / f"{name}.jsonl").read_text("utf-8").splitlines()[0]
    row: dict[str, Any] = json.loads(first)
    return row


def _save(folder: Path, *rows: object) -> str:
    path = folder / "rows.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    return str(path)


def test_every_dialect_has_a_fixture() -> None:
    assert set(_DIALECTS.values()) == set(DIALECTS)
    assert set(_DIALECTS) == {path.stem for path in _ROWS.glob("*.jsonl")}


@pytest.mark.parametrize(("name", "dialect"), _DIALECTS.items())
def test_a_rows_columns_tell_its_dialect(name: str, dialect: str) -> None:
    row = _load(name)
    assert row.dialect == dialect
    assert row.repo
    assert row.named_tests
    assert row.patch.startswith("diff --git ")
    assert row.eval_script or row.test_commands
    assert Row.model_validate_json(row.model_dump_json()) == row


def test_lists_are_read_as_lists_as_json_and_as_python_prints_them(tmp_path: Path) -> None:
    tests = ["t.py::a['x']", 't.py::b["y"]', "t.py::c\\n"]
    for column in (tests, json.dumps(tests), repr(tests)):
        row = load_rows(_save(tmp_path, {**_raw("classic"), "FAIL_TO_PASS": column}))[0]
        assert row.fail_to_pass == tuple(tests)


@pytest.mark.parametrize(
    "text",
    ["[1]", "['a' 'b']", "['a', b]", "__import__('os')", "['a'", "[f'a']", "['a'+'b']", "[('a')]"],
)
def test_what_is_no_plain_list_of_texts_is_none(text: str) -> None:
    assert parse_python_list(text) is None


def test_python_escapes_are_read_without_evaluating() -> None:
    tests = ["a\tb", "\x1b[0m", "é\u2028", "it's", 'say "x"', "back\\slash", "\U0001f600"]
    assert parse_python_list(ascii(tests)) == tests


def test_a_json_array_and_a_parquet_file_give_the_same_rows(tmp_path: Path) -> None:
    raw = [_raw("verified"), {**_raw("verified"), "instance_id": "acme__tally-99"}]
    (tmp_path / "rows.json").write_text(json.dumps(raw), "utf-8")
    parquet.write_table(pa.Table.from_pylist(raw), tmp_path / "rows.parquet")
    expected = load_rows(_save(tmp_path, *raw))
    assert load_rows(str(tmp_path / "rows.json")) == expected
    assert load_rows(str(tmp_path / "rows.parquet")) == expected


def test_a_folder_and_hugging_faces_cache_are_read_by_split(tmp_path: Path) -> None:
    table = pa.Table.from_pylist([_raw("verified")])
    data = tmp_path / "datasets--SWE-bench--SWE-bench_Verified" / "snapshots" / "abc" / "data"
    data.mkdir(parents=True)
    parquet.write_table(table, data / "test-00000-of-00001.parquet")
    expected = (_load("verified"),)
    assert load_rows("verified", cache=tmp_path) == expected
    assert load_rows("SWE-bench/SWE-bench_Verified", cache=tmp_path) == expected
    assert load_rows(str(data.parent)) == expected
    with pytest.raises(
        UsageError, match=r"split 'dev' is not in .*hf download --repo-type dataset"
    ):
        load_rows("verified", split="dev", cache=tmp_path)


def test_a_task_repository_gives_the_row_that_it_was_made_of() -> None:
    row = load_rows(str(_FIXTURES / "task_repository"))[0]
    same = _load("verified")
    assert row.eval_script == same.eval_script
    assert row.fail_to_pass == same.fail_to_pass
    assert row.version == "1.4"
    assert row.test_patch.split("\n")[0].endswith("\r"), "a patch keeps its line ends"
    with pytest.raises(UsageError, match=r"no row 'x'; there are 1 rows"):
        load_rows(str(_FIXTURES / "task_repository"), ids=("x",))


def test_a_v5_row_keeps_its_script_parser_rule_and_image() -> None:
    row = _load("multimodal")
    assert row.rule == Rule.FAIL_ONLY
    assert row.log_parser == "parse_log_chart_js"
    assert row.test_patch_when == TestPatch.IN_SCRIPT
    assert row.image.endswith("acme_1776_plot.js-3:latest")
    assert "image_assets" in row.extra


def test_a_classic_row_gets_its_repositorys_command(tmp_path: Path) -> None:
    row = _load("classic")
    assert row.test_commands == ("pytest -rA tests/test_sums.py",)
    assert row.test_patch_when == TestPatch.AFTER
    raw = _raw("classic")
    raw |= {"repo": "django/django", "test_patch": raw["test_patch"].replace("test_sums", "a/b")}
    django = load_rows(_save(tmp_path, raw))[0]
    assert django.test_commands[0].endswith("--parallel 1 a.b")
    assert django.log_parser == "parse_log_django"


def test_a_test_files_name_is_quoted_for_the_shell(tmp_path: Path) -> None:
    raw = _raw("classic")
    raw["test_patch"] = raw["test_patch"].replace("test_sums.py", "a;reboot.py")
    row = load_rows(_save(tmp_path, raw))[0]
    assert row.test_commands == ("pytest -rA 'tests/a;reboot.py'",)


def test_swe_smiths_gold_is_its_bug_turned_round() -> None:
    row = _load("swe_smith")
    assert "-        result = number\n+        result += number\n" in row.patch
    assert "-        result += number\n+        result = number\n" in row.setup_patch
    assert row.base_commit == "3f1c0d5a"
    assert row.test_patch_when == TestPatch.IN_IMAGE


def test_r2es_patch_is_made_of_contents_and_leaves_tests_out() -> None:
    row = _load("r2e_gym")
    assert "tests/test_sums.py" not in row.patch
    assert "+        result += number\n" in row.patch
    assert row.test_files == ("r2e_tests/test_1.py",)
    assert row.expected["test_stays_broken"] == "FAILED"
    assert row.rule == Rule.SAME_MAP


def test_rebench_recipes_become_commands() -> None:
    row = _load("swe_rebench")
    assert row.test_commands == ("pytest --no-header -rA --tb=line --color=no tests/test_sums.py",)
    newer = _load("swe_rebench_v2")
    assert newer.ladder == Ladder.THREE_WAY
    assert newer.workdir == "/tally-rs"
    assert newer.created_at == "1609298073000"


def test_a_parser_that_is_not_ours_is_kept_as_a_name() -> None:
    other = load_rows(str(_ROWS / "swe_rebench_v2.jsonl"))[1]
    assert other.log_parser == ""
    assert other.extra["log_parser"] == "parse_log_haskell"


def test_the_source_of_a_parser_is_kept_and_never_run() -> None:
    row = load_rows(str(_ROWS / "swe_bench_live.jsonl"))[1]
    assert row.log_parser == ""
    assert "def parser(log)" in row.parser_source
    assert not Path("/tmp/never").exists()  # noqa: S108 - what the source would make


def test_pro_rows_have_python_lists_and_keep_names_to_the_last_space() -> None:
    row = _load("swe_bench_pro")
    assert row.fail_to_pass == ('tests/test_sums.py | adds "many" ',)
    assert row.pass_to_pass[0] == "tests/test_sums.py | it's one"
    assert row.rebuild_commands == ("git checkout 9c8b7a6d -- tests/test_sums.py",)
    assert "Requirements:\n- total() adds every number." in row.problem_statement
    assert "run_script.sh tests/test_sums.py,tests/test_text.py" in row.test_commands[0]


def test_pro_judges_a_patch_without_its_binary_files() -> None:
    text = b"diff --git a/a.py b/a.py\n--- a/a.py\n+++ b/a.py\n@@ -1 +1 @@\n-a\n+b\n"
    binary = b"diff --git a/a.png b/a.png\nGIT binary patch\nliteral 1\nIcmZ\n"
    assert _load("swe_bench_pro").ladder == Ladder.ONCE_TEXT
    assert without_binary_files(binary + text + binary) == text


def test_multi_swe_counts_new_and_skipped_tests_among_those_to_be_fixed() -> None:
    row = _load("multi_swe")
    assert row.instance_id == "acme/tally-go:pr-21"
    assert row.fail_to_pass == ("TestMany", "TestNew")
    assert row.recorded["test"]["TestMany"] == "FAILED"
    assert row.image == "mswebench/acme_m_tally-go:pr-21"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"FAIL_TO_PASS": "[1"},
            r"rows.jsonl:1 .*: column FAIL_TO_PASS is no JSON .*should be JSON",
        ),
        ({"FAIL_TO_PASS": [1]}, r"column FAIL_TO_PASS is \[1\]; it should be a list of texts"),
        ({"FAIL_TO_PASS": None}, r"column FAIL_TO_PASS is null; it should be a list of texts"),
        ({"patch": None}, r"column patch is null; it should be the gold patch"),
        ({"patch": ["x"]}, r"column patch is \[\"x\"\]; it should be the gold patch"),
        ({"eval_type": "any"}, r"column eval_type is 'any'; .*pass_and_fail or fail_only"),
        ({"log_parser": "exec"}, r"column log_parser is 'exec'; .*parse_log_pytest"),
        (
            {"instance_id": "../x"},
            r"jsonl:1 .*: column instance_id is '../x'; .*begins with no dot",
        ),
        ({"FAIL_TO_PASS": [], "PASS_TO_PASS": []}, r"names no test .* any patch would resolve it"),
    ],
)
def test_a_bad_row_is_named_by_file_row_and_column(
    tmp_path: Path, change: dict[str, object], message: str
) -> None:
    with pytest.raises(DefinitionError, match=message):
        load_rows(_save(tmp_path, {**_raw("verified"), **change}))


@pytest.mark.parametrize("name", _DIALECTS)
def test_a_missing_column_is_named_with_its_row_and_what_would_be_right(
    tmp_path: Path, name: str
) -> None:
    """Without a column that tells its data set, a row is read as another's, and that is said."""
    raw = _raw(name)
    refused = {}
    for column in raw:
        source = _save(tmp_path, {key: value for key, value in raw.items() if key != column})
        with contextlib.suppress(DefinitionError):
            load_rows(source)
            continue
        with pytest.raises(DefinitionError) as error:
            load_rows(source)
        refused[column] = str(error.value).removeprefix(f"{source}:1")
    assert len(refused) >= 4
    for column, text in refused.items():
        assert re.search(r"^[^:]*: ", text), text
        is_own = f"a {_DIALECTS[name]} row: " in text
        assert not is_own or re.search(
            rf"column {column}(\.\w+)? is missing; it should be ", text
        ), text


def test_a_column_in_other_letters_is_asked_about(tmp_path: Path) -> None:
    raw = _raw("verified")
    raw["base_comit"] = raw.pop("base_commit")
    message = (
        r"jsonl:1 \(acme__tally-12\), a swe_bench row: column base_commit .*'base_comit'.*a commit"
    )
    with pytest.raises(DefinitionError, match=message):
        load_rows(_save(tmp_path, raw))


def test_a_row_of_no_dialect_is_told_which_there_are(tmp_path: Path) -> None:
    with pytest.raises(DefinitionError, match=r"no reader knows the columns a; .*swe_bench"):
        load_rows(_save(tmp_path, {"a": 1}))
    with pytest.raises(DefinitionError, match=r"no dialect 'swe'; there are: "):
        load_rows(str(_ROWS / "classic.jsonl"), dialect="swe")


def test_what_holds_no_rows_says_what_would(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("x")
    (tmp_path / "a.jsonl").write_text("{\n")
    for source, kind, message in (
        (tmp_path / "a.txt", UsageError, r"files ending in \.json, \.jsonl, \.parquet"),
        (tmp_path / "a.jsonl", DefinitionError, r"a\.jsonl:1: not JSON"),
        (tmp_path, UsageError, r"neither a task repository"),
        (tmp_path / "b.jsonl", UsageError, r"no such file"),
    ):
        with pytest.raises(kind, match=message):
            load_rows(str(source))


@pytest.mark.parametrize("file", ["a.jsonl", "a.json"])
@pytest.mark.parametrize("text", ['{"hints": "\xe9"}', '{"hints": "\\ud800"}'])
def test_a_file_that_holds_no_text_is_refused_by_name(tmp_path: Path, file: str, text: str) -> None:
    (tmp_path / file).write_bytes(text.encode("latin-1"))
    with pytest.raises(DefinitionError, match=rf"{file}.*: not UTF-8"):
        load_rows(str(tmp_path / file))


def test_a_source_without_rows_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text("\n")
    with pytest.raises(DefinitionError, match=r"a\.jsonl: it holds no row of split 'test'"):
        load_rows(str(tmp_path / "a.jsonl"))


def test_two_rows_of_one_id_are_refused(tmp_path: Path) -> None:
    with pytest.raises(DefinitionError, match=r"rows.jsonl:2: a second row 'acme__tally-12'"):
        load_rows(_save(tmp_path, _raw("classic"), _raw("classic")))


@pytest.mark.parametrize(
    "change",
    ["edit", "add", "delete", "rename", "mode", "newline"],
)
def test_a_reversed_patch_undoes_the_patch(tmp_path: Path, change: str) -> None:
    def git(*command: str, text: str = "") -> str:
        done = subprocess.run(
            ["git", "-c", "user.name=a", "-c", "user.email=a", *command],
            cwd=tmp_path,
            input=text,
            capture_output=True,
            text=True,
            check=True,
        )
        return done.stdout

    lines = [f"line {number}\n" for number in range(30)]
    git("init", "-q")
    (tmp_path / "a.txt").write_text("".join(lines))
    git("add", ".")
    git("commit", "-qm", "a")
    if change == "edit":
        lines[3:5], lines[20] = ["x\n"], "y\nz\n"
        (tmp_path / "a.txt").write_text("".join(lines))
    elif change == "add":
        (tmp_path / "b.txt").write_text("new\n")
    elif change == "delete":
        (tmp_path / "a.txt").unlink()
    elif change == "rename":
        (tmp_path / "a.txt").rename(tmp_path / "c d.txt")
    elif change == "mode":
        (tmp_path / "a.txt").chmod(0o755)
    else:
        (tmp_path / "a.txt").write_text("".join(lines[:-1]) + "last")
    git("add", "-A")
    patch = git("diff", "--cached", "-M")
    git("apply", "--index", text=reverse_patch(patch))
    assert git("status", "--porcelain") == ""
