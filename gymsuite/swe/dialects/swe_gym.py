"""SWE-Gym: SWE-bench's columns with lists as lists, graded as SWE-bench grades."""

from gymsuite.swe.columns import Columns
from gymsuite.swe.commands import command_for, files_of, runner_of
from gymsuite.swe.dialects.swe_bench import classic
from gymsuite.swe.rows import Row, TestPatch

NAME = "swe_gym"


def read(columns: Columns) -> Row:
    """Read a row; its image is the one that SWE-Gym's authors have published."""
    row = classic(columns, NAME)
    files = files_of(row.test_patch)
    name = row.instance_id.replace("__", "_s_").lower()
    return row.model_copy(
        update={
            "image": f"xingyaoww/sweb.eval.x86_64.{name}:latest",
            "log_parser": runner_of(row.repo).log_parser,
            "test_commands": (command_for(row.repo, files),),
            "test_files": files,
            "test_patch_when": TestPatch.AFTER,
        }
    )
