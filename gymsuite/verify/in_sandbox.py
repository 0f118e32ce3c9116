"""Runs pytest inside a sandbox and reports each test. Its text is sent there: no gymsuite imports.

It is started as `python -c TEXT` with its configuration on standard input, so that no file of it
lies in the sandbox. Everything it does can be reached by the code under test: see
docs/design/verification.md for why a lie does not pay.
"""

from __future__ import annotations

import builtins
import datetime as dt
import fractions
import hashlib
import json
import math
import numbers
import os
import sys
from typing import Any

OPAQUE = "?"


class _Opaque(Exception):  # noqa: N818 - a signal between two functions
    """A value that has no canonical text."""


def canonical(value: object, *, identity: bool = False) -> str:
    """A text that is equal for values that compare equal, or OPAQUE for a value of another kind."""
    if identity:
        return repr(value) if any(value is known for known in (None, True, False)) else OPAQUE
    try:
        return _canonical(value)
    except Exception:  # noqa: BLE001 - a value of the code under test may raise anything
        return OPAQUE


def _canonical(value: object) -> str:  # noqa: PLR0911 - one line for each kind of value
    if value is None:
        return "None"
    if isinstance(value, str):
        return "s" + json.dumps(str.__str__(value))
    if isinstance(value, (bytes, bytearray)):
        return repr(bytes(value))
    if isinstance(value, numbers.Number):
        return _number(value)
    if isinstance(value, list):
        return "[" + ",".join(map(_canonical, value)) + "]"
    if isinstance(value, tuple):
        return "(" + ",".join(map(_canonical, value)) + ")"
    if isinstance(value, (set, frozenset)):
        return "{" + ",".join(sorted(map(_canonical, value))) + "}"
    if isinstance(value, dict):
        pairs = (f"{_canonical(key)}:{_canonical(item)}" for key, item in value.items())
        return "{:" + ",".join(sorted(pairs)) + "}"
    return _moment(value)


def _number(value: Any) -> str:  # noqa: ANN401 - pytest's types are not known here
    if isinstance(value, complex):
        if value.imag:
            return f"{_number(value.real)}+{_number(value.imag)}j"
        value = value.real
    if isinstance(value, float) and not math.isfinite(value):
        if math.isnan(value):
            raise _Opaque
        return str(value)
    try:
        return str(fractions.Fraction(value))
    except (TypeError, ValueError, OverflowError):
        raise _Opaque from None


def _moment(value: object) -> str:
    if isinstance(value, dt.timedelta):
        return f"d{value.days}:{value.seconds}:{value.microseconds}"
    if isinstance(value, dt.datetime):
        if value.utcoffset() is not None:
            value = value.astimezone(dt.timezone.utc)  # noqa: UP017 - the image's Python may be old
        return f"t{value.isoformat()}"
    if isinstance(value, dt.date):
        return f"t{value.isoformat()}"
    if isinstance(value, dt.time) and value.tzinfo is None:
        return f"t{value.isoformat()}"
    raise _Opaque


class Observer:
    """What sealed tests call: it notes the values of the test that runs now."""

    def __init__(self) -> None:
        self.values: list[str] = []
        self.compared: dict[str, bool] = {}

    def observed(self, site: int, value: object, identity: bool) -> None:  # noqa: FBT001 - written by position into the tests
        """Stands where a sealed comparison was."""
        self.values.append(f"{site}={canonical(value, identity=identity)}")

    def compared_with(self, site: int, actual: object, expected: object, identity: bool) -> None:  # noqa: FBT001 - written by position into the tests
        """Stands where a probed comparison was, and still fails where it would have failed."""
        place = f"{sys._getframe(1).f_code.co_filename}:{site}"  # noqa: SLF001 - it tells the test's file
        texts = {canonical(value, identity=identity) for value in (actual, expected)}
        sealable = len(texts) == 1 and OPAQUE not in texts
        self.values.append(json.dumps([site, _told(actual), _told(expected)]))
        self.compared[place] = sealable and self.compared.get(place, True)
        assert (actual is expected) if identity else (actual == expected)  # noqa: S101 - it stands for an assertion


