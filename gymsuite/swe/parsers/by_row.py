"""Parsers whose log format depends on the row: SWE-bench goes by its id or its version."""

from collections.abc import Iterator

from gymsuite.swe.parsers import json_reports, lines, ruby, suites, trees
from gymsuite.swe.parsers.results import Context, Result, UpstreamRaises
from gymsuite.swe.parsers.text import plain

_LIGHTHOUSE_MOCHA = frozenset({"9.5", "10.0", "10.2"})
_JEKYLL_MINITEST = frozenset({"9141", "8047", "8167"})
_JEKYLL_CUCUMBER = frozenset({"8761", "8771"})


def read_jekyll_upstream(log: str, context: Context) -> Iterator[Result]:
    """Read minitest or cucumber, by the number in the row's id."""
    number = context.instance_id.partition("-")[2].partition("-")[0]
    if number in _JEKYLL_MINITEST:
        yield from ruby.read_minitest_upstream(log, context)
    elif number in _JEKYLL_CUCUMBER:
        yield from ruby.read_cucumber_upstream(log, context)
    else:
        raise UpstreamRaises(f"{context.instance_id!r} is none of the five rows that it knows")


def read_jekyll(log: str, context: Context) -> Iterator[Result]:
    """Read whichever of the two there is."""
    yield from ruby.read_minitest(log, context)
    yield from ruby.read_cucumber(log, context)


def read_immutable_upstream(log: str, context: Context) -> Iterator[Result]:
    """Read jest, verbose or as lines of JSON, by the number in the row's id."""
    number = context.instance_id.rpartition("-")[2]
    if number == "2006":
        yield from lines.JEST.read_upstream(log, context)
    elif number == "2005":
        yield from lines.JEST_JSON.read_upstream(log, context)
    else:
        raise UpstreamRaises(f"{context.instance_id!r} is none of the two rows that it knows")


def read_immutable(log: str, context: Context) -> Iterator[Result]:
    """Read whichever of the two there is."""
    yield from lines.JEST.read(log, context)
    yield from lines.JEST_JSON.read(log, context)


def read_lighthouse_upstream(log: str, context: Context) -> Iterator[Result]:
    """Read mocha, jest or mocha's JSON, by the row's version."""
    if context.version in _LIGHTHOUSE_MOCHA:
        yield from trees.read_mocha_runs(log)
        return
    try:
        major = float(context.version)
    except ValueError as error:
        raise UpstreamRaises(f"the version {context.version!r} is no number") from error
    read = suites.read_files_upstream if major >= 3 else json_reports.read_lighthouse_json  # noqa: PLR2004 - lighthouse 3
    yield from read(log, context)


def read_lighthouse(log: str, context: Context) -> Iterator[Result]:
    """Read the same, and mocha where the version is no number."""
    version = context.version if context.version.replace(".", "", 1).isdigit() else "9.5"
    yield from read_lighthouse_upstream(plain(log), context._replace(version=version))
