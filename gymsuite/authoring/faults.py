"""Ways to break the world on purpose: none of them may ever become a score."""

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import dataclass

from gymsuite.sandbox.forward import ForwardingSandbox
from gymsuite.sandbox.protocol import OpenSandbox, Sandbox
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

            left = after

            async def use() -> Sandbox:
                nonlocal left
                if left <= 0:
                    await kill()
                left -= 1
                return sandbox

            yield ForwardingSandbox(use, lambda: sandbox)

    return open_dying
