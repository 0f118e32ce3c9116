"""From results to a verdict: each data set's own rule, and SWE-bench's beside ours."""

from pathlib import Path

import pytest

from gymsuite.errors import DefinitionError
from gymsuite.swe.grading import Resolution, grade
from gymsuite.swe.loading import load_rows
from gymsuite.swe.log_grading import compare, grade_log, grade_log_upstream
from gymsuite.swe.parsers.results import Parsed, Result, UpstreamRaises, joined
from gymsuite.swe.parsers.table import named
from gymsuite.swe.rows import Row, Rule

_FIXTURES = Path(__file__).parents[1] / "fixtures" / "swe"
_NAMES = sorted(path.stem for path in (_FIXTURES / "rows").glob("*.jsonl"))


def _row(name: str = "verified") -> Row:
    return load_rows(str(_FIXTURES / "rows" / f"{name}.jsonl"))[0]


def _log(name: str, kind: str) -> bytes:
    return (_FIXTURES / "verdicts" / f"{name}.{kind}.txt").read_bytes()


def _ruled(
    rule: Rule, *, fixed: tuple[str, ...] = ("new",), kept: tuple[str, ...] = ("old",)
) -> Row:
    return _row().model_copy(
        update={"rule": rule, "fail_to_pass": fixed, "pass_to_pass": kept, "eval_script": ""}
    )


def _graded(rule: Rule, **statuses: str) -> Resolution:
    return grade(_ruled(rule), Parsed(statuses)).resolution


@pytest.mark.parametrize("name", _NAMES)
def test_gold_resolves_and_empty_does_not_in_every_dialect(name: str) -> None:
    gold, empty = (grade_log(_row(name), _log(name, kind)) for kind in ("gold", "empty"))
    assert gold.resolved, gold
    assert not gold.invalid
    assert not empty.resolved
    assert not empty.invalid


@pytest.mark.parametrize("name", ["verified", "multilingual", "multimodal"])
@pytest.mark.parametrize("kind", ["gold", "empty"])
def test_upstream_agrees_on_gold_and_empty(name: str, kind: str) -> None:
    found = compare(_row(name), _log(name, kind))
    assert found.differences == ()
    assert found.ours.resolved == found.upstream.resolved == (kind == "gold")


@pytest.mark.parametrize(
    ("rule", "new", "old", "resolved"),
    [
        (Rule.PASS_AND_FAIL, "PASSED", "PASSED", True),
        (Rule.PASS_AND_FAIL, "XFAIL", "XFAIL", True),
        (Rule.PASS_AND_FAIL, "PASSED", "SKIPPED", True),
        (Rule.PASS_AND_FAIL, "SKIPPED", "PASSED", False),
        (Rule.PASS_AND_FAIL, "PASSED", "", False),
        (Rule.PASS_AND_FAIL, "", "PASSED", False),
        (Rule.PASS_AND_FAIL, "PASSED", "ERROR", False),
        (Rule.FAIL_ONLY, "", "", True),
        (Rule.FAIL_ONLY, "FAILED", "", False),
        (Rule.NONE_FAILING, "PASSED", "", True),
        (Rule.NONE_FAILING, "PASSED", "SKIPPED", True),
        (Rule.NONE_FAILING, "", "PASSED", False),
        (Rule.NONE_FAILING, "PASSED", "FAILED", False),
        (Rule.ALL_PASSED, "PASSED", "PASSED", True),
        (Rule.ALL_PASSED, "PASSED", "SKIPPED", False),
        (Rule.ALL_PASSED, "PASSED", "", False),
        (Rule.SAME_PASSED, "PASSED", "PASSED", True),
        (Rule.SAME_PASSED, "PASSED", "SKIPPED", False),
    ],
)
def test_each_rule_weighs_statuses_its_own_way(
    rule: Rule, new: str, old: str, *, resolved: bool
) -> None:
    statuses = {name: status for name, status in (("new", new), ("old", old)) if status}
    assert grade(_ruled(rule), Parsed(statuses)).resolved == resolved


