"""What gymsuite's own sandboxes take, of any provider."""

import asyncio
import os
import shutil
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from typing import NamedTuple

from sandboxes_processes import CpuMeter, descendants, groups_of, kernel_bytes, pss_bytes

from gymsuite import OpenSandbox, Sandbox, SandboxSpec

SPEC = SandboxSpec(image="base")
_TRUE = ("true",)
_WRITTEN = os.urandom(100_000)
_CHANGED_MEGABYTES = 200
_OPENING = 64
_SETTLE_SECONDS = 2.0


class Cost(NamedTuple):
    """Wall times of single operations, and the CPU-milliseconds that one took on average."""

    seconds: list[float]
    cpu_ms: float


async def repeated(count: int, work: Callable[[], Awaitable[object]]) -> Cost:
    """Time some work, again and again."""
    times = []
    meter = CpuMeter()
    for _ in range(count):
        started = time.perf_counter()
        await work()
        times.append(time.perf_counter() - started)
    return Cost(times, meter.seconds() * 1000 / count)


async def create(
    open_sandbox: OpenSandbox,
    count: int,
    spec: SandboxSpec = SPEC,
    *,
    pause_seconds: float = 0.0,
) -> Cost:
    """From asking for a sandbox to the end of its first command; its removal is not timed."""
    times = []
    meter = CpuMeter()
    for _ in range(count):
        await asyncio.sleep(pause_seconds)
        started = time.perf_counter()
        async with open_sandbox(spec) as sandbox:
            await sandbox.exec(_TRUE, timeout=60)
            times.append(time.perf_counter() - started)
    return Cost(times, meter.seconds() * 1000 / count)


@asynccontextmanager
async def _settled(open_sandbox: OpenSandbox) -> AsyncIterator[Sandbox]:
    """Open a sandbox; a pool that hands one out makes another, and has the processors to itself."""
    async with open_sandbox(SPEC) as sandbox:
        await sandbox.exec(_TRUE, timeout=60)
        await asyncio.sleep(_SETTLE_SECONDS)
        yield sandbox


async def execs(open_sandbox: OpenSandbox, count: int) -> Cost:
    """Single commands, one after the other."""
    async with _settled(open_sandbox) as sandbox:
        return await repeated(count, lambda: sandbox.exec(_TRUE, timeout=60))


def bare(count: int) -> list[float]:
    """The same command without a sandbox: no exec server can be quicker, whatever it does."""
    program, times = shutil.which("true") or "/bin/true", []
    for _ in range(count):
        started = time.perf_counter()
        os.waitpid(os.posix_spawn(program, _TRUE, {}), 0)
        times.append(time.perf_counter() - started)
    return times


async def hundred(open_sandbox: OpenSandbox, count: int) -> Cost:
    """A hundred short commands, as one operation."""
    async with _settled(open_sandbox) as sandbox:

        async def all_of_them() -> None:
            for _ in range(100):
                await sandbox.exec(_TRUE, timeout=60)

        return await repeated(count, all_of_them)


async def writes(open_sandbox: OpenSandbox, count: int) -> Cost:
    """A file of 100 KB."""
    async with _settled(open_sandbox) as sandbox:
        return await repeated(count, lambda: sandbox.write("written", _WRITTEN))


async def per_second(open_sandbox: OpenSandbox, at_once: int, count: int) -> tuple[float, float]:
    """Sandboxes made and removed a second, so many at once, and the CPU-milliseconds of each."""
    left = iter(range(count))

    async def slot() -> None:
        for _ in left:
            async with open_sandbox(SPEC):
                pass

    meter, started = CpuMeter(), time.perf_counter()
    await asyncio.gather(*(slot() for _ in range(at_once)))
    seconds = time.perf_counter() - started
    return count / seconds, meter.seconds() * 1000 / count


async def forks(open_sandbox: OpenSandbox, count: int) -> tuple[Cost, float]:
    """Sandboxes started from one that has changed 200 MB, and the seconds of its snapshot."""
    spec = SPEC.model_copy(update={"memory_bytes": 4 << 30})
    async with open_sandbox(spec) as parent:
        megabytes = f"dd if=/dev/zero of=big bs=1M count={_CHANGED_MEGABYTES}"
        done = await parent.exec(megabytes, timeout=120)
        if done.exit_code != 0:
            raise RuntimeError(done.output)
        started = time.perf_counter()
        image = await parent.snapshot()
        seconds = time.perf_counter() - started
        child = spec.model_copy(update={"image": image.name})
        return await create(open_sandbox, count, child), seconds


class Idle(NamedTuple):
    """Many sandboxes that do nothing: what each takes, who answered, and what was left after."""

    process_bytes: float
    kernel_bytes: float
    answered: int
    open_seconds: float
    left: int


async def idle(open_sandbox: OpenSandbox, count: int, weighed: int) -> Idle:
    """Open many, weigh the first of them, have each answer, close all, and count what is left."""
    before = descendants(os.getpid())
    gate = asyncio.Semaphore(_OPENING)
    async with AsyncExitStack() as stack:

        async def one() -> object:
            async with gate:
                return await stack.enter_async_context(open_sandbox(SPEC))

        started = time.perf_counter()
        sandboxes = list(await asyncio.gather(*(one() for _ in range(weighed))))
        groups = groups_of(os.getpid())
        kernel = kernel_bytes(groups) / max(len(groups), 1)
        processes = pss_bytes(descendants(os.getpid()) - before) / weighed
        sandboxes += await asyncio.gather(*(one() for _ in range(count - weighed)))
        seconds = time.perf_counter() - started
        results = await asyncio.gather(*(_answer(gate, sandbox) for sandbox in sandboxes))
    kept = [pid for pid in descendants(os.getpid()) - before if _is_sandbox(pid)]
    left = len(kept) + max(0, len(groups_of(os.getpid())) - 1)
    return Idle(processes, kernel, sum(results), seconds, left)


async def _answer(gate: asyncio.Semaphore, sandbox: object) -> bool:
    async with gate:
        done = await sandbox.exec("echo here", timeout=60)  # type: ignore[attr-defined]
        return bool(done.stdout == b"here\n")


def _is_sandbox(pid: int) -> bool:
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as file:  # noqa: PTH123 - it may go at any moment
            return b"/dev/.exec" in file.read()
    except OSError:
        return False
