"""Says which tests call which functions: run inside a sandbox, stdlib and pytest only."""

import json
import os
import sys
from types import CodeType, FrameType
from typing import Any


class Coverage:
    """A pytest plugin that notes every function of a package that a test enters."""

    def __init__(self, package: str) -> None:
        self.package = package + os.sep
        self.seen: set[CodeType] = set()
        self.calls: dict[str, list[str]] = {}

    def profile(self, frame: FrameType, event: str, _argument: object) -> None:
        """Take a call, as `sys.setprofile` reports it."""
        if event == "call":
            self.seen.add(frame.f_code)

    def pytest_runtest_logstart(self) -> None:
        """Begin to listen."""
        self.seen = set()
        sys.setprofile(self.profile)

    def pytest_runtest_logfinish(self, nodeid: str) -> None:
        """Write down what the test called."""
        sys.setprofile(None)
        for code in self.seen:
            if code.co_filename.startswith(self.package):
                key = f"{code.co_filename}:{code.co_qualname}"
                self.calls.setdefault(key, []).append(nodeid)


def main(root: str, package: str, files: list[str]) -> None:
    """Run the tests and print `{"file:function": [test, ...]}` behind a mark."""
    import pytest  # noqa: PLC0415 - pytest is in the sandbox, not where this is checked

    output = os.dup(1)
    os.dup2(os.open(os.devnull, os.O_RDWR), 1)
    coverage: Any = Coverage(f"{root}/{package}")
    options = ["--rootdir", root, "-c", os.devnull, "-p", "no:cacheprovider", "-q"]
    pytest.main([*options, "--continue-on-collection-errors", *files], plugins=[coverage])
    with os.fdopen(output, "w") as stream:
        json.dump(coverage.calls, stream)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3:])
