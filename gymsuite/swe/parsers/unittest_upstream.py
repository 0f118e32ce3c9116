"""Django's test runner as SWE-bench reads it, oddities included."""

from collections.abc import Iterator

from gymsuite.swe.parsers.results import Context, Result, Status, UpstreamRaises, lines
from gymsuite.swe.parsers.shapes import shape

OK = (" ... ok", " ... OK", " ...  OK")
VERSION = "--version is equivalent to version"
_BAD = {"FAIL": Status.FAILED, "ERROR": Status.ERROR}
_MIGRATION = "Applying sites.0002_alter_domain_unique...test_no_migrations"
# Output that is known to come between a test's name and its "ok".
_BETWEEN = tuple(
    shape(f"{{start}}{{first}}{{space}}...{{space}}{said}\nok{{end}}")
    for said in (
        "Testing against Django installed in {block} silenced).",
        "Internal Server Error: /{any}/",
        "System check identified no issues (0 silenced)",
    )
)


def read_django_upstream(log: str, _: Context) -> Iterator[Result]:
    """Read `name ... ok`; a line that begins with "ok" passes the test that was named last."""
    last: str | None = None
    for line in lines(log):
        text = line.strip()
        if VERSION in text:
            yield Result(VERSION, Status.PASSED)
        if " ... " in text:
            last = text.partition(" ... ")[0]
        if suffix := next((each for each in OK if text.endswith(each)), ""):
            if text.startswith(_MIGRATION):
                text = text.partition("...")[2].strip()
            yield Result(text.rpartition(suffix)[0] if suffix in text else text, Status.PASSED)
        yield from _other(text)
        if last is not None and text.startswith("ok"):
            yield Result(last, Status.PASSED)
    for pattern in _BETWEEN:
        for match in pattern.finditer(log):
            yield Result(match["name"], Status.PASSED)


def _other(text: str) -> Iterator[Result]:
    if " ... skipped" in text:
        yield Result(text.partition(" ... skipped")[0], Status.SKIPPED)
    for word, status in _BAD.items():
        if text.endswith(f" ... {word}"):
            yield Result(text.partition(f" ... {word}")[0], status)
        if text.startswith(f"{word}:"):
            words = text.split()
            if len(words) == 1:
                raise UpstreamRaises(f"{text!r} names no test")
            yield Result(words[1], status)
