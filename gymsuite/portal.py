"""The async core for callers without an event loop: a loop on a thread of its own.

A provider is opened there when the first sandbox is wanted, so that an environment that needs none
also runs where there can be none.
"""

import asyncio
import concurrent.futures.thread  # noqa: F401 - see at_exit
import threading
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from concurrent.futures import Future
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any, TypeVar

from gymsuite.sandbox.protocol import Sandbox
from gymsuite.sandbox.provider import Provider, open_provider
from gymsuite.types import SandboxSpec

T = TypeVar("T")


def at_exit(callback: Callable[[], object]) -> None:
    """Run the callback when the interpreter exits, while threads and loops can still be used.

    Callbacks of `atexit` come after `concurrent.futures` has closed its executors for good, and
    removing a sandbox needs one. This hook is the one that `concurrent.futures` itself uses; the
    last one registered runs first, so its module has to be imported before.
    """
    threading._register_atexit(callback)  # type: ignore[attr-defined]  # noqa: SLF001 - no public one


class Portal:
    """An event loop on a daemon thread; any other thread may call it."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()

    def call(self, work: Coroutine[Any, Any, T]) -> T:
        """Run the coroutine on the loop and wait for what it returns or raises."""
        future = self.send(work)
        try:
            return future.result()
        except KeyboardInterrupt:
            future.cancel()
            raise

    def send(self, work: Coroutine[Any, Any, T]) -> Future[T]:
        """Run the coroutine on the loop without waiting, which the loop's own thread may do too."""
        return asyncio.run_coroutine_threadsafe(work, self._loop)

    def close(self) -> None:
        """End the loop and its thread."""
        self.call(self._loop.shutdown_default_executor())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


class LazyProvider:
    """Opens sandboxes of a provider that is itself opened for the first of them."""

    def __init__(self, name: str | None, *, image_roots: Sequence[Path], cache: Path) -> None:
        self._name = name
        self._image_roots = image_roots
        self._cache = cache
        self._stack = AsyncExitStack()
        self._lock = asyncio.Lock()
        self._provider: Provider | None = None

    @asynccontextmanager
    async def open(self, spec: SandboxSpec) -> AsyncIterator[Sandbox]:
        """See `OpenSandbox`."""
        provider = await self._opened()
        async with provider.open(spec) as sandbox:
            yield sandbox

    async def aclose(self) -> None:
        """Close the provider, if it was opened."""
        self._provider = None
        await self._stack.aclose()

    async def _opened(self) -> Provider:
        async with self._lock:
            if self._provider is None:
                self._provider = await self._stack.enter_async_context(
                    open_provider(self._name, image_roots=self._image_roots, cache=self._cache)
                )
            return self._provider