class Reporter:
    """A pytest plugin that sends one record per test."""

    def __init__(self, send: Any, observer: Observer, *, trace: bool) -> None:  # noqa: ANN401 - pytest's types are not known here
        self.send = send
        self.observer = observer
        self.trace = trace
        self.names: dict[str, str] = {}
        self.reports: list[Any] = []
        self.failure: dict[str, Any] = {}

    def pytest_collection_finish(self, session: Any) -> None:  # noqa: ANN401 - pytest's types are not known here
        """Name the tests by file, function and position: names of parameters vary too much."""
        counts: dict[str, int] = {}
        for item in session.items:
            function = "::".join(part.split("[")[0] for part in item.nodeid.split("::")[1:])
            key = item.nodeid.split("::")[0] + "::" + _function_name(item, function)
            counts[key] = counts.get(key, -1) + 1
            self.names[item.nodeid] = f"{key}[{counts[key]}]"
        self.send("collected", list(self.names.values()))

    def pytest_runtest_logstart(self) -> None:
        """Begin a new test."""
        self.reports = []
        self.failure = {}
        self.observer.values = []

    def pytest_runtest_makereport(self, item: Any, call: Any) -> None:  # noqa: ANN401 - pytest's types are not known here
        """When tracing, keep where in its file a test failed, and with what."""
        if self.trace and call.excinfo is not None and not self.failure:
            self.failure = _failure(item, call.excinfo)

    def pytest_runtest_logreport(self, report: Any) -> None:  # noqa: ANN401 - pytest's types are not known here
        """Keep the reports of setup, call, subtests and teardown."""
        self.reports.append(report)

    def pytest_runtest_logfinish(self, nodeid: str) -> None:
        """Send what came of the test."""
        values = "\n".join(self.observer.values)
        digest = hashlib.sha256(values.encode(errors="replace")).hexdigest()[:16] if values else ""
        detail = [values, self.failure] if self.trace else []
        self.send("test", [self.names.get(nodeid, "?"), _status(self.reports), digest, *detail])


def _function_name(item: Any, fallback: str) -> str:  # noqa: ANN401 - pytest's types are not known here
    original = getattr(item, "originalname", None)
    parent = getattr(item, "cls", None)
    if original is None:
        return fallback
    return f"{parent.__qualname__}::{original}" if parent is not None else str(original)


def _status(reports: list[Any]) -> str:
    if not reports or any(report.outcome == "failed" for report in reports):
        return "failed"
    if any(hasattr(report, "wasxfail") for report in reports):
        return "xfail"
    if any(report.outcome != "passed" for report in reports):
        return "skipped"
    return "passed" if any(report.when == "call" for report in reports) else "failed"


def _failure(item: Any, excinfo: Any) -> dict[str, Any]:  # noqa: ANN401 - pytest's types are not known here
    """Describe an exception by the last line of the test's own file that it passed through."""
    told = {"type": excinfo.typename, "message": str(excinfo.value)[:1000], "line": 0, "names": {}}
    for entry in excinfo.traceback:
        if str(entry.path) == str(item.fspath):
            names = {name: _told(value) for name, value in entry.frame.f_locals.items()}
            told |= {"line": entry.lineno + 1, "names": names}
    return told


def _told(value: object) -> str:
    try:
        return repr(value)[:500]
    except Exception:  # noqa: BLE001 - a value of the code under test may raise anything
        return OPAQUE


def main() -> None:
    """Take the channel away from standard output, run the tests, and leave without ceremony."""
    config = json.load(sys.stdin)
    # Nothing is imported from the working directory, which belongs to the code under test.
    sys.path[:] = [folder for folder in sys.path if folder]
    os.chdir(config["root"])
    channel = os.dup(1)
    null = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1):
        os.dup2(null, descriptor)

    def send(kind: str, value: object) -> None:
        line = f"{config['nonce']} {json.dumps([kind, value])}\n".encode()
        while line:
            line = line[os.write(channel, line) :]

    send("started", sys.version.split()[0])
    import pytest  # noqa: PLC0415 - whatever happens from here on has started

    observer = Observer()
    setattr(builtins, config["observe"], observer.observed)
    setattr(builtins, config["compare"], observer.compared_with)
    reporter = Reporter(send, observer, trace=config["trace"])
    code = pytest.main([*config["options"], *config["files"]], plugins=[reporter])
    send("ended", [int(code), observer.compared])
    os._exit(0)


if __name__ == "__main__":
    main()
