"""SWE-rebench V2: twenty languages; the tests that pass must be the named ones, and no other.

The repository lies in `/NAME` of its image. A row whose parser is not among ours can be run, but
not graded from its log.
"""

from gymsuite.swe.columns import Columns
from gymsuite.swe.dialects.swe_rebench import commands
from gymsuite.swe.parsers.table import UPSTREAM
from gymsuite.swe.rows import Ladder, Row, Rule, TestPatch

NAME = "swe_rebench_v2"
_READ = frozenset(
    (
        *("instance_id", "repo", "base_commit", "patch", "test_patch", "problem_statement"),
        *("created_at", "language", "FAIL_TO_PASS", "PASS_TO_PASS", "image_name"),
    )
)
_OURS = {
    "parse_log_elixir": "exunit",
    "parse_java_mvn": "surefire_strict",
    "parse_log_java_mvn": "surefire_strict",
    "parse_log_js": "mocha",
    "parse_log_js_2": "mocha",
    "parse_log_csharp": "dotnet",
}
PARSERS = {**{name: name for name in UPSTREAM}, **_OURS}
"""Which of V2's parsers have one of ours."""


def read(columns: Columns) -> Row:
    """Read a row."""
    recipe = columns.inner("install_config")
    repo = columns.text("repo")
    parser = recipe.text("log_parser")
    known = PARSERS.get(parser, "")
    unknown = {} if known else {"log_parser": parser}
    return Row(
        instance_id=columns.text("instance_id"),
        repo=repo,
        dialect=NAME,
        base_commit=columns.text("base_commit"),
        problem_statement=columns.text("problem_statement"),
        created_at=columns.text("created_at", ""),
        language=columns.text("language"),
        patch=columns.text("patch"),
        test_patch=columns.text("test_patch"),
        fail_to_pass=columns.texts("FAIL_TO_PASS"),
        pass_to_pass=columns.texts("PASS_TO_PASS"),
        rule=Rule.SAME_PASSED,
        ladder=Ladder.THREE_WAY,
        test_patch_when=TestPatch.AFTER,
        image=columns.text("image_name", ""),
        workdir=f"/{repo.rpartition('/')[2]}",
        test_commands=commands(recipe, "test_cmd"),
        log_parser=known,
        extra={**columns.rest(_READ), **unknown},
    )
