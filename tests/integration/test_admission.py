"""Real sandboxes wait for their turn: one admission over a provider."""

import asyncio

import pytest

from gymsuite import SandboxSpec
from gymsuite.registry import Registry
from gymsuite.sandbox.admission import Admission
from gymsuite.sandbox.provider import Provider, open_provider
from gymsuite.suite import default_cache

SPEC = SandboxSpec(image="base")


async def crowd(provider: Provider, size: int) -> tuple[list[str], int, int]:
    """So many at once: what each says, and how many were open and queued at most."""
    running = queued = 0

    async def one(number: int) -> str:
        nonlocal running, queued
        async with provider.open(SPEC) as sandbox:
            counters = provider.counters()
            running, queued = max(running, counters.running), max(queued, counters.queued)
            return (await sandbox.exec(f"echo {number}", timeout=60)).output.strip()

    said = await asyncio.gather(*(one(number) for number in range(size)))
    return list(said), running, queued


@pytest.mark.parametrize(
    "name",
    [
        pytest.param("local", marks=pytest.mark.local),
        pytest.param("docker", marks=pytest.mark.docker),
    ],
)
def test_more_sandboxes_than_fit_take_turns(name: str) -> None:
    async def run() -> tuple[list[str], int, int]:
        roots = Registry.default().image_roots
        async with open_provider(
            name,
            image_roots=roots,
            cache=default_cache(),
            admission=Admission(processors=2 / 32),
        ) as provider:
            await provider.ensure("base")
            result = await crowd(provider, 12)
            assert provider.counters().running == 0
            return result

    said, running, queued = asyncio.run(run())
    assert said == [str(number) for number in range(12)]
    # A machine that stood still for want of memory a moment ago lets in one at a time.
    assert 1 <= running <= 2
    assert queued >= 8
