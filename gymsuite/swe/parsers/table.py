"""Every log parser by its name: SWE-bench's 57, and those that its cousins' rows need.

Of each there are two readings. Ours is robust: colours, repeated reports (the worst counts), names
with spaces, results behind a tester's own output. SWE-bench's is exactly what version 5.0.2 of its
harness makes of the same log.
"""

from collections.abc import Mapping
from typing import NamedTuple

from gymsuite.errors import DefinitionError
from gymsuite.swe.parsers import (
    builds,
    by_row,
    cousins,
    doctest_xml,
    failures,
    googletest,
    json_reports,
    karma,
    lines,
    p5,
    phpunit,
    pytest,
    quarto,
    ruby,
    suites,
    sympy,
    trees,
    unittest,
    unittest_upstream,
)
from gymsuite.swe.parsers.results import (
    Context,
    Parsed,
    Reader,
    Result,
    joined,
    last_wins,
)
from gymsuite.swe.parsers.text import plain, text_of, without_long_lines


class Parser(NamedTuple):
    """The two readings of one log format. `runner` says in words whose output it is.

    The log of one that is a document may hold it all in one line.
    """

    runner: str
    read: Reader
    upstream: Reader
    dialect: pytest.Dialect | None = None
    is_document: bool = False


def _pytest(runner: str, dialect: pytest.Dialect) -> Parser:
    return Parser(runner, pytest.read_pytest, dialect.upstream, dialect)


def _lines(runner: str, form: lines.Format) -> Parser:
    return Parser(runner, form.read, form.read_upstream)


def _same(runner: str, read: Reader) -> Parser:
    """Ours is the same reading, of the log without its colours."""
    return Parser(runner, lambda log, context: read(plain(log), context), read)


def _one(runner: str, read: Reader) -> Parser:
    """Not SWE-bench's: there is one reading."""
    return Parser(runner, read, read)


_PYTEST = _pytest("pytest", pytest.FIRST_WORD)
_PYTEST_OPTIONS = _pytest("pytest, paths in names cut to their last part", pytest.OPTIONS)
_PYTEST_V2 = _pytest("pytest, names with spaces", pytest.SPACED)
_FILES = Parser("jest, by file", suites.read_files, suites.read_files_upstream)
_CARGO = _lines("cargo test", lines.CARGO)
_GO = _lines("go test -v", lines.GOTEST)

UPSTREAM: Mapping[str, Parser] = {
    "parse_log_pytest": _PYTEST,
    "parse_log_pytest_options": _PYTEST_OPTIONS,
    "parse_log_django": Parser(
        "Django's runner (unittest)",
        unittest.read_unittest,
        unittest_upstream.read_django_upstream,
    ),
    "parse_log_pytest_v2": _PYTEST_V2,
    "parse_log_seaborn": _pytest("pytest", pytest.SEABORN),
    "parse_log_sympy": Parser("sympy's runner", sympy.read_sympy, sympy.read_sympy_upstream),
    "parse_log_matplotlib": _pytest("pytest, mouse buttons by number", pytest.BUTTONS),
    "parse_log_astroid": _PYTEST,
    "parse_log_flask": _PYTEST,
    "parse_log_marshmallow": _PYTEST,
    "parse_log_pvlib": _PYTEST,
    "parse_log_pyvista": _PYTEST,
    "parse_log_sqlfluff": _PYTEST,
    "parse_log_xarray": _PYTEST,
    "parse_log_pydicom": _PYTEST_OPTIONS,
    "parse_log_requests": _PYTEST_OPTIONS,
    "parse_log_pylint": _PYTEST_OPTIONS,
    "parse_log_astropy": _PYTEST_V2,
    "parse_log_scikit": _PYTEST_V2,
    "parse_log_sphinx": _PYTEST_V2,
    "parse_log_calypso": Parser(
        "jest --verbose, by command", trees.read_calypso, trees.read_calypso_upstream
    ),
    "parse_log_bpmn_js": Parser(
        "karma, failures only", failures.read_karma_failures, failures.read_bpmn_upstream
    ),
    "parse_log_carbon": _FILES,
    "parse_log_eslint": _same("mocha, failures only", failures.read_eslint),
    "parse_log_grommet": Parser("jest, by file", suites.read_files, suites.read_grommet_upstream),
    "parse_log_highlightjs": _same("mocha's spec reporter", trees.read_highlightjs),
    "parse_log_lighthouse": Parser(
        "mocha, mocha's JSON or jest, by version",
        by_row.read_lighthouse,
        by_row.read_lighthouse_upstream,
    ),
    "parse_log_next": _same("karma, or cypress in version 1.27", trees.read_next),
    "parse_log_openlayers": Parser(
        "karma and mocha, failures only",
        failures.read_openlayers,
        failures.read_openlayers_upstream,
    ),
    "parse_log_prismjs": Parser(
        "mocha's JSON reporter",
        json_reports.read_prism,
        json_reports.read_prism_upstream,
        is_document=True,
    ),
    "parse_log_quarto_cli": Parser("deno test", quarto.read_quarto, quarto.read_quarto_upstream),
    "parse_log_chart_js": Parser(
        "karma, failures only", failures.read_karma_failures, failures.read_chart_upstream
    ),
    "parse_log_marked": _same("jasmine, failures only", failures.read_marked),
    "parse_log_p5js": _same("mocha, failures only", p5.read_p5),
    "parse_log_react_pdf": _FILES,
    "parse_log_jest": _lines("jest --verbose", lines.JEST),
    "parse_log_jest_json": _lines("jest --json, as lines", lines.JEST_JSON),
    "parse_log_vitest": _lines("vitest --reporter=verbose", lines.VITEST),
    "parse_log_karma": Parser(
        "karma's mocha reporter", karma.read_karma, karma.read_karma_upstream
    ),
    "parse_log_tap": Parser("TAP", lines.read_tap, lines.TAP.read_upstream),
    "parse_log_immutable_js": Parser(
        "jest, by row", by_row.read_immutable, by_row.read_immutable_upstream
    ),
    "parse_log_redis": _lines("redis' Tcl tests", lines.REDIS),
    "parse_log_jq": _lines("automake tests", lines.JQ),
    "parse_log_doctest": Parser(
        "doctest (C++) -r=xml",
        doctest_xml.read_doctest,
        doctest_xml.read_doctest_upstream,
        is_document=True,
    ),
    "parse_log_micropython_test": _lines("micropython's run-tests", lines.MICROPYTHON),
    "parse_log_googletest": Parser(
        "GoogleTest", googletest.read_googletest, googletest.read_googletest_upstream
    ),
    "parse_log_gotest": _GO,
    "parse_log_maven": _same("mvn -Dtest=..., one build a test", builds.read_maven),
    "parse_log_ant": _lines("ant's junit task", lines.ANT),
    "parse_log_gradle_custom": Parser(
        "gradle's test events", builds.read_gradle, builds.read_gradle_upstream
    ),
    "parse_log_phpunit": Parser(
        "phpunit --testdox", phpunit.read_phpunit, phpunit.read_phpunit_upstream
    ),
    "parse_log_minitest": Parser(
        "minitest --verbose", ruby.read_minitest, ruby.read_minitest_upstream
    ),
    "parse_log_cucumber": Parser(
        "cucumber --format progress", ruby.read_cucumber, ruby.read_cucumber_upstream
    ),
    "parse_log_ruby_unit": _lines("test-unit --verbose", lines.RUBY_UNIT),
    "parse_log_rspec_transformed_json": _lines("RSpec's JSON, as lines", lines.RSPEC),
    "parse_log_jekyll": Parser(
        "minitest or cucumber, by row", by_row.read_jekyll, by_row.read_jekyll_upstream
    ),
    "parse_log_cargo": _CARGO,
}
"""The names of SWE-bench's registry, as the column `log_parser` has them."""


