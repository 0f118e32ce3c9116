"""What a sandbox costs here, beside `docker exec` and `docker run` on the same machine."""

import asyncio
import os
import platform
import statistics
import sys
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

import docker

from gymsuite import OpenSandbox, Registry, SandboxError, SandboxSpec, open_provider
from gymsuite.suite import default_cache

SPEC = SandboxSpec(image="base")
EXECS, CREATES, CONCURRENT, PEER_RUNS = 200, 30, 64, 10


async def exec_times(open_sandbox: OpenSandbox) -> list[float]:
    """Milliseconds of single `true` commands, one after the other, in one sandbox."""
    times = []
    async with open_sandbox(SPEC) as sandbox:
        for _ in range(EXECS):
            started = time.perf_counter()
            await sandbox.exec(["true"], timeout=10)
            times.append((time.perf_counter() - started) * 1000)
    return times


async def create_times(open_sandbox: OpenSandbox) -> list[float]:
    """Milliseconds from asking for a sandbox to the end of its first command."""
    times = []
    for _ in range(CREATES):
        started = time.perf_counter()
        async with open_sandbox(SPEC) as sandbox:
            await sandbox.exec(["true"], timeout=10)
            times.append((time.perf_counter() - started) * 1000)
    return times


async def creations_per_second(open_sandbox: OpenSandbox) -> float:
    """Sandboxes made, used once and removed a second, many at a time."""

    async def one() -> None:
        async with open_sandbox(SPEC) as sandbox:
            await sandbox.exec(["true"], timeout=60)

    started = time.perf_counter()
    await asyncio.gather(*(one() for _ in range(CONCURRENT)))
    return CONCURRENT / (time.perf_counter() - started)


def peer_times() -> tuple[list[float], list[float]]:
    """Milliseconds of `docker run` until the container runs, and of `docker exec true` in it."""
    client = docker.from_env()
    image = client.images.list(name="gymsuite/base")[0]
    runs, execs = [], []
    for _ in range(PEER_RUNS):
        started = time.perf_counter()
        container = client.containers.run(
            image, ["sleep", "1000"], detach=True, network_mode="none"
        )
        try:
            container.exec_run(["true"])
            runs.append((time.perf_counter() - started) * 1000)
            started = time.perf_counter()
            container.exec_run(["true"])
            execs.append((time.perf_counter() - started) * 1000)
        finally:
            container.remove(force=True, v=True)
    return runs, execs


def show(what: str, times: list[float], peer: list[float] | None = None) -> None:
    """Print the median and the 95th percentile, and the ratio to a peer's median."""
    ordered = sorted(times)
    p95 = ordered[min(len(ordered) - 1, int(len(ordered) * 0.95))]
    ratio = f"  {statistics.median(peer) / statistics.median(times):6.0f}x faster" if peer else ""
    print(f"{what:44} median {statistics.median(times):8.2f} ms  p95 {p95:8.2f} ms{ratio}")


async def measure(
    name: str, then: Callable[[OpenSandbox], Awaitable[None]], roots: tuple[Path, ...]
) -> None:
    """Run one part with a provider, or say why this machine has none."""
    try:
        async with open_provider(name, image_roots=roots, cache=default_cache()) as provider:
            await provider.ensure("base")
            await then(provider.open)
    except SandboxError as error:
        print(f"{name}: skipped: {error}", file=sys.stderr)


def main() -> None:
    """Print the table."""
    roots = Registry.default().image_roots
    print(f"{platform.platform()}, {os.cpu_count()} cores, Python {platform.python_version()}")
    peer_run: list[float] = []
    peer_exec: list[float] = []

    async def with_docker(open_sandbox: OpenSandbox) -> None:
        runs, execs = await asyncio.to_thread(peer_times)
        peer_run.extend(runs)
        peer_exec.extend(execs)
        show("docker run + docker exec true (peer)", peer_run)
        show("docker exec true (peer)", peer_exec)
        show("docker provider: create to first exec", await create_times(open_sandbox), peer_run)
        show("docker provider: exec true", await exec_times(open_sandbox), peer_exec)

    async def with_local(open_sandbox: OpenSandbox) -> None:
        show("local provider: create to first exec", await create_times(open_sandbox), peer_run)
        show("local provider: exec true", await exec_times(open_sandbox), peer_exec)
        rate = await creations_per_second(open_sandbox)
        print(f"{f'local provider: {CONCURRENT} at once':44} {rate:.0f} sandboxes/s")

    asyncio.run(measure("docker", with_docker, roots))
    asyncio.run(measure("local", with_local, roots))


if __name__ == "__main__":
    main()
