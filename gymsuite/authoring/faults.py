"""Ways to break the world on purpose: none of them may ever become a score."""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import dataclass

from gymsuite.sandbox.protocol import (
    DEFAULT_FILE_BYTES,
    DEFAULT_OUTPUT_BYTES,
    Changes,
    ExecResult,
    OpenSandbox,
    Sandbox,
    SandboxStats,
)
from gymsuite.types import SandboxSpec

_NO_IMAGE = "no-such-image"


@dataclass
class Toll:
    """How often a fault has struck: a fault that never did proves nothing."""

    struck: int = 0


def without_image(open_sandbox: OpenSandbox, toll: Toll) -> OpenSandbox:
    """Opens sandboxes from an image that does not exist."""

    def open_broken(spec: SandboxSpec) -> AbstractAsyncContextManager[Sandbox]:
        toll.struck += 1
        return open_sandbox(spec.model_copy(update={"image": _NO_IMAGE}))

    return open_broken


def dying(open_sandbox: OpenSandbox, toll: Toll, *, after: int) -> OpenSandbox:
    """Opens sandboxes that are killed and removed after so many uses, and then used once more."""

    @asynccontextmanager
    async def open_dying(spec: SandboxSpec) -> AsyncIterator[Sandbox]:
        async with AsyncExitStack() as stack:
            sandbox = await stack.enter_async_context(open_sandbox(spec))

            async def kill() -> None:
                toll.struck += 1
                await stack.aclose()

            yield DyingSandbox(sandbox, kill, after)

    return open_dying


class DyingSandbox:
    """Forwards each verb to a sandbox that is gone after so many of them."""

    def __init__(
        self, sandbox: Sandbox, kill: Callable[[], Awaitable[None]], uses_left: int
    ) -> None:
        self._sandbox = sandbox
        self._kill = kill
        self._uses_left = uses_left

    @property
    def description(self) -> Mapping[str, object]:
        """See `Sandbox.description`."""
        return self._sandbox.description

    async def _use(self) -> Sandbox:
        if self._uses_left <= 0:
            await self._kill()
        self._uses_left -= 1
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
        sandbox = await self._use()
        return await sandbox.exec(
            command, timeout=timeout, stdin=stdin, cwd=cwd, env=env, max_output=max_output
        )

    async def read(self, path: str, *, max_bytes: int = DEFAULT_FILE_BYTES) -> bytes | None:
        """See `Sandbox.read`."""
        return await (await self._use()).read(path, max_bytes=max_bytes)

    async def write(self, path: str, data: bytes, *, mode: int = 0o644) -> None:
        """See `Sandbox.write`."""
        await (await self._use()).write(path, data, mode=mode)

    async def changes(self, root: str, *, max_bytes: int = DEFAULT_FILE_BYTES) -> Changes:
        """See `Sandbox.changes`."""
        return await (await self._use()).changes(root, max_bytes=max_bytes)

    async def stats(self) -> SandboxStats:
        """See `Sandbox.stats`."""
        return await (await self._use()).stats()
