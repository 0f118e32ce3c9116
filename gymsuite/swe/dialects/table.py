"""Every data set's reader by its name, and how a row's own columns tell which it is."""

from collections.abc import Callable, Mapping
from typing import NamedTuple

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


class Dialect(NamedTuple):
    """A data set's reader."""

    is_of: Callable[[Columns], bool]
    read: Callable[[Columns], Row]


# The order matters: the first whose columns are there reads the row.
DIALECTS: Mapping[str, Dialect] = {
    module.NAME: Dialect(module.is_of, module.read)
    for module in (
        r2e_gym,
        multi_swe,
        swe_bench_pro,
        swe_rebench_v2,
        swe_rebench,
        swe_bench_live,
        swe_smith,
    )
} | {
    swe_gym.NAME: Dialect(swe_gym.is_of, swe_gym.read),
    swe_bench.NAME: Dialect(swe_bench.is_of, swe_bench.read),
}


def read_row(columns: Columns, dialect: str = "") -> Row:
    """Read one row, by the named reader or by the first one that knows its columns."""
    if dialect and dialect not in DIALECTS:
        raise DefinitionError(f"no dialect {dialect!r}; there are: {', '.join(DIALECTS)}")
    names = [dialect] if dialect else [n for n, d in DIALECTS.items() if d.is_of(columns)]
    if not names:
        raise DefinitionError(
            f"{columns.where}: no reader knows the columns {', '.join(columns.values)}; "
            f"there are readers for {', '.join(DIALECTS)}"
        )
    try:
        row = DIALECTS[names[0]].read(columns)
    except ValidationError as error:
        problem = error.errors()[0]
        column = ".".join(map(str, problem["loc"]))
        raise DefinitionError(f"{columns.where}: column {column}: {problem['msg']}") from error
    if not row.named_tests and not row.expected:
        raise DefinitionError(
            f"{columns.where}: {row.instance_id} names no test in FAIL_TO_PASS or PASS_TO_PASS: "
            "any patch would resolve it"
        )
    return row
