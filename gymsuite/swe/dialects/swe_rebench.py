"""SWE-rebench (v1): SWE-bench's columns and a recipe for the environment, graded as SWE-bench."""

import shlex

from gymsuite.swe.columns import Columns
from gymsuite.swe.commands import files_of
from gymsuite.swe.dialects.swe_bench import classic
from gymsuite.swe.parsers.table import UPSTREAM
from gymsuite.swe.rows import Row, TestPatch

NAME = "swe_rebench"


def read(columns: Columns) -> Row:
    """Read a row; its recipe names the command, and the parser by SWE-bench's names."""
    row = classic(columns, NAME)
    recipe = columns.inner("install_config")
    parser = recipe.text("log_parser", "parse_log_pytest")
    if parser not in UPSTREAM:
        raise recipe.wrong("log_parser", f"is {parser!r}", "a name of SWE-bench's registry")
    files = files_of(row.test_patch)
    command = recipe.text("test_cmd", "pytest -rA")
    return row.model_copy(
        update={
            "image": columns.text("docker_image", ""),
            "log_parser": parser,
            "test_commands": (f"{command} {shlex.join(files)}".rstrip(),),
            "test_files": files,
            "test_patch_when": TestPatch.AFTER,
        }
    )


def commands(recipe: Columns, name: str) -> tuple[str, ...]:
    """A column that has one command, or a list of them."""
    value = recipe.values.get(name)
    if isinstance(value, str) and not value.lstrip().startswith("["):
        return (value,) if value.strip() else ()
    return recipe.texts(name, ())
