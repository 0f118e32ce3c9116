"""mocha's JSON reporter, whose document stands somewhere behind the command that printed it."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

from gymsuite.swe.parsers.results import Context, Result, Status, UpstreamRaises
from gymsuite.swe.parsers.shapes import shape
from gymsuite.swe.parsers.text import plain

_PRISM = "./node_modules/.bin/mocha tests/run.js --reporter json"
_LIGHTHOUSE = "./node_modules/.bin/mocha --reporter json"
_TITLE = shape('"fullTitle": "{name}",\n', loose=True)
_SECTIONS = {"failures": Status.FAILED, "passes": Status.PASSED}
_MOST_OPENINGS = 50


def read_prism_upstream(log: str, _: Context) -> Iterator[Result]:
    """Read from the first brace behind a command to the last one, which must be all JSON."""
    for block in log.split(_PRISM)[1:]:
        document = "{" + block.split("{", 1)[-1].rsplit("}", 1)[0] + "}"
        try:
            yield from list(_tests(json.loads(document)))
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            raise UpstreamRaises(f"no report of mocha's: {error!r:.200}") from error


def read_prism(log: str, _: Context) -> Iterator[Result]:
    """Read the first report behind each command, whatever is printed around it."""
    for block in plain(log).split(_PRISM)[1:]:
        yield from _first_report(block)


def read_lighthouse_json(log: str, _: Context) -> Iterator[Result]:
    """Read the titles below "passes", then those below "failures", as text."""
    for block in log.split(_LIGHTHOUSE)[1:]:
        for status, section, end in (
            (Status.PASSED, '"passes": [', "]"),
            (Status.FAILED, '"failures": [', "],"),
        ):
            text = block.rpartition(section)[2].rsplit(end, 1)[0]
            for match in _TITLE.finditer(text):
                yield Result(match["name"], status)


def _first_report(block: str) -> list[Result]:
    decoder = json.JSONDecoder()
    at = block.find("{")
    for _ in range(_MOST_OPENINGS):
        if at < 0:
            break
        try:
            document, _end = decoder.raw_decode(block, at)
            return list(_tests(document))
        except (ValueError, KeyError, TypeError, RecursionError):
            at = block.find("{", at + 1)
    return []


def _tests(document: Mapping[str, Any]) -> Iterator[Result]:
    for section, status in _SECTIONS.items():
        for test in document[section]:
            yield Result(test["fullTitle"], status)
