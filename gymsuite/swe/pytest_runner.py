"""Runs pytest as its own command would, and notes each test. Its text is sent into a sandbox.

Arguments: a nonce, the file for the records, the path of pytest's script ("" for `python -m`),
then pytest's own. Any Python from 3.6 on runs it. Code under test shares this process, so a record
is evidence and no proof.
"""

import json
import os
import sys
from typing import Any

_ORDER = ("PASSED", "XPASS", "XFAIL", "SKIPPED", "FAILED", "ERROR")


class Reporter:
    """Writes what is collected, and the worst that was seen of each test when all are over."""

    def __init__(self, nonce: str, path: str) -> None:
        self.nonce = nonce
        # Held open: what others write there under the same name is not read through this.
        self.channel = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        self.worst: dict[str, str] = {}
        self.collected: list[str] = []

    def send(self, kind: str, value: object) -> None:
        """Append one record."""
        line = f"{self.nonce} {json.dumps([kind, value])}\n"
        os.write(self.channel, line.encode())

    def pytest_collection_finish(self, session: Any) -> None:  # noqa: ANN401 - pytest's own
        """Note which tests there are."""
        self.collected += [item.nodeid for item in session.items]

    def pytest_collectreport(self, report: Any) -> None:  # noqa: ANN401 - pytest's own
        """Note a file that cannot be collected."""
        if report.failed:
            self.note(report.nodeid, "ERROR")

    def pytest_runtest_logreport(self, report: Any) -> None:  # noqa: ANN401 - pytest's own
        """Note one of a test's phases."""
        expected = hasattr(report, "wasxfail")
        if report.failed:
            self.note(report.nodeid, "FAILED" if report.when == "call" else "ERROR")
        elif report.skipped:
            self.note(report.nodeid, "XFAIL" if expected else "SKIPPED")
        elif report.when == "call":
            self.note(report.nodeid, "XPASS" if expected else "PASSED")

    def note(self, name: str, status: str) -> None:
        """Keep the worst."""
        before = self.worst.get(name, status)
        self.worst[name] = max(before, status, key=_ORDER.index)

    def end(self, code: int) -> None:
        """Send it all."""
        self.send("collected", self.collected)
        for name, status in self.worst.items():
            self.send("test", [name, status])
        self.send("ended", int(code))


def main() -> None:
    """Find pytest where its own command would find it, and run it."""
    nonce, records, script = sys.argv[1:4]
    arguments = sys.argv[4:]
    sys.path[0] = os.path.dirname(script) if script else os.getcwd()  # noqa: PTH109, PTH120
    import pytest  # noqa: PLC0415 - from the place that was just named

    sys.argv = [script or pytest.__file__, *arguments]
    reporter = Reporter(nonce, records)
    reporter.send("started", sys.version.split()[0])
    code = pytest.main(arguments, plugins=[reporter])
    reporter.end(code)
    sys.stdout.flush()
    sys.exit(code)


main()
