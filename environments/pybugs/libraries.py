"""The libraries that bugs are put into. Their sources are pinned in the image's requirements."""

from typing import NamedTuple


class Library(NamedTuple):
    """Where a library keeps its code and its tests, below its checkout.

    `skipped` are test files that need what the image does not have, that take long, or whose
    tests are made at run time, so that they cannot be cut out.
    """

    name: str
    version: str
    package: str
    tests: str
    skipped: tuple[str, ...] = ()


LIBRARIES = {
    library.name: library
    for library in (
        Library("boltons", "26.2.0", "boltons", "tests"),
        Library(
            "humanize", "4.17.0", "src/humanize", "tests", ("test_benchmarks.py", "test_i18n.py")
        ),
        Library("inflect", "7.6.0", "inflect", "tests"),
        Library(
            "mistune", "3.4.0", "src/mistune", "tests", ("test_commonmark.py", "test_syntax.py")
        ),
        Library("python-dateutil", "4.0.0", "src/dateutil", "tests"),
        Library("sqlparse", "0.6.1", "sqlparse", "tests", ("test_cli.py",)),
        Library("tabulate", "0.10.0", "tabulate", "test", ("test_api.py", "test_cli.py")),
        Library("toolz", "1.0.0", "toolz", "toolz/tests"),
    )
}
