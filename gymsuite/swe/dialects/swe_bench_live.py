"""SWE-bench-Live, MultiLang and Windows: no named test may be seen failing, all fixes must pass.

A row names pytest as its parser, or brings a program that reads the log. The program is kept as it
is: it may run in a sandbox, never here.
"""

from gymsuite.swe.columns import Columns
from gymsuite.swe.dialects.swe_bench import classic
from gymsuite.swe.rows import Row, Rule, TestPatch

NAME = "swe_bench_live"


def read(columns: Columns) -> Row:
    """Read a row; where it names no image, its authors' for Linux is meant."""
    row = classic(columns, NAME)
    parser = columns.text("log_parser", columns.text("parser", "pytest"))
    is_pytest = parser.strip().lower() == "pytest"
    name = row.instance_id.replace("__", "_1776_").lower()
    return row.model_copy(
        update={
            "rule": Rule.NONE_FAILING,
            "test_patch_when": TestPatch.BEFORE,
            "image": columns.text("docker_image", f"starryzhang/sweb.eval.x86_64.{name}"),
            "rebuild_commands": columns.texts("rebuild_cmds", ()),
            "test_commands": (*columns.texts("test_cmds"), *columns.texts("print_cmds", ())),
            "log_parser": "parse_log_pytest" if is_pytest else "",
            "parser_source": "" if is_pytest else parser,
        }
    )
