"""Every data set's reader by its name, and which columns tell that a row is of it."""

from collections.abc import Callable, Mapping, Sequence

from pydantic import ValidationError

from gymsuite.errors import DefinitionError
from gymsuite.swe.columns import Columns
from gymsuite.swe.dialects import (
    multi_swe,
    r2e_gym,
    swe_bench,
    swe_bench_live,
    swe_bench_pro,
    swe_gym,
    swe_rebench,
    swe_rebench_v2,
    swe_smith,
)
from gymsuite.swe.rows import Row

DIALECTS: Mapping[str, Callable[[Columns], Row]] = {
    module.NAME: module.read
    for module in (
        *(swe_bench, swe_gym, swe_smith, r2e_gym, swe_rebench, swe_rebench_v2),
        *(swe_bench_live, swe_bench_pro, multi_swe),
    )
}

# The first whose columns are there reads the row, and says which of the others are missing.
_SIGNS: Sequence[tuple[str, Sequence[str]]] = (
    (r2e_gym.NAME, ("expected_output_json",)),
    (multi_swe.NAME, ("fix_patch",)),
    (swe_bench_pro.NAME, ("selected_test_files_to_run",)),
    (swe_rebench_v2.NAME, ("install_config", "language")),
    (swe_rebench.NAME, ("install_config",)),
    (swe_bench_live.NAME, ("test_cmds",)),
    (swe_smith.NAME, ("image_name",)),
    (swe_bench.NAME, ("eval_script",)),
    (swe_bench.NAME, ("environment_setup_commit",)),
    (swe_gym.NAME, ("FAIL_TO_PASS",)),
    (swe_bench.NAME, ("instance_id",)),
)


def read_row(columns: Columns, dialect: str = "") -> Row:
    """Read one row, by the named reader or by the one that its columns tell."""
    if dialect and dialect not in DIALECTS:
        raise DefinitionError(f"no dialect {dialect!r}; there are: {', '.join(DIALECTS)}")
    name = dialect or next((name for name, signs in _SIGNS if columns.has(*signs)), "")
    if not name:
        told = "; ".join(f"{name} by {' and '.join(signs)}" for name, signs in _SIGNS)
        raise DefinitionError(
            f"{columns.where}: no reader knows the columns {', '.join(columns.values)}; "
            f"a row is told by its columns: {told}"
        )
    called = columns.values.get("instance_id")
    shown = f" ({called[:80]})" if isinstance(called, str) and called else ""
    known = columns._replace(where=f"{columns.where}{shown}, a {name} row")
    try:
        row = DIALECTS[name](known)
    except ValidationError as error:  # of all that a row holds, only its id can be wrong here
        raise known.wrong(
            "instance_id",
            f"is {error.errors()[0]['input']!r}",
            "one word that begins with no dot or slash: a folder is named for it",
        ) from error
    if not row.named_tests and not row.expected:
        raise DefinitionError(
            f"{known.where}: it names no test in FAIL_TO_PASS or PASS_TO_PASS: "
            "any patch would resolve it"
        )
    return row
