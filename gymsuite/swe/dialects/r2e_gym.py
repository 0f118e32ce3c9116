"""R2E-Gym: commits with tests of their own, graded by the whole map of results.

A row has the contents of files before and after the commit, and no patch; the gold patch is made of
them. The tests are files that R2E-Gym puts into `r2e_tests/`.
"""

import difflib
from collections.abc import Iterator, Mapping

from pydantic import JsonValue

from gymsuite.swe.columns import Columns
from gymsuite.swe.parsers.text import plain
from gymsuite.swe.rows import Row, Rule, TestPatch

NAME = "r2e_gym"
_READ = frozenset(
    (
        *("repo_name", "docker_image", "commit_hash", "problem_statement", "prompt"),
        *("parsed_commit_content", "execution_result_content", "expected_output_json"),
    )
)
_COMMAND = "PYTHONWARNINGS=ignore .venv/bin/python -W ignore -m pytest -rA r2e_tests"
_GONE = frozenset({"", "/dev/null"})


def read(columns: Columns) -> Row:
    """Read a row; its id is made of the repository and the commit."""
    repo, commit = columns.text("repo_name"), columns.text("commit_hash")
    change = columns.inner("parsed_commit_content")
    run = columns.inner("execution_result_content")
    expected = {
        plain(name): str(status) for name, status in columns.mapping("expected_output_json").items()
    }
    if not expected:
        raise columns.wrong("expected_output_json", "is empty", "results by test, as JSON")
    tests = {f"r2e_tests/{name}": code for name, code in _tests(run)}
    return Row(
        instance_id=f"{repo}-{commit}",
        repo=repo,
        dialect=NAME,
        base_commit=change.text("old_commit_hash", f"{commit}^"),
        problem_statement=columns.text("problem_statement", ""),
        created_at=change.text("commit_date", ""),
        patch="".join(_diffs(change)),
        test_patch="".join(_diff(path, "", code) for path, code in tests.items()),
        pass_to_pass=tuple(name for name, status in expected.items() if status == "PASSED"),
        expected=expected,
        rule=Rule.SAME_MAP,
        image=columns.text("docker_image"),
        test_patch_when=TestPatch.AFTER,
        test_commands=(_COMMAND,),
        log_parser="r2e_pytest",
        test_files=tuple(tests),
        extra=columns.rest(_READ),
    )


def _tests(run: Columns) -> Iterator[tuple[str, str]]:
    names, codes = run.texts("test_file_names", ()), run.texts("test_file_codes", ())
    if len(names) != len(codes):
        raise run.wrong("test_file_codes", f"has {len(codes)} items", f"{len(names)}, one a name")
    return zip(names, codes, strict=True)


def _diffs(change: Columns) -> Iterator[str]:
    files = change.values.get("file_diffs", [])
    if not isinstance(files, list):
        raise change.wrong("file_diffs", "is no list", "a list of objects")
    for number, each in enumerate(files, 1):
        if not isinstance(each, dict):
            raise change.wrong(f"file_diffs[{number}]", "is no object", "an object")
        path = _path(change, each)
        if not _is_test(path) and not each.get("is_binary_file"):
            file = Columns(change.where, each, f"{change.within}file_diffs[{number}].")
            yield _diff(path, file.text("old_file_content", ""), file.text("new_file_content", ""))


def _path(change: Columns, file: Mapping[str, JsonValue]) -> str:
    header = file.get("header")
    inner = header.get("file") if isinstance(header, dict) else None
    path = inner.get("path") if isinstance(inner, dict) else None
    if not isinstance(path, str) or path in _GONE:
        raise change.wrong("file_diffs.header.file.path", f"is {path!r}", "a file's path")
    return path


def _is_test(path: str) -> bool:
    parts = path.split("/")
    return parts[-1].startswith("test_") or any(part in {"test", "tests"} for part in parts[:-1])


def _diff(path: str, old: str, new: str) -> str:
    if old == new:
        return ""
    names = (f"a/{path}" if old else "/dev/null", f"b/{path}" if new else "/dev/null")
    kind = "" if old and new else "new file mode 100644\n" if new else "deleted file mode 100644\n"
    body = difflib.unified_diff(
        old.splitlines(keepends=True), new.splitlines(keepends=True), *names
    )
    lines = (
        f"{line}\n\\ No newline at end of file\n" if line[-1:] != "\n" else line for line in body
    )
    return f"diff --git a/{path} b/{path}\n{kind}{''.join(lines)}"
