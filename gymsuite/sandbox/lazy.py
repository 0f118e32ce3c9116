"""A sandbox that opens on first need, so that an episode whose tools need none opens none."""

from collections.abc import Awaitable, Callable

from gymsuite.sandbox.forward import ForwardingSandbox
from gymsuite.sandbox.protocol import Sandbox


def lazy_sandbox(opener: Callable[[], Awaitable[Sandbox]]) -> ForwardingSandbox:
    """Forward every verb to the sandbox that `opener` opens once, when the first verb comes.

    `opener` runs at most one time, also when it fails: its error is raised again by every verb.
    """
    once = _Once(opener)
    return ForwardingSandbox(once.get, lambda: once.opened)


class _Once:
    """What one call has made, or how it failed."""

    def __init__(self, opener: Callable[[], Awaitable[Sandbox]]) -> None:
        self._opener = opener
        self._error: Exception | None = None
        self.opened: Sandbox | None = None

    async def get(self) -> Sandbox:
        if self._error:
            raise self._error
        if self.opened is None:
            try:
                self.opened = await self._opener()
            except Exception as error:
                self._error = error
                raise
        return self.opened
