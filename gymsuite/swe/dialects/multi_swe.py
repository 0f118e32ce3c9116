"""Multi-SWE-bench: pull requests in seven languages, judged against recorded runs.

Its harness has a program for each repository that reads the log. Here the common runners of a row's
language are read; a repository whose tests are named otherwise cannot be graded from its log.
"""

from collections.abc import Iterator, Mapping

from pydantic import JsonValue

from gymsuite.swe.columns import Columns
from gymsuite.swe.rows import Ladder, Row, Rule, TestPatch

NAME = "multi_swe"
_READ = frozenset(
    (
        *("org", "repo", "number", "title", "body", "base", "resolved_issues", "fix_patch"),
        *("test_patch", "lang", "p2p_tests", "f2p_tests", "s2p_tests", "n2p_tests"),
        *("fixed_tests", "run_result", "test_patch_result", "fix_patch_result"),
    )
)
_PARSERS: Mapping[str, str] = {
    "go": "parse_log_gotest",
    "golang": "parse_log_gotest",
    "rust": "parse_log_cargo",
    "java": "surefire",
    "c": "ctest",
    "cpp": "ctest",
    "c++": "ctest",
    "python": "parse_log_pytest_v2",
    "js": "parse_log_jest",
    "javascript": "parse_log_jest",
    "ts": "parse_log_jest",
    "typescript": "parse_log_jest",
}
_RESULTS = {
    "passed_tests": "PASSED",
    "failed_tests": "FAILED",
    "skipped_tests": "SKIPPED",
}


def read(columns: Columns) -> Row:
    """Read a row; a test that was skipped or absent before counts among those to be fixed."""
    org, repo, number = columns.text("org"), columns.text("repo"), columns.text("number")
    base = columns.inner("base")
    issues = "\n\n".join(_issues(columns))
    return Row(
        instance_id=f"{org}/{repo}:pr-{number}",
        repo=f"{org}/{repo}",
        dialect=NAME,
        base_commit=base.text("sha"),
        problem_statement=issues or f"{columns.text('title', '')}\n\n{columns.text('body', '')}",
        language=columns.text("lang", ""),
        patch=columns.text("fix_patch"),
        test_patch=columns.text("test_patch"),
        fail_to_pass=tuple(
            name for kind in ("f2p", "s2p", "n2p") for name in columns.mapping(f"{kind}_tests")
        ),
        pass_to_pass=tuple(columns.mapping("p2p_tests")),
        recorded={
            "run": _statuses(columns.inner("run_result")),
            "test": _statuses(columns.inner("test_patch_result")),
        },
        rule=Rule.NO_REGRESSION,
        ladder=Ladder.ONCE,
        test_patch_when=TestPatch.IN_SCRIPT,
        image=f"mswebench/{org}_m_{repo}:pr-{number}".lower(),
        workdir=f"/home/{repo}",
        test_commands=("bash /home/test-run.sh",),
        log_parser=_PARSERS.get(columns.text("lang", "").lower(), ""),
        extra=columns.rest(_READ),
    )


def _statuses(result: Columns) -> dict[str, str]:
    return {
        name: status for column, status in _RESULTS.items() for name in result.texts(column, ())
    }


def _issues(columns: Columns) -> Iterator[str]:
    issues: JsonValue = columns.values.get("resolved_issues") or []
    if not isinstance(issues, list):
        raise columns.wrong("resolved_issues", "is no list", "a list of issues")
    for number, issue in enumerate(issues, 1):
        if not isinstance(issue, dict):
            raise columns.wrong("resolved_issues", f"[{number}] is no object", "an issue")
        one = Columns(columns.where, issue, f"resolved_issues[{number}].")
        yield f"{one.text('title', '')}\n{one.text('body', '')}".strip()
