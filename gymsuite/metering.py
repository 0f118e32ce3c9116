"""What an episode spends, model calls excepted: time by stage, its sandbox and its verifier's."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass

from gymsuite.errors import InfrastructureError, SandboxDead
from gymsuite.sandbox.protocol import OpenSandbox, Sandbox, SandboxStats
from gymsuite.types import SandboxSpec, Usage

_READ_SECONDS = 5.0


@dataclass
class Meter:
    """Adds up; `sandbox` is what the episode's own came to, once that was read."""

    queue_seconds: float = 0.0
    reset_seconds: float = 0.0
    tool_seconds: float = 0.0
    verify_seconds: float = 0.0
    verifier_cpu_seconds: float = 0.0
    sandbox: SandboxStats | None = None

    @property
    def usage(self) -> Usage:
        """The sums so far."""
        sandbox = self.sandbox or SandboxStats(0.0)
        return Usage(
            sandbox_cpu_seconds=sandbox.cpu_seconds,
            sandbox_peak_bytes=sandbox.peak_memory_bytes or 0,
            verifier_cpu_seconds=self.verifier_cpu_seconds,
            queue_seconds=self.queue_seconds,
            reset_seconds=self.reset_seconds,
            tool_seconds=self.tool_seconds,
            verify_seconds=self.verify_seconds,
        )

    async def read(self, sandbox: Sandbox) -> None:
        """Read what the episode's sandbox used before it goes: a failed one was paid for, too."""
        if self.sandbox is None:
            with suppress(InfrastructureError, TimeoutError):
                async with asyncio.timeout(_READ_SECONDS):
                    self.sandbox = await sandbox.stats()

    def verifiers(self, open_sandbox: OpenSandbox) -> OpenSandbox:
        """Opens sandboxes for a verifier, and adds what they used."""

        @asynccontextmanager
        async def metered(spec: SandboxSpec) -> AsyncIterator[Sandbox]:
            async with open_sandbox(spec) as sandbox:
                try:
                    yield sandbox
                finally:
                    with suppress(SandboxDead):  # it has no meter; its user reports the death
                        self.verifier_cpu_seconds += (await sandbox.stats()).cpu_seconds

        return metered
