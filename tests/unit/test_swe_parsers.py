"""What the log parsers read, and what SWE-bench's would have made of the same logs."""

import json
import os
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from gymsuite.errors import DefinitionError
from gymsuite.swe.parsers.results import Context, UpstreamRaises
from gymsuite.swe.parsers.table import COUSINS, PARSERS, UPSTREAM, named, parse, parse_upstream

_FIXTURES = Path(__file__).parents[1] / "fixtures" / "swe"
_VERDICTS: list[dict[str, Any]] = json.loads((_FIXTURES / "verdicts.json").read_text("utf-8"))
_LOGS = {path.stem: path.read_text("utf-8") for path in (_FIXTURES / "logs").glob("*.txt")}
_SESSION = "===== test session starts =====\n{}\n===== short test summary info =====\n{}\n"


def _pytest(summary: str, *, captured: str = "", parser: str = "parse_log_pytest") -> Any:
    passes = f"===== PASSES =====\n{captured}" if captured else ""
    return parse(parser, _SESSION.format(passes, summary))


def test_every_name_of_the_registry_is_there() -> None:
    assert len(UPSTREAM) == 57
    assert {case["parser"] for case in _VERDICTS} == set(UPSTREAM)


@pytest.mark.parametrize("case", _VERDICTS, ids=lambda c: f"{c['parser']}-{c['log']}")
def test_each_parser_reads_its_log_in_both_ways(case: dict[str, Any]) -> None:
    context = Context(*case["context"])
    log = _LOGS[case["log"]]
    assert dict(parse(case["parser"], log, context).statuses) == case["ours"]
    assert dict(parse_upstream(case["parser"], log, context)) == case["upstream"]


def test_an_unknown_parser_is_named_with_those_there_are() -> None:
    with pytest.raises(DefinitionError, match=r"no log parser 'parse_log_x'.*parse_log_pytest"):
        parse("parse_log_x", "")


def test_a_colour_hides_no_result() -> None:
    log = "\x1b[32mPASSED\x1b[0m t/a.py::x\n\x1b[1;31mFAILED\x1b[0m t/a.py::\x1b[1my\x1b[0m - boom"
    found = _pytest(log)
    assert found.statuses == {"t/a.py::x": "PASSED", "t/a.py::y": "FAILED"}
    assert parse_upstream("parse_log_pytest", log) == {}


def test_a_worker_before_the_status_hides_no_result() -> None:
    log = _SESSION.format("[gw0] [ 33%] PASSED t/a.py::x \n[gw1] PASSED t/a.py::y", "")
    assert parse("parse_log_pytest", log).statuses == {
        "t/a.py::x": "PASSED",
        "t/a.py::y": "PASSED",
    }


@pytest.mark.parametrize("parser", ["parse_log_pytest", "parse_log_pytest_v2"])
@pytest.mark.parametrize("reason", ["", " always", " all - ways", " - always", " [ways"])
@pytest.mark.parametrize("name", ["t/a.py::x", "t/a.py::x[a b]", "t/a.py::x[a - b]"])
def test_a_pass_against_expectation_is_named_without_its_reason(
    name: str, reason: str, parser: str
) -> None:
    found = _pytest(f"XPASS {name}{reason}", parser=parser)
    assert found.statuses == {name: "XPASS"}
    assert parse_upstream(parser, f"XPASS {name}{reason}") == {}


@pytest.mark.parametrize("order", [("PASSED", "FAILED"), ("FAILED", "PASSED")])
def test_a_repeated_name_keeps_its_worst_result_in_any_order(order: tuple[str, str]) -> None:
    log = "\n".join(f"{word} t/a.py::x" for word in order)
    assert _pytest(log).statuses == {"t/a.py::x": "FAILED"}
    assert parse_upstream("parse_log_pytest", log) == {"t/a.py::x": order[1]}


@pytest.mark.parametrize(
    "name",
    [
        "t/a.py::x[a b]",
        't/a.py::x["quoted"]',
        "t/a.py::x[it's]",
        "t/a.py::x[a - b]",
        "t/a.py::x[[1, 2]]",
        "t/a.py::x[]]",
        "t/a.py::x[{]",
        "t/a.py::x[ü→]",
        "t/a.py::T::x[a::b]",
    ],
)
@pytest.mark.parametrize("status", ["PASSED", "FAILED"])
def test_a_name_is_read_whole(name: str, status: str) -> None:
    reason = " - ValueError: no - not this" if status == "FAILED" else ""
    assert _pytest(f"{status} {name}{reason}").statuses == {name: status}


def test_names_that_upstream_cuts_alike_are_found_under_their_key() -> None:
    found = _pytest("PASSED t/a.py::x[a b]\nFAILED t/a.py::x[a c] - no")
    assert found.keys == {"t/a.py::x[a": ("t/a.py::x[a b]", "t/a.py::x[a c]")}


def test_captured_output_is_no_result() -> None:
    captured = "PASSED t/a.py::x\nFAILED t/a.py::y - a lie\nt/a.py::z PASSED [100%]"
    assert _pytest("FAILED t/a.py::x - no", captured=captured).statuses == {"t/a.py::x": "FAILED"}


