"""What a sandbox can do. The rest of gymsuite knows sandboxes by these types only."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import NamedTuple, Protocol

from gymsuite.types import SandboxSpec

DEFAULT_OUTPUT_BYTES = 10 << 20
DEFAULT_FILE_BYTES = 64 << 20


class ExecResult(NamedTuple):
    """A command's outcome. A non-zero exit or a timeout is data, not an error.

    `exit_code` is 128 + N when signal N ended the command. stdout and stderr keep their head and
    their tail when they are longer than the caller's `max_output`; `truncated` says so.
    """

    exit_code: int
    stdout: bytes
    stderr: bytes
    timed_out: bool = False
    truncated: bool = False
    wall_seconds: float = 0.0
    cpu_seconds: float = 0.0

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
        max_output: int = DEFAULT_OUTPUT_BYTES,
    ) -> ExecResult:
        """Run a command (a string goes to `/bin/sh -c`), and kill its whole tree at the deadline.

        `timeout` is in seconds; `cwd` defaults to the workdir; `env` is added to the image's.
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

    async def changes(self, root: str, *, max_bytes: int = DEFAULT_FILE_BYTES) -> Changes:
        """Say what differs from the image below `root`, read from outside; `.git` is left out.

        Ends every process in the sandbox first, so that nothing changes under the reader.
        `max_bytes` bounds all contents together.
        """
        ...

    async def stats(self) -> SandboxStats:
        """What the sandbox has used so far."""
        ...


OpenSandbox = Callable[[SandboxSpec], AbstractAsyncContextManager[Sandbox]]
"""Opens a fresh sandbox and removes it on exit; raises `SandboxError`."""
