"""Runs a row's own eval script in a sandbox, and takes what pytest says past its output."""

import json
import secrets
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gymsuite.errors import PathRefused
from gymsuite.sandbox.protocol import ExecResult, Sandbox

_SHELL = Path(__file__).parent / "image/shell.sh"
_RUNNER = Path(__file__).with_name("pytest_runner.py")
# Of the places that every provider lets one write to, none that a repository is in.
_FOLDER = "/tmp/.gymsuite"  # noqa: S108 - inside the sandbox
_RECORDS = f"{_FOLDER}/records"
_SCRIPT = "/tmp/eval.sh"  # noqa: S108 - the same
_LOG_BYTES = 32 << 20
_STATUSES = {"PASSED", "XPASS", "XFAIL", "SKIPPED", "FAILED", "ERROR"}


@dataclass(frozen=True)
class Records:
    """What pytest said of each test, by node id, past its output.

    `complete` is false where a run has begun and not ended. `disturbed` says what is in the
    records that an undisturbed run does not write, or "".
    """

    results: Mapping[str, str] = field(default_factory=dict)
    collected: tuple[str, ...] = ()
    complete: bool = False
    disturbed: str = ""

    @property
    def usable(self) -> bool:
        """Whether the results stand in for what the log says."""
        return self.complete and not self.disturbed

    def listed(self) -> Iterator[tuple[str, str]]:
        """The results that `pytest -rA` lists by id: a skipped test it lists by its place."""
        return ((name, status) for name, status in self.results.items() if status != "SKIPPED")


@dataclass(frozen=True)
class Ran:
    """One run of an eval script. `records` is None where no pytest was started by its name."""

    log: bytes
    records: Records | None
    timed_out: bool
    wall_seconds: float
    cpu_seconds: float


async def run_script(
    sandbox: Sandbox, script: str, *, workdir: str, timeout: float, rebuild: bool
) -> Ran:
    """Run an eval script under bash, with the network off, and kill its whole tree at the deadline.

    `rebuild` has what it installs installed again, because the patch touches how that is done.
    """
    nonce = secrets.token_hex(16)
    files = {
        _SCRIPT: script.encode(),
        f"{_FOLDER}/shell.sh": _SHELL.read_bytes(),
        f"{_FOLDER}/runner.py": _RUNNER.read_bytes(),
        f"{_FOLDER}/nonce": nonce.encode(),
        f"{_FOLDER}/rebuild": b"yes" if rebuild else b"",
    }
    for path, content in files.items():
        await sandbox.write(path, content)
    done = await sandbox.exec(
        ["/bin/sh", "-c", f"exec /bin/bash {_SCRIPT} 2>&1"],
        timeout=timeout,
        cwd=workdir,
        env={"BASH_ENV": f"{_FOLDER}/shell.sh"},
        max_output=_LOG_BYTES,
    )
    return _ran(done, await _records(sandbox, nonce))


async def _records(sandbox: Sandbox, nonce: str) -> Records | None:
    try:
        data = await sandbox.read(_RECORDS)
    except PathRefused as error:  # whatever lies there now was put there by the code under test
        return Records(disturbed=str(error))
    return None if data is None else read_records(data, nonce)


def _ran(done: ExecResult, records: Records | None) -> Ran:
    return Ran(
        log=done.stdout,
        records=records,
        timed_out=done.timed_out,
        wall_seconds=done.wall_seconds,
        cpu_seconds=done.cpu_seconds,
    )


def read_records(data: bytes, nonce: str) -> Records:
    """Read what the runner wrote. Anything that it does not write is a disturbance."""
    results: dict[str, str] = {}
    collected: list[str] = []
    running = ended = False
    for line in data.split(b"\n")[:-1]:
        match _record(line, nonce):
            case ("started", str()) if not running:
                running = True
            case ("collected", list() as names) if running:
                collected += map(str, names)
            case ("test", [str() as name, str() as status]) if running and status in _STATUSES:
                if name in results:
                    return Records(disturbed=f"two results for {name!r}")
                results[name] = status
            case ("ended", int()) if running:
                running, ended = False, True
            case _:
                return Records(disturbed="a line that is no record of this run")
    return Records(results, tuple(collected), complete=ended and not running)


def _record(line: bytes, nonce: str) -> tuple[str, Any] | None:
    head, _, body = line.partition(b" ")
    if head != nonce.encode():
        return None
    try:
        kind, value = json.loads(body)
    except (ValueError, TypeError, RecursionError):
        return None
    return kind, value
