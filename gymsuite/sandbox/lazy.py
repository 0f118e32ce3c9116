"""A sandbox that opens on first need, so that an episode whose tools need none opens none."""

from collections.abc import Awaitable, Callable, Mapping, Sequence

from gymsuite.sandbox.protocol import (
    DEFAULT_FILE_BYTES,
    DEFAULT_OUTPUT_BYTES,
    Changes,
    ExecResult,
    Sandbox,
    SandboxStats,
)


class LazySandbox:
    """Forwards every verb to the sandbox that `opener` opens once, when the first verb comes.

    `opener` runs at most one time, also when it fails: its error is raised again by every verb.
    """

    def __init__(self, opener: Callable[[], Awaitable[Sandbox]]) -> None:
        self._opener = opener
        self._sandbox: Sandbox | None = None
        self._error: Exception | None = None

    @property
    def opened(self) -> Sandbox | None:
        """The sandbox behind it, or None as long as nothing has needed one."""
        return self._sandbox

    @property
    def description(self) -> Mapping[str, object]:
        """What the sandbox is; empty as long as nothing has needed one."""
        return self._sandbox.description if self._sandbox else {}

    async def _open(self) -> Sandbox:
        if self._error:
            raise self._error
        if self._sandbox is None:
            try:
                self._sandbox = await self._opener()
            except Exception as error:
                self._error = error
                raise
        return self._sandbox

    async def exec(  # noqa: PLR0913 - see Sandbox.exec
        self,
        command: str | Sequence[str],
        *,
        timeout: float,
        stdin: bytes = b"",
        cwd: str | None = None,
        env: Mapping[str, str] | None = None,
        max_output: int = DEFAULT_OUTPUT_BYTES,
    ) -> ExecResult:
        """See `Sandbox.exec`."""
        sandbox = await self._open()
        return await sandbox.exec(
            command, timeout=timeout, stdin=stdin, cwd=cwd, env=env, max_output=max_output
        )

    async def read(self, path: str, *, max_bytes: int = DEFAULT_FILE_BYTES) -> bytes | None:
        """See `Sandbox.read`."""
        return await (await self._open()).read(path, max_bytes=max_bytes)

    async def write(self, path: str, data: bytes, *, mode: int = 0o644) -> None:
        """See `Sandbox.write`."""
        await (await self._open()).write(path, data, mode=mode)

    async def changes(self, root: str, *, max_bytes: int = DEFAULT_FILE_BYTES) -> Changes:
        """See `Sandbox.changes`."""
        return await (await self._open()).changes(root, max_bytes=max_bytes)

    async def stats(self) -> SandboxStats:
        """See `Sandbox.stats`; all zero as long as nothing has needed one."""
        return await self._sandbox.stats() if self._sandbox else SandboxStats(0.0)