def test_part_of_the_fixes_is_partial_only_while_nothing_breaks() -> None:
    row = _ruled(Rule.PASS_AND_FAIL, fixed=("a", "b"))
    part = Parsed({"a": "PASSED", "b": "FAILED", "old": "PASSED"})
    broken = Parsed({"a": "PASSED", "b": "FAILED", "old": "FAILED"})
    assert grade(row, part).resolution == Resolution.PARTIAL
    assert grade(row, broken).resolution == Resolution.NO


def test_one_more_passing_test_is_wrong_where_the_passed_ones_must_be_the_same() -> None:
    verdict = grade(_ruled(Rule.SAME_PASSED), Parsed(dict.fromkeys(("new", "old", "x"), "PASSED")))
    assert not verdict.resolved
    assert "'x' passed and is not among the named tests" in verdict.because
    timed = Parsed({"new (3 ms)": "PASSED", "old": "PASSED"})
    assert grade(_ruled(Rule.SAME_PASSED), timed).resolved


def test_r2e_wants_the_whole_map_and_no_test_more() -> None:
    row = _row("r2e_gym")
    right = named(
        "r2e_pytest",
        {
            "r/t.py::test_many": "PASSED",
            "r/t.py::TestText::test_words[a b]": "PASSED",
            "r/t.py::test_stays_broken": "FAILED",
        },
    )
    assert grade(row, right).resolved
    more = Parsed({**right.statuses, "r/t.py::new": "PASSED"}, right.keys)
    assert "'r/t.py::new': PASSED, not absent" in grade(row, more).because
    better = {**right.statuses, "r/t.py::test_stays_broken": "PASSED"}
    assert not grade(row, Parsed(better, right.keys)).resolved


def test_multi_swe_looks_at_tests_that_no_one_named() -> None:
    row = _row("multi_swe")
    good = {"TestOne": "PASSED", "TestMany": "PASSED", "TestNew": "PASSED", "TestOther": "PASSED"}
    assert grade(row, Parsed(good)).resolved
    broken = grade(row, Parsed({**good, "TestOther": "FAILED"}))
    assert broken.because == "'TestOther' passed without the fix, and fails with it"
    assert grade(row, Parsed({})).because == "no test has run"


def test_several_tests_under_one_name_count_as_the_worst_of_them() -> None:
    row = _ruled(Rule.PASS_AND_FAIL, fixed=("t.py::x[a",), kept=())
    mixed = joined(
        [
            Result("t.py::x[a b]", "FAILED", "t.py::x[a"),
            Result("t.py::x[a c]", "PASSED", "t.py::x[a"),
        ]
    )
    verdict = grade(row, mixed)
    assert not verdict.resolved
    assert "the name of 2 tests with different results" in verdict.notes[0]
    unkeyed = Parsed({"t.py::x[a b]": "PASSED", "t.py::x[a c]": "XFAIL"})
    assert grade(row, unkeyed).resolved, "an unclosed bracket is the beginning of names"


@pytest.mark.parametrize("name", ["a  b", "a b ", "a b (3 ms)", "\x1b[32ma b\x1b[0m"])
def test_spaces_colours_and_times_do_not_part_a_name_from_its_test(name: str) -> None:
    row = _ruled(Rule.PASS_AND_FAIL, fixed=(name,), kept=())
    assert grade(row, Parsed({"a b": "PASSED"})).resolved


def test_a_name_that_is_no_tests_is_found_among_the_strays() -> None:
    row = _ruled(Rule.PASS_AND_FAIL, kept=("[100%]",))
    found = grade(row, Parsed({"new": "PASSED"}, strays={"[100%]": "PASSED"}))
    assert found.resolved
    assert "no test's name" in found.notes[0]


def test_a_waived_test_is_not_looked_at() -> None:
    row = _ruled(Rule.PASS_AND_FAIL)
    verdict = grade(row, Parsed({"new": "PASSED", "old": "FAILED"}), waived={"old"})
    assert verdict.resolved
    assert verdict.pass_to_pass == ((), ())


def _marked(tests: str, code: int = 0, *, before: str = "", after: str = "") -> str:
    return (
        f"{before}+ : '>>>>> Start Test Output'\n{tests}\n+ : '>>>>> End Test Output'\n"
        f">>>>> Test Exit Code: {code}\n{after}"
    )


