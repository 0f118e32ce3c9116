"""SWE-bench Pro: every named test must pass; the runner and its parser come beside the rows.

A row's `run_script.sh` and `parser.py` lie in `run_scripts/ID/` of Pro's repository. Neither runs
here: `parser.py` reads two logs in the sandbox and prints JSON, which is what is graded.
"""

import shlex

from gymsuite.swe.columns import Columns
from gymsuite.swe.rows import Ladder, Row, Rule, TestPatch

NAME = "swe_bench_pro"
_READ = frozenset(
    (
        *("instance_id", "repo", "base_commit", "patch", "test_patch", "problem_statement"),
        *("requirements", "interface", "repo_language", "fail_to_pass", "pass_to_pass"),
        *("before_repo_set_cmd", "selected_test_files_to_run", "dockerhub_tag"),
    )
)
_HOME = "/workspace"
_OUT, _ERROR = f"{_HOME}/stdout.log", f"{_HOME}/stderr.log"


def read(columns: Columns) -> Row:
    """Read a row; requirements and interface are part of what the agent is told."""
    told = [columns.text("problem_statement")]
    for title, name in (("Requirements", "requirements"), ("Interface", "interface")):
        if text := columns.text(name, "").strip():
            told.append(f"{title}:\n{text}")
    files = columns.texts("selected_test_files_to_run")
    last = columns.text("before_repo_set_cmd", "").strip().split("\n")[-1]
    tag = columns.text("dockerhub_tag", "")
    return Row(
        instance_id=columns.text("instance_id"),
        repo=columns.text("repo"),
        dialect=NAME,
        base_commit=columns.text("base_commit"),
        problem_statement="\n\n".join(told),
        language=columns.text("repo_language", ""),
        patch=columns.text("patch"),
        test_patch=columns.text("test_patch", ""),
        fail_to_pass=columns.texts("fail_to_pass"),
        pass_to_pass=columns.texts("pass_to_pass"),
        rule=Rule.ALL_PASSED,
        ladder=Ladder.ONCE_TEXT,
        test_patch_when=TestPatch.IN_IMAGE,
        image=f"jefzda/sweap-images:{tag}" if tag else "",
        workdir="/app",
        rebuild_commands=(last,) if last else (),
        test_commands=(
            f"bash {_HOME}/run_script.sh {shlex.quote(','.join(files))} > {_OUT} 2> {_ERROR}",
            f"python {_HOME}/parser.py {_OUT} {_ERROR} {_HOME}/output.json",
            f"cat {_HOME}/output.json",
        ),
        log_parser="results_json",
        test_files=files,
        extra=columns.rest(_READ),
    )