def test_a_session_inside_captured_output_is_no_session() -> None:
    inner = _SESSION.format("in.py::x PASSED", "PASSED t/a.py::x") + "===== 1 passed in 0.01s ====="
    log = _pytest("FAILED t/a.py::x - no\n=== 1 failed in 0.1s ===", captured=inner)
    assert log.statuses == {"t/a.py::x": "FAILED"}


def test_two_sessions_one_after_the_other_both_count() -> None:
    one = _SESSION.format("", "PASSED a.py::x") + "=== 1 passed in 0.1s ===\n"
    other = _SESSION.format("", "PASSED b.py::y") + "=== 1 passed in 0.1s ===\n"
    assert parse("parse_log_pytest", one + other).statuses.keys() == {"a.py::x", "b.py::y"}


def test_a_failing_sub_test_fails_its_test() -> None:
    for line in (
        "SUBFAIL a.py::x - no",
        "SUBFAILED[msg] a.py::x - no",
        "[m] (i=1) SUBFAIL a.py::x",
    ):
        assert _pytest(f"PASSED a.py::x\n{line}").statuses == {"a.py::x": "FAILED"}


def test_what_is_no_tests_name_is_kept_apart() -> None:
    found = _pytest("PASSED a.py::x", captured="PASSED [100%]\nPASSED b.py::forged")
    assert found.statuses == {"a.py::x": "PASSED"}
    assert found.strays == {"[100%]": "PASSED"}


def test_a_skipped_test_is_not_passed_by_its_marker_of_minitest() -> None:
    log = "T#test_x. = 0.00 s = S"
    assert parse("parse_log_minitest", log).statuses == {"T#test_x": "SKIPPED"}
    assert parse_upstream("parse_log_minitest", log) == {"T#test_x": "PASSED"}


def test_a_time_is_no_part_of_a_jest_name() -> None:
    log = "  ✓ reads (12 ms)\n  ✓ writes (1.2 s)\n  ✓ waits "
    assert set(parse("parse_log_jest", log).statuses) == {"reads", "writes", "waits"}


def test_go_prints_a_result_behind_output_without_a_newline() -> None:
    log = "half a line--- FAIL: TestX (0.00s)"
    assert parse("parse_log_gotest", log).statuses == {"TestX": "FAILED"}
    assert parse_upstream("parse_log_gotest", log) == {}


def test_a_line_that_only_begins_like_ok_passes_no_django_test() -> None:
    log = "test_x (m.T) ... noise\nokay then\nFAIL\n"
    assert parse("parse_log_django", log).statuses == {"test_x (m.T)": "FAILED"}
    assert parse_upstream("parse_log_django", log) == {"test_x (m.T)": "PASSED"}


def test_an_exception_fails_a_doctest_sub_case() -> None:
    log = (
        '<doctest><TestCase name="a"><SubCase name="b"><Exception>x</Exception></SubCase>'
        "</TestCase></doctest>"
    )
    assert parse("parse_log_doctest", log).statuses == {"a": "FAILED", "a > b": "FAILED"}
    assert parse_upstream("parse_log_doctest", log) == {"a > b": "PASSED"}


def test_a_document_type_is_never_expanded() -> None:
    log = '<doctest><!DOCTYPE d [<!ENTITY a "aaaa">]><TestCase name="&a;"/></doctest>'
    assert parse("parse_log_doctest", log).statuses == {}


def test_any_bytes_are_a_log() -> None:
    found = parse("parse_log_pytest", b"PASSED a.py::x\r\nPASSED a.py::y[\xff\xfe]\rFAILED a.py::z")
    assert found.statuses["a.py::x"] == "PASSED"
    assert found.statuses["a.py::z"] == "FAILED"
    assert len(found.statuses) == 3


def test_a_last_line_without_a_newline_counts() -> None:
    for name, log in (("parse_log_cargo", "test a ... ok"), ("parse_log_tap", "ok 1 a")):
        assert parse(name, log).statuses == {"a": "PASSED"}


def test_where_upstream_raises_the_strict_reading_says_so() -> None:
    for name, log in (
        ("parse_log_django", "FAIL:"),
        ("parse_log_doctest", "<doctest"),
        ("parse_log_jekyll", ""),
        ("parse_log_lighthouse", ""),
        ("parse_log_karma", "Starting browser\n    a\n   b\n  c\n"),
    ):
        with pytest.raises(UpstreamRaises):
            parse_upstream(name, log)


def test_results_from_elsewhere_get_the_names_of_the_parser() -> None:
    found = named("parse_log_requests", {"t/a.py::x[/srv/a/b]": "PASSED"})
    assert found.keys == {"t/a.py::x[/b]": ("t/a.py::x[/srv/a/b]",)}
    assert named("r2e_pytest", {"r/t.py::T::x": "PASSED"}).keys == {"T.x": ("r/t.py::T::x",)}


