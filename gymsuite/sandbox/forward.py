"""Forwards every verb to a sandbox that is looked up anew for each use."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path

from gymsuite.sandbox.image import Image
from gymsuite.sandbox.protocol import (
    DEFAULT_FILE_BYTES,
    DEFAULT_OUTPUT_BYTES,
    DEFAULT_TREE_BYTES,
    DEFAULT_TREE_FILES,
    Changes,
    ExecResult,
    OnOutput,
    Process,
    Sandbox,
    SandboxStats,
)


class ForwardingSandbox:
    """A sandbox in front of another: `use` provides it for one verb, or raises.

    `opened` says what is behind it just now, None for nothing yet; asking for the description or
    the stats of nothing opens nothing.
    """

    def __init__(
        self, use: Callable[[], Awaitable[Sandbox]], opened: Callable[[], Sandbox | None]
    ) -> None:
        self._use = use
        self._opened = opened

    @property
    def opened(self) -> Sandbox | None:
        """The sandbox behind it, or None as long as nothing has needed one."""
        return self._opened()

    @property
    def description(self) -> Mapping[str, object]:
        """What the sandbox is; empty as long as nothing has needed one."""
        sandbox = self._opened()
        return sandbox.description if sandbox else {}

    async def exec(  # noqa: PLR0913 - see Sandbox.exec
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
        """See `Sandbox.exec`."""
        return await (await self._use()).exec(
            command,
            timeout=timeout,
            stdin=stdin,
            cwd=cwd,
            env=env,
            user=user,
            max_output=max_output,
            on_output=on_output,
        )

    async def spawn(
        self,
        command: str | Sequence[str],
        *,
        cwd: str | None = None,
        env: Mapping[str, str] | None = None,
        user: str | None = None,
    ) -> Process:
        """See `Sandbox.spawn`."""
        return await (await self._use()).spawn(command, cwd=cwd, env=env, user=user)

    async def read(self, path: str, *, max_bytes: int = DEFAULT_FILE_BYTES) -> bytes | None:
        """See `Sandbox.read`."""
        return await (await self._use()).read(path, max_bytes=max_bytes)

    async def write(self, path: str, data: bytes, *, mode: int = 0o644) -> None:
        """See `Sandbox.write`."""
        await (await self._use()).write(path, data, mode=mode)

    async def upload(self, source: Path, target: str) -> None:
        """See `Sandbox.upload`."""
        await (await self._use()).upload(source, target)

    async def download(
        self,
        source: str,
        target: Path,
        *,
        max_bytes: int = DEFAULT_TREE_BYTES,
        max_files: int = DEFAULT_TREE_FILES,
    ) -> None:
        """See `Sandbox.download`."""
        await (await self._use()).download(source, target, max_bytes=max_bytes, max_files=max_files)

    async def changes(self, root: str, *, max_bytes: int = DEFAULT_FILE_BYTES) -> Changes:
        """See `Sandbox.changes`."""
        return await (await self._use()).changes(root, max_bytes=max_bytes)

    async def snapshot(self) -> Image:
        """See `Sandbox.snapshot`."""
        return await (await self._use()).snapshot()

    async def stats(self) -> SandboxStats:
        """See `Sandbox.stats`; all zero as long as nothing has needed one."""
        return await (await self._use()).stats() if self._opened() else SandboxStats(0.0)
