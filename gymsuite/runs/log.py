"""The append-only record of a run: one line of JSON for every attempt at a rollout.

A line is one write, so that a process killed in the middle leaves at most one torn line, at the
end. Such a line is ignored by readers and cut off by the next writer; damage anywhere else is an
error, because it cannot have come from a crash.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, NamedTuple, NoReturn, Self

from pydantic import BaseModel, ConfigDict, ValidationError

from gymsuite.complaints import complaints
from gymsuite.errors import InfrastructureError
from gymsuite.types import Failure, Rollout, Usage

_CHUNK = 1 << 20


class StoreError(InfrastructureError):
    """A run directory could not be written or read; what it holds already is kept."""

    kind = "store"


class Key(NamedTuple):
    """Names one rollout of a run, whichever attempt."""

    environment: str
    task: str
    repeat: int


class _Skim(BaseModel):
    """Reads what it names and skips the rest: conversations are most of a line."""

    model_config = ConfigDict(frozen=True, extra="ignore")


class RowScore(_Skim):
    """The part of a score that figures are made of."""

    reward: float
    passed: bool


class Row(_Skim):
    """The part of a stored rollout that says how it ended and what it cost."""

    environment: str
    task: str
    task_digest: str
    repeat: int
    attempt: int
    score: RowScore | None
    failure: Failure | None
    truncated: bool
    usage: Usage

    @property
    def key(self) -> Key:
        """Which rollout this is an attempt at."""
        return Key(self.environment, self.task, self.repeat)


class RolloutLog:
    """The file, open for appending by its one writer."""

    def __init__(self, path: Path) -> None:
        self._path = path
        try:
            self._fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
        except OSError as error:
            self._cannot_write(error)
        self._size = _whole_lines(self._fd)
        os.ftruncate(self._fd, self._size)
        self._synced = self._size

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        try:
            self.sync()
        finally:
            os.close(self._fd)

    def append(self, rollout: Rollout) -> None:
        """Write one line; all of it or, with a `StoreError`, nothing."""
        line = rollout.model_dump_json().encode() + b"\n"
        try:
            written = 0
            while written < len(line):
                written += os.write(self._fd, line[written:])
        except OSError as error:
            os.ftruncate(self._fd, self._size)
            self._cannot_write(error)
        self._size += len(line)

    def sync(self) -> None:
        """Make what was appended survive a crash of the machine; that of a process it does."""
        size = self._size
        if size == self._synced:
            return
        try:
            os.fsync(self._fd)
        except OSError as error:
            self._cannot_write(error)
        self._synced = size

    def _cannot_write(self, error: OSError) -> NoReturn:
        raise StoreError(
            f"cannot write {self._path}: {error.strerror}; all rollouts finished so far are in it: "
            "make room, then resume the run",
            retryable=False,
        ) from error


def _whole_lines(fd: int) -> int:
    """How many bytes of the file end in a newline."""
    end = os.fstat(fd).st_size
    while end > 0:
        start = max(0, end - _CHUNK)
        newline = os.pread(fd, end - start, start).rfind(b"\n")
        if newline >= 0:
            return start + newline + 1
        end = start
    return 0


def read_rows(path: Path) -> Iterator[tuple[int, Row]]:
    """Every attempt in its order, with the offset of its line. Raises `StoreError` for damage."""
    offset = 0
    for number, line in enumerate(_lines(path), 1):
        try:
            row = Row.model_validate_json(line)
        except ValidationError as error:
            raise _damaged(path, number, error) from error
        yield offset, row
        offset += len(line)


def read_rollout(path: Path, offset: int) -> Rollout:
    """The whole record whose line begins at `offset`."""
    with _readable(path) as file:
        file.seek(offset)
        line = file.readline()
    try:
        return Rollout.model_validate_json(line)
    except ValidationError as error:
        raise _damaged(path, f"byte {offset}", error) from error


def _lines(path: Path) -> Iterator[bytes]:
    if not path.exists():
        return
    with _readable(path) as file:
        for line in file:
            if not line.endswith(b"\n"):
                return
            yield line


@contextmanager
def _readable(path: Path) -> Iterator[BinaryIO]:
    try:
        with path.open("rb") as file:
            yield file
    except OSError as error:
        message = f"cannot read {path}: {error.strerror}"
        raise StoreError(message, retryable=False) from error


def _damaged(path: Path, where: int | str, error: ValidationError) -> StoreError:
    return StoreError(
        f"{path}:{where}: damaged: {complaints(error, 'the line')}; only the last line of a run "
        "can be torn by a crash: restore the file, or start a new run directory",
        retryable=False,
    )
