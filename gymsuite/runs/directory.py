"""A run directory: what was asked for, what came of it, and who may write to it.

run.json        the plan, the agent, the environments and the machine; never a secret
rollouts.jsonl  one line per attempt (see `log`)
timings.json    how long each `eval` of this run took, and its CPU time
report.json     the figures, written at the end
"""

import fcntl
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pydantic import BaseModel, TypeAdapter, ValidationError

from gymsuite.complaints import complaints
from gymsuite.errors import UsageError
from gymsuite.runs.log import StoreError
from gymsuite.types import Model

FORMAT_VERSION = 1
ROLLOUTS = "rollouts.jsonl"
_MANIFEST = "run.json"
_TIMINGS = "timings.json"
_REPORT = "report.json"
_LOCK = "lock"
_IDENTITY = ("agent", "tasks", "split", "names", "repeats", "seed")
_WHERE_SERVED = ("base_url", "timeout_seconds", "max_retries")


class EnvironmentRecord(Model):
    """Which tasks of an environment are in a run, by number and by content."""

    tasks: int
    digest: str


class Manifest(Model):
    """What a run is: all that its scores depend on, and where they were made."""

    format_version: int = FORMAT_VERSION
    gymsuite: str
    created: str
    agent: str
    agent_config: Mapping[str, Any] = {}
    environments: Mapping[str, EnvironmentRecord]
    tasks: int | None = None
    split: str | None = None
    names: tuple[str, ...] = ()
    repeats: int
    seed: int
    machine: Mapping[str, str | int] = {}


class Timing(Model):
    """One command's work on a run. `cpu_seconds` is this process, sandboxes excluded."""

    started: str
    seconds: float = 0.0
    cpu_seconds: float = 0.0


_TIMING_LIST = TypeAdapter(tuple[Timing, ...])


class RunDirectory:
    """The files of one run, by name."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.rollouts = path / ROLLOUTS

    def is_new(self) -> bool:
        """Whether nothing is there yet."""
        return not self.path.exists() or {p.name for p in self.path.iterdir()} <= {_LOCK}

    def read_manifest(self) -> Manifest:
        """What the run is; raises `UsageError` if this is no run directory of this format."""
        path = self.path / _MANIFEST
        raw = _read(path)
        if raw is None:
            raise UsageError(f"{self.path} is no run directory: it has no {_MANIFEST}")
        try:
            version = _Version.model_validate_json(raw).format_version
            if version != FORMAT_VERSION:
                raise UsageError(
                    f"{path}: format {version}; this gymsuite reads format {FORMAT_VERSION}"
                )
            return Manifest.model_validate_json(raw)
        except ValidationError as error:
            raise UsageError(f"{path} is damaged: {complaints(error, 'the file')}") from error

    def write_manifest(self, manifest: Manifest) -> None:
        """Store what the run is."""
        self._write(_MANIFEST, manifest.model_dump_json(indent=2))

    def read_timings(self) -> tuple[Timing, ...]:
        """What earlier commands spent on this run."""
        raw = _read(self.path / _TIMINGS)
        try:
            return _TIMING_LIST.validate_json(raw) if raw is not None else ()
        except ValidationError as error:
            raise UsageError(
                f"{self.path / _TIMINGS} is damaged: {complaints(error, 'the file')}; it holds "
                "times only, so that it may be removed"
            ) from error

    def write_timings(self, timings: tuple[Timing, ...]) -> None:
        """Store what commands have spent on this run."""
        self._write(_TIMINGS, _TIMING_LIST.dump_json(timings, indent=2).decode())

    def write_report(self, report: Model) -> None:
        """Store the figures."""
        self._write(_REPORT, report.model_dump_json(indent=2))

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Be the only writer; raises `UsageError` if another process is."""
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            fd = os.open(self.path / _LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        except (FileExistsError, NotADirectoryError) as error:
            raise UsageError(
                f"{self.path} cannot be a run directory: it is, or lies below, a file; choose "
                "another --out"
            ) from error
        except OSError as error:
            raise StoreError(
                f"cannot make the run directory {self.path}: {error.strerror}", retryable=False
            ) from error
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            os.close(fd)
            raise UsageError(
                f"another process is writing to {self.path}; wait for it, or use another --out"
            ) from error
        try:
            yield
        finally:
            os.close(fd)

    def _write(self, name: str, text: str) -> None:
        path = self.path / name
        aside = path.with_name(f".{name}.new")
        try:
            aside.write_text(f"{text}\n", encoding="utf-8")
            aside.replace(path)
        except OSError as error:
            aside.unlink(missing_ok=True)
            raise StoreError(
                f"cannot write {path}: {error.strerror}; make room, then resume the run",
                retryable=False,
            ) from error


class _Version(BaseModel):
    format_version: int


def differences(stored: Manifest, asked: Manifest) -> tuple[str, ...]:
    """In what a run that is to be resumed differs from the stored one, one phrase for each.

    Where the model is served may differ; its tasks' content may too, and is compared one by one.
    """
    return tuple(
        f"{name} was {before!r} and is {now!r}"
        for name, before in _identity(stored).items()
        if before != (now := _identity(asked).get(name))
    )


def _identity(manifest: Manifest) -> dict[str, Any]:
    settings = {k: v for k, v in manifest.agent_config.items() if k not in _WHERE_SERVED}
    environments = {"environments": sorted(manifest.environments)}
    return {**environments, **{n: getattr(manifest, n) for n in _IDENTITY}, **settings}


def _read(path: Path) -> str | None:
    try:
        return path.read_text(encoding="utf-8")
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{path} cannot be read: {error}") from error