_GOOD = "PASSED tests/test_sums.py::test_one\nPASSED tests/test_sums.py::test_text[a b]\n"
_NEW = "tests/test_sums.py::test_many"


def test_an_end_that_a_test_prints_hides_no_failure() -> None:
    log = _marked(f"{_GOOD}PASSED {_NEW}\n>>>>> End Test Output\nFAILED {_NEW} - no", 1)
    found = compare(_row(), log)
    assert not found.ours.resolved
    assert found.upstream.resolved is False or found.differences


def test_an_exit_code_that_a_test_prints_is_not_the_tests() -> None:
    log = _marked(f">>>>> Test Exit Code: 0\n{_GOOD}PASSED {_NEW}", 1)
    found = compare(_row(), log)
    assert found.ours.invalid == "the tests exited with 1, and the log has no failure"
    assert found.upstream.resolved
    assert any(line.startswith("invalid: ") for line in found.differences)


@pytest.mark.parametrize(
    ("log", "why"),
    [
        ("", "the log has no '>>>>> Start Test Output'"),
        (">>>>> Start Test Output\n", "the log has no '>>>>> End Test Output'"),
        (_marked("", before=">>>>> Reset Failed\n"), "the log says '>>>>> Reset Failed'"),
        (_marked("nothing ran"), "no result of any test is in the log"),
        (_marked(f"{_GOOD}PASSED {_NEW}", 3), "the tests exited with 3"),
    ],
)
def test_a_log_that_means_nothing_is_invalid_and_says_why(log: str, why: str) -> None:
    verdict = grade_log(_row(), log)
    assert why in verdict.invalid
    assert not verdict.resolved
    assert not grade_log_upstream(_row(), log).resolved


def test_a_script_that_marks_nothing_is_its_rows_fault_and_not_the_patchs() -> None:
    marked = _row()
    script = marked.eval_script.replace(">>>>> End Test Output", "done")
    unmarked = marked.model_copy(update={"eval_script": script})
    log = _log("verified", "gold").replace(b">>>>> End Test Output", b"done")
    assert "the log has no '>>>>> End Test Output'" in grade_log(marked, log).invalid
    with pytest.raises(DefinitionError, match=r"acme__tally-12: column eval_script says nowhere"):
        grade_log(unmarked, log)
    assert not grade_log_upstream(unmarked, log).resolved


def test_bad_words_that_a_test_prints_spoil_only_upstreams_verdict() -> None:
    log = _marked(f"{_GOOD}PASSED {_NEW}\nsays >>>>> Tests Timed Out")
    assert grade_log(_row(), log).resolved
    assert grade_log_upstream(_row(), log).invalid


def test_one_byte_that_is_no_utf_8_is_upstreams_error_and_not_ours() -> None:
    log = _marked(f"{_GOOD}PASSED {_NEW}").encode() + b"\xe9"
    assert grade_log(_row(), log).resolved
    with pytest.raises(UpstreamRaises):
        grade_log_upstream(_row(), log)
    assert compare(_row(), log).error


def test_a_silent_suite_must_say_that_it_ran() -> None:
    row = _row("multimodal")
    assert grade_log(row, _marked("Executed 9 of 9 SUCCESS")).resolved
    assert grade_log(row, _marked("Executed 0 of 0 SUCCESS")).invalid


def test_a_row_with_a_parser_of_its_own_is_not_graded_from_its_log() -> None:
    row = load_rows(str(_FIXTURES / "rows" / "swe_bench_live.jsonl"))[1]
    with pytest.raises(DefinitionError, match="run it in a sandbox and grade its results"):
        grade_log(row, "")
    with pytest.raises(DefinitionError, match="SWE-bench does not grade swe_bench_live rows"):
        grade_log_upstream(row, "")


def test_a_test_that_the_data_sets_reader_overlooked_is_not_one_more() -> None:
    row = _row("swe_rebench_v2")
    gold = _log("swe_rebench_v2", "gold").decode()
    assert grade_log(row, gold + "test src/lib.rs - total (line 3) ... ok\n").resolved
    assert not grade_log(row, gold + "test sums::new ... ok\n").resolved
