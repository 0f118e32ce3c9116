"""What a sandbox can do. The rest of gymsuite knows sandboxes by these types only."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from enum import IntEnum
from pathlib import Path
from typing import NamedTuple, Protocol

from gymsuite.sandbox.image import Image
from gymsuite.types import SandboxSpec

DEFAULT_OUTPUT_BYTES = 10 << 20
DEFAULT_FILE_BYTES = 64 << 20
DEFAULT_TREE_BYTES = 256 << 20
DEFAULT_TREE_FILES = 100_000
DEFAULT_READ_BYTES = 64 << 10


class Stream(IntEnum):
    """Where a command wrote to."""

    STDOUT = 1
    STDERR = 2


OnOutput = Callable[[Stream, bytes], None]
"""Told of a command's output as it comes. It must not block; what it raises ends the command."""


class ExecResult(NamedTuple):
    """A command's outcome. A non-zero exit or a timeout is data, not an error.

    `exit_code` is 128 + N when signal N ended the command. stdout and stderr keep their head and
    their tail when they are longer than the caller's `max_output`, or when all that commands wrote
    at once is more than an eighth of the sandbox's memory; `truncated` says so.
    `oom`, `disk_full` and `pids` say which of the sandbox's limits was hit while it ran, be it by
    this command or by another that ran beside it.
    """

    exit_code: int
    stdout: bytes
    stderr: bytes
    timed_out: bool = False
    truncated: bool = False
    wall_seconds: float = 0.0
    cpu_seconds: float = 0.0
    oom: bool = False
    disk_full: bool = False
    pids: bool = False

    @property
    def output(self) -> str:
        """Both streams as text; what is not UTF-8 is replaced."""
        return (self.stdout + self.stderr).decode(errors="replace")


class FileState(NamedTuple):
    """A regular file or a symbolic link, with git's modes: 0o100644, 0o100755, 0o120000.

    The data of a link is its target.
    """

    mode: int
    data: bytes


class Change(NamedTuple):
    """One path that differs from the sandbox's image. `None` means that it is not there."""

    path: str
    before: FileState | None
    after: FileState | None


class Changes(NamedTuple):
    """What differs below a directory. `omitted` are paths too large to read, or no files."""

    changed: tuple[Change, ...]
    omitted: tuple[str, ...]


class SandboxStats(NamedTuple):
    """What a sandbox has used so far. `None` means that this machine cannot tell."""

    cpu_seconds: float
    peak_memory_bytes: int | None = None
    disk_bytes: int | None = None
    oom_kills: int | None = None


class Process(Protocol):
    """A process that runs on while other verbs are used; it ends with the sandbox at the latest.

    What it writes waits in the sandbox until it is read, so a process that nobody reads stops
    sooner or later in a write. Every method raises `SandboxDead` when the sandbox is lost.
    """

    @property
    def pid(self) -> int:
        """Its process id, inside."""
        ...

    async def write(self, data: bytes) -> None:
        """Send to its stdin, and wait while it does not take more.

        What a process that has ended, or closed its stdin, was sent is dropped.
        """
        ...

    async def close_stdin(self) -> None:
        """Let it read the end of its stdin. Idempotent."""
        ...

    async def read(self, max_bytes: int = DEFAULT_READ_BYTES) -> bytes:
        """Wait for some of its stdout; empty at the end."""
        ...

    async def read_error(self, max_bytes: int = DEFAULT_READ_BYTES) -> bytes:
        """Wait for some of its stderr; empty at the end."""
        ...

    async def wait(self) -> ExecResult:
        """Wait for its end. The result has no output: that is read."""
        ...

    async def kill(self) -> None:
        """Kill it with its whole tree, and see them dead. Idempotent."""
        ...


class Sandbox(Protocol):
    """An isolated place where commands run. Every method raises `SandboxDead` when it is lost."""

    @property
    def description(self) -> Mapping[str, object]:
        """Provider, image digest, interpreter, and the limits that are really enforced."""
        ...

    async def exec(  # noqa: PLR0913 - the verb that everything is made of
        self,
        command: str | Sequence[str],
        *,
        timeout: float,
        stdin: bytes = b"",
        cwd: str | None = None,
        env: Mapping[str, str] | None = None,
        user: str | None = None,
        max_output: int = DEFAULT_OUTPUT_BYTES,
        on_output: OnOutput | None = None,
    ) -> ExecResult:
        """Run a command (a string goes to `/bin/sh -c`), and kill its whole tree at the deadline.

        `timeout` is in seconds; `cwd` defaults to the workdir; `env` is added to the image's.
        `user` is a name or a number of the sandbox's own; the default is its image's, without any
        capability. `on_output` is told of all output while the command runs, also of what
        `max_output` leaves out of the result. Raises `SandboxError` where the sandbox has no such
        user, or cannot change users.
        """
        ...

    async def spawn(
        self,
        command: str | Sequence[str],
        *,
        cwd: str | None = None,
        env: Mapping[str, str] | None = None,
        user: str | None = None,
    ) -> Process:
        """Start a process that stays, and return when it runs; the arguments are those of `exec`.

        A command that cannot be run is a process that ends with 126 or 127, as in a shell.
        """
        ...

    async def read(self, path: str, *, max_bytes: int = DEFAULT_FILE_BYTES) -> bytes | None:
        """Return a file's bytes, or None if there is no such regular file.

        Relative paths are below the workdir. Raises `PathRefused` if it is larger.
        """
        ...

    async def write(self, path: str, data: bytes, *, mode: int = 0o644) -> None:
        """Write a file, making its parent directories.

        Raises `PathRefused` where there can be no such file: in place of a directory, say.
        """
        ...

    async def upload(self, source: Path, target: str) -> None:
        """Copy a directory of this machine into the sandbox, below `target`.

        Directories, regular files and links are copied, with their permissions. Raises `UsageError`
        where `source` holds anything else, and `PathRefused` where `target` cannot take it.
        """
        ...

    async def download(
        self,
        source: str,
        target: Path,
        *,
        max_bytes: int = DEFAULT_TREE_BYTES,
        max_files: int = DEFAULT_TREE_FILES,
    ) -> None:
        """Copy a directory of the sandbox to `target`, which is made and must not exist.

        Every member is checked: nothing is written, linked or read outside either root, and modes
        give others no right to write. `max_bytes` bounds names and contents together. Raises
        `PathRefused`, and leaves nothing, where `source` is no directory, is larger than allowed,
        or holds what is no file, directory or link, or a link that leads out of it.
        """
        ...

    async def changes(self, root: str, *, max_bytes: int = DEFAULT_FILE_BYTES) -> Changes:
        """Say what differs from the image below `root`, read from outside; `.git` is left out.

        Ends every process in the sandbox first, so that nothing changes under the reader.
        `max_bytes` bounds all contents together.
        """
        ...

    async def snapshot(self) -> Image:
        """Freeze the file system as an image, and go on on top of it. Ends every process.

        The image's name can be put into `SandboxSpec.image` and opened by the same provider, any
        number of times, as long as someone holds the image.
        """
        ...

    async def stats(self) -> SandboxStats:
        """What the sandbox has used so far."""
        ...


OpenSandbox = Callable[[SandboxSpec], AbstractAsyncContextManager[Sandbox]]
"""Opens a fresh sandbox and removes it on exit; raises `SandboxError`."""
