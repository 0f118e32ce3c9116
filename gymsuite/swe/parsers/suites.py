"""JavaScript runners of which SWE-bench counts whole files: `PASS path (1.2 s)`."""

import re
from collections.abc import Iterator

from gymsuite.swe.parsers.results import Context, Result, Status, lines
from gymsuite.swe.parsers.text import plain

_WORDS = {"PASS": Status.PASSED, "FAIL": Status.FAILED}
_LINE = re.compile(r"(?P<word>PASS|FAIL)\s(?P<rest>.*)")
_TIMES = tuple(re.compile(rf"(?P<name>.*)\s\([\d.]+{unit}\)") for unit in ("ms", r"\ss", "s"))
_FAILS = re.compile(r"^FAIL\s(?P<name>.*)", re.MULTILINE)
_PASSES = re.compile(r"^PASS\s(?P<name>.*)", re.MULTILINE)
_TIME_AT_END = re.compile(r"\s\([\d.]+\s?m?s\)$")


def read_files_upstream(log: str, _: Context) -> Iterator[Result]:
    """Read a file's result a line, its name up to the time it took."""
    for line in lines(log):
        if match := _LINE.match(line):
            rest = match["rest"]
            timed = next((found for time in _TIMES if (found := time.match(rest))), None)
            yield Result(timed["name"] if timed else rest, _WORDS[match["word"]])


def read_files(log: str, context: Context) -> Iterator[Result]:
    """Read the same of a log with colours, and less the spaces around a name."""
    for name, status, _ in read_files_upstream(plain(log), context):
        yield Result(name.strip(), status, name)


def read_grommet_upstream(log: str, _: Context) -> Iterator[Result]:
    """Read failures first and passes over them; a name may stand on the next line."""
    for pattern, status in ((_FAILS, Status.FAILED), (_PASSES, Status.PASSED)):
        for match in pattern.finditer(log):
            yield Result(_TIME_AT_END.sub("", match["name"].strip()), status)