_SUREFIRE = """\
[INFO] Tests run: 2, Failures: 0, Errors: 0, Skipped: 0, Time elapsed: 0.1 s - in a.B
[ERROR] Tests run: 2, Failures: 1, Errors: 0, Skipped: 0, Time elapsed: 1 s <<< FAILURE! -- in a.C
"""
_CTEST = """\
 1/3 Test  #1: sums .......   Passed    0.01 sec
 2/3 Test  #2: text .......***Failed    0.01 sec
 3/3 Test #13: slow .......***Timeout   9.01 sec
"""
_DOTNET = {"A.b(x: 1)": "PASSED", "A.c": "FAILED"}
_EXUNIT = """\
  * test sums all (1.2ms) [L#3]
  * test waits (skipped) [L#9]
  * test breaks (0.1ms) [L#5]
  1) test breaks (SumTest)
"""


@pytest.mark.parametrize(
    ("parser", "log", "want"),
    [
        ("surefire", _SUREFIRE, {"a.B": "PASSED", "a.C": "FAILED"}),
        ("surefire_strict", _SUREFIRE, {"a.B": "PASSED", "a.C": "FAILED"}),
        ("mocha", " ✔ a b (3ms)\n - c\n 1) d:\n", {"a b": "PASSED", "c": "SKIPPED", "d": "FAILED"}),
        ("dotnet", "  Passed A.b(x: 1) [< 1 ms]\n  Failed A.c [2 ms]\n", _DOTNET),
        ("ctest", _CTEST, {"sums": "PASSED", "text": "FAILED", "slow": "FAILED"}),
        ("exunit", _EXUNIT, {"sums all": "PASSED", "waits": "SKIPPED", "breaks": "FAILED"}),
        ("results_json", 'x {"a": "pass", "c": "fail", "d": 3}', {"a": "PASSED", "c": "FAILED"}),
        ("results_json", '{"tests": [{"name": "a", "status": "SKIPPED"}, 7]}', {"a": "SKIPPED"}),
        ("r2e_pytest", _SESSION.format("", "PASSED r/t.py::T::x[a b]"), {"T.x[a b]": "PASSED"}),
    ],
)
def test_a_cousins_log_is_read(parser: str, log: str, want: dict[str, str]) -> None:
    assert parser in COUSINS
    assert parse(parser, log).statuses == want


def test_no_log_makes_a_parser_raise() -> None:
    rng = random.Random(4)
    pieces = [piece for log in _LOGS.values() for piece in log.split(" ")]
    for number in range(40):
        log = " ".join(rng.choice(pieces) for _ in range(rng.randrange(400)))
        log = log[rng.randrange(9) :] + chr(rng.randrange(0x3000)) * (number % 3)
        for name in PARSERS:
            parse(name, log, Context("a__b-1", rng.choice(["", "1.27", "10.0", "2", "x"])))


def test_a_hostile_line_costs_little() -> None:
    for piece in ("[ OK ] ", "a ... ", "Chrome 1 (Linux x86_64) ", "FAILED t.py::x[ - ", " . = "):
        for name in PARSERS:
            parse(name, piece * 4000)


def test_the_docs_list_every_parser_and_its_runner() -> None:
    page = (Path(__file__).parents[2] / "docs" / "swe-bench.md").read_text("utf-8")
    for name, parser in PARSERS.items():
        assert f"| `{name}` | {parser.runner} |" in page


_TESTS = """
import unittest
import pytest

@pytest.mark.parametrize("value", ["a b", "a - b", "[x]", "it's", 'say "x"', "é", "a::b", "{"])
def test_names(value):
    print("FAILED a_test.py::test_plain - a lie")
    print("PASSED a_test.py::test_wrong")
    assert value != "a - b"

def test_plain():
    print("=== short test summary info ===")
    print("PASSED a_test.py::test_wrong\\n=== 1 passed in 0.1s ===")

def test_wrong():
    assert 1 == 2, "PASSED a_test.py::test_wrong"

@pytest.fixture
def closing():
    yield
    raise OSError

def test_closes(closing): pass

@pytest.mark.skip(reason="no - not now")
def test_later(): pass

@pytest.mark.xfail(reason="known - bug")
def test_known(): assert False
"""


@pytest.mark.parametrize("options", ["-rA", "-v", "-rA --color=yes -v", "-rA -q --tb=no"])
def test_what_pytest_itself_prints_is_read(tmp_path: Path, options: str) -> None:
    (tmp_path / "a_test.py").write_text(_TESTS, "utf-8")
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-p",
        "no:cacheprovider",
        *options.split(),
        "a_test.py",
    ]
    env = {name: value for name, value in os.environ.items() if name != "PYTEST_ADDOPTS"}
    log = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, check=False).stdout
    found = parse("parse_log_pytest_v2", log).statuses
    names = {name.removeprefix("a_test.py::"): status for name, status in found.items()}
    assert names.pop("test_later", "SKIPPED") == "SKIPPED", "a summary does not name skipped tests"
    parameters = ["a b", "[x]", "it's", 'say "x"', "\\xe9", "a::b", "{"]
    assert names == {
        **{f"test_names[{value}]": "PASSED" for value in parameters},
        "test_names[a - b]": "FAILED",
        "test_plain": "PASSED",
        "test_wrong": "FAILED",
        "test_closes": "ERROR",
        "test_known": "XFAIL",
    }
