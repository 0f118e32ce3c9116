"""Runs test files in a sandbox and reads what came of each test."""

import json
import os
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from gymsuite.errors import VerifierError
from gymsuite.sandbox.protocol import ExecResult, Sandbox
from gymsuite.verify.sealing import COMPARE, OBSERVE

_MAX_OUTPUT = 32 << 20
_PROGRAM = Path(__file__).with_name("in_sandbox.py")
_ENVIRONMENT = {
    "PYTHONHASHSEED": "0",
    "TZ": "UTC",
    "LC_ALL": "C.UTF-8",
    "COLUMNS": "80",
}


class Settings(NamedTuple):
    """How pytest is set up: its options, and what its environment says."""

    options: tuple[str, ...]
    env: Mapping[str, str]


_COMMON = ("-p", "no:cacheprovider", "--continue-on-collection-errors", "-q", "--tb=short")
ALONE = Settings(
    ("-c", os.devnull, "--assert=plain", *_COMMON), {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
)
"""Neither the checkout's configuration nor installed plugins."""

AS_CONFIGURED = Settings(_COMMON, {})
"""With both, where the configuration is known to be the image's."""


class Outcome(NamedTuple):
    """What the sandbox says of one test. `digest` covers the values that sealed sites saw."""

    status: str
    digest: str
    values: str = ""
    failure: Mapping[str, Any] = {}


@dataclass(frozen=True)
class PytestRun:
    """The records of one run, as far as they came.

    `disturbed` says how the channel was tampered with, or "". `finished` is false when the process
    ended before its tests did. `compared` says of each probed site, as `file:number`, whether it
    can be sealed.
    """

    python: str
    collected: tuple[str, ...] = ()
    results: Mapping[str, Outcome] = field(default_factory=dict)
    finished: bool = False
    timed_out: bool = False
    disturbed: str = ""
    compared: Mapping[str, bool] = field(default_factory=dict)
    wall_seconds: float = 0.0
    cpu_seconds: float = 0.0


async def run_pytest(  # noqa: PLR0913 - where, what, and how closely to look
    sandbox: Sandbox,
    files: Sequence[str],
    *,
    python: str,
    root: str,
    timeout: float,
    trace: bool = False,
    hash_seed: int = 0,
    settings: Settings = ALONE,
) -> PytestRun:
    """Run `files` (relative to `root`) with the interpreter `python`.

    Raises `VerifierError` when the runner itself could not start: no code under test had run then.
    """
    nonce = secrets.token_hex(16)
    config = {
        "nonce": nonce,
        "root": root,
        "options": ["--rootdir", root, *settings.options],
        "files": list(files),
        "trace": trace,
        "observe": OBSERVE,
        "compare": COMPARE,
    }
    result = await sandbox.exec(
        [python, "-s", "-B", "-c", _PROGRAM.read_text(encoding="utf-8")],
        timeout=timeout,
        stdin=json.dumps(config).encode(),
        cwd="/",  # what the program itself imports is looked for there, until it removes that
        env={**_ENVIRONMENT, **settings.env, "PYTHONHASHSEED": str(hash_seed)},
        max_output=_MAX_OUTPUT,
    )
    return parse(result, nonce)


def parse(result: ExecResult, nonce: str) -> PytestRun:
    """Read the records. Whatever is not exactly what an undisturbed run sends is a disturbance."""
    lines = result.stdout.split(b"\n")
    python = _record(lines[0], nonce)
    if python is None or python[0] != "started":
        raise VerifierError(
            f"the test runner did not start (exit code {result.exit_code}): "
            f"{result.stderr[-500:].decode(errors='replace')!r}"
        )
    reader = _Reader()
    if result.truncated:
        reader.disturb("more output than any run sends")
    if lines[-1]:
        reader.disturb("a line without an end")
    for line in lines[1:-1]:
        # Nothing behind a disturbance counts, and there may be millions of lines.
        if reader.disturbed:
            break
        reader.take(_record(line, nonce))
    return PytestRun(
        python=str(python[1]),
        collected=reader.collected,
        results=reader.results,
        finished=reader.ended,
        timed_out=result.timed_out,
        disturbed=reader.disturbed,
        compared=reader.compared,
        wall_seconds=result.wall_seconds,
        cpu_seconds=result.cpu_seconds,
    )


def _record(line: bytes, nonce: str) -> tuple[str, Any] | None:
    head, _, body = line.partition(b" ")
    if head != nonce.encode():
        return None
    try:
        kind, value = json.loads(body)
    except (ValueError, TypeError, RecursionError):
        return None
    return (kind, value) if isinstance(kind, str) else None


class _Reader:
    """Takes the records in order, and notes the first that has no place there."""

    def __init__(self) -> None:
        self.collected: tuple[str, ...] = ()
        self.known: frozenset[str] = frozenset()
        self.results: dict[str, Outcome] = {}
        self.compared: dict[str, bool] = {}
        self.ended = False
        self.disturbed = ""

    def disturb(self, reason: str) -> None:
        self.disturbed = self.disturbed or reason

    def take(self, record: tuple[str, Any] | None) -> None:
        if self.ended:
            self.disturb("a record behind the last one")
            return
        match record:
            case ("collected", list() as names) if not self.collected and not self.results:
                self.collected = tuple(map(str, names))
                self.known = frozenset(self.collected)
            case ("test", [str() as name, str() as status, str() as digest, *rest]):
                self._test(name, Outcome(status, digest, *rest[:2]))
            case ("ended", [int(), dict() as compared]):
                self.ended, self.compared = True, compared
            case _:
                self.disturb("a line that is no record")

    def _test(self, name: str, result: Outcome) -> None:
        if name not in self.known:
            self.disturb(f"a result for {name!r}, which was not collected")
        elif name in self.results:
            self.disturb(f"two results for {name!r}")
        self.results.setdefault(name, result)
