"""SWE-bench: the classic twelve columns, and v5 rows with a script, a parser and an image.

Verified, Lite and the full set are v5 rows today. Multilingual has its lists as lists and no commit
for the environment; Multimodal has binary files beside its patches, in `image_assets`.
"""

from gymsuite.swe.columns import Columns
from gymsuite.swe.commands import command_for, files_of, runner_of
from gymsuite.swe.parsers.table import UPSTREAM
from gymsuite.swe.rows import Row, Rule, TestPatch

NAME = "swe_bench"
_READ = frozenset(
    (
        *("repo", "instance_id", "base_commit", "patch", "test_patch", "problem_statement"),
        *("hints_text", "created_at", "version", "FAIL_TO_PASS", "PASS_TO_PASS"),
        *("environment_setup_commit", "eval_script", "log_parser", "eval_type", "image"),
    )
)
_RULES = {str(rule): rule for rule in (Rule.PASS_AND_FAIL, Rule.FAIL_ONLY)}


def read(columns: Columns) -> Row:
    """Read a v5 row, or a classic one if it has no script."""
    if columns.has("eval_script"):
        return _v5(columns)
    files = files_of(columns.text("test_patch"))
    repo = columns.text("repo")
    return classic(columns, NAME).model_copy(
        update={
            "test_commands": (command_for(repo, files),),
            "log_parser": runner_of(repo).log_parser,
            "test_files": files,
            "test_patch_when": TestPatch.AFTER,
        }
    )


def classic(columns: Columns, dialect: str) -> Row:
    """The columns that all descendants of the classic row share."""
    return Row(
        instance_id=columns.text("instance_id"),
        repo=columns.text("repo", right="owner/name"),
        dialect=dialect,
        base_commit=columns.text("base_commit", right="the id of a commit"),
        problem_statement=columns.text("problem_statement"),
        hints=columns.text("hints_text", ""),
        version=columns.text("version", ""),
        environment_setup_commit=columns.text("environment_setup_commit", ""),
        created_at=columns.text("created_at", ""),
        patch=columns.text("patch", right="the gold patch"),
        test_patch=columns.text("test_patch", right="the patch that brings the tests"),
        fail_to_pass=columns.texts("FAIL_TO_PASS"),
        pass_to_pass=columns.texts("PASS_TO_PASS"),
        extra=columns.rest(_READ),
    )


def _v5(columns: Columns) -> Row:
    rule = columns.text("eval_type", Rule.PASS_AND_FAIL)
    if rule not in _RULES:
        raise columns.wrong("eval_type", f"is {rule!r}", " or ".join(_RULES))
    parser = columns.text("log_parser")
    if parser not in UPSTREAM:
        raise columns.wrong("log_parser", f"is {parser!r}", f"one of {', '.join(UPSTREAM)}")
    return classic(columns, NAME).model_copy(
        update={
            "rule": _RULES[rule],
            "log_parser": parser,
            "eval_script": columns.text("eval_script"),
            "image": columns.text("image", ""),
        }
    )