COUSINS: Mapping[str, Parser] = {
    "r2e_pytest": Parser(
        "pytest, names without files (R2E-Gym)", cousins.read_r2e, cousins.read_r2e_upstream
    ),
    "surefire": _one("Maven Surefire, by class", cousins.read_surefire),
    "surefire_strict": _one(
        "Maven Surefire, by class; skipped if any test was", cousins.read_surefire_strictly
    ),
    "mocha": _one("mocha's spec reporter, without suites", cousins.read_mocha),
    "dotnet": _one("dotnet test", cousins.read_dotnet),
    "ctest": _one("CTest", cousins.read_ctest),
    "exunit": _one("mix test --trace", cousins.read_exunit),
    "results_json": _one("the JSON of a data set's own parser", cousins.read_json)._replace(
        is_document=True
    ),
}
"""What cousins of SWE-bench need, under names of ours."""

PARSERS: Mapping[str, Parser] = {**UPSTREAM, **COUSINS}
"""All of them, by name."""


def find_parser(name: str) -> Parser:
    """Return a parser by its name; raises `DefinitionError` for one that is not known."""
    parser = PARSERS.get(name)
    if parser is None:
        raise DefinitionError(f"no log parser {name!r}; there are: {', '.join(PARSERS)}")
    return parser


def parse(name: str, log: bytes | str, context: Context = Context()) -> Parsed:  # noqa: B008 - a value
    """Read a log robustly. Never raises for what a log says."""
    parser = find_parser(name)
    text = text_of(log)
    text = text if parser.is_document else without_long_lines(text)
    if parser.dialect:
        return pytest.parse_pytest(text, parser.dialect)
    return joined(parser.read(text, context))


def named(name: str, statuses: Mapping[str, str]) -> Parsed:
    """Results that did not come from a log, with the names that the log parser would give them."""
    dialect = find_parser(name).dialect
    key = dialect.key if dialect else _without_file if name == "r2e_pytest" else str
    return joined(Result(test, status, key(test)) for test, status in statuses.items())


def _without_file(test: str) -> str:
    return ".".join(test.split("::")[1:])


def parse_upstream(
    name: str,
    log: bytes | str,
    context: Context = Context(),  # noqa: B008 - a value
) -> Mapping[str, str]:
    """Read a log exactly as SWE-bench 5.0.2 does; a status may be any word.

    Raises `UpstreamRaises` where SWE-bench's parser raises an exception.
    """
    return last_wins(find_parser(name).upstream(text_of(log), context))
