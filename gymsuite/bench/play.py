"""Plays the workload over a provider: one episode, a level of many at once, all levels."""

import asyncio
import itertools
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import NamedTuple

from gymsuite.bench.report import Episode, Level
from gymsuite.bench.workload import Read, Run, Runner, Step, Variant, Write, episode
from gymsuite.errors import InfrastructureError, SandboxError, UsageError
from gymsuite.sandbox.protocol import OpenSandbox, Sandbox
from gymsuite.types import SandboxSpec

_STEP_SECONDS = 120.0
_SHOWN = 300

Told = Callable[[int, float, int], None]
"""Told of a level while it goes on: how many at once, what share of it is over, and how many
episodes have ended."""


Play = Callable[[int], Awaitable[Episode]]
"""Plays the episode of a seed; raises `InfrastructureError`."""


class Length(NamedTuple):
    """How long a level takes: so many episodes, or so many seconds where there are none."""

    seconds: float
    episodes: int | None

    def share(self, seconds: float, episodes: int) -> float:
        """How much of a level is over."""
        return seconds / self.seconds if self.episodes is None else episodes / self.episodes


async def variant(
    open_sandbox: OpenSandbox, spec: SandboxSpec, tests: Runner | None
) -> tuple[Variant, dict[str, object]]:
    """Find what an image can do, and what its sandboxes are; None takes pytest where it is.

    Raises `UsageError` for an image without Python, and without the test runner that is wanted.
    """
    async with open_sandbox(spec) as sandbox:

        async def has(command: str) -> bool:
            return (await sandbox.exec(command, timeout=_STEP_SECONDS)).exit_code == 0

        if not await has("python3 --version"):
            raise _lacks(spec, "no python3")
        pytest = tests != "unittest" and await has("python3 -c 'import pytest'")
        if tests == "pytest" and not pytest:
            raise _lacks(spec, "no pytest")
        runner: Runner = "pytest" if pytest else "unittest"
        return Variant(await has("git --version"), runner), dict(sandbox.description)


def _lacks(spec: SandboxSpec, what: str) -> UsageError:
    return UsageError(f"image {spec.image!r} has {what}: name another by --image")


async def play_level(
    play: Play, concurrency: int, length: Length, seeds: "itertools.count[int]", told: Told
) -> Level:
    """Keep so many episodes going at once, until there were enough; failures are counted apart."""
    episodes: list[Episode] = []
    failures: list[str] = []
    started, cpu = time.monotonic(), time.process_time()
    left = itertools.count()

    def wanted() -> bool:
        if length.episodes is not None:
            return next(left) < length.episodes
        return time.monotonic() - started < length.seconds

    async def slot() -> None:
        while wanted():
            try:
                episodes.append(await play(next(seeds)))
            except InfrastructureError as error:
                failures.append(str(error))
            ended = len(episodes) + len(failures)
            told(concurrency, length.share(time.monotonic() - started, ended), ended)

    async with asyncio.TaskGroup() as group:
        for _ in range(concurrency):
            group.create_task(slot())
    return Level(
        concurrency=concurrency,
        wall_seconds=time.monotonic() - started,
        suite_cpu_seconds=time.process_time() - cpu,
        episodes=tuple(episodes),
        failures=tuple(failures),
    )


async def play_levels(
    play: Play, levels: Sequence[int], length: Length, seed: int, told: Told
) -> AsyncIterator[Level]:
    """Play the levels one after the other; every episode has another seed."""
    seeds = itertools.count(seed)
    for at in levels:
        yield await play_level(play, at, length, seeds, told)


async def play_episode(
    open_sandbox: OpenSandbox, spec: SandboxSpec, variant: Variant, seed: int
) -> Episode:
    """Play one episode. Raises `InfrastructureError` where a step goes wrong."""
    seconds: dict[str, float] = {}
    began = last = time.monotonic()

    def lap(kind: str) -> None:
        nonlocal last
        now = time.monotonic()
        seconds[kind] = seconds.get(kind, 0.0) + now - last
        last = now

    async with open_sandbox(spec) as sandbox:
        lap("create")
        for step in episode(seed, variant):
            await _do(sandbox, step, seed)
            lap(step.kind)
        stats = await sandbox.stats()
        last = time.monotonic()
    lap("destroy")
    return Episode(
        seed=seed,
        wall_seconds=last - began,
        cpu_seconds=stats.cpu_seconds,
        seconds=seconds,
    )


async def _do(sandbox: Sandbox, step: Step, seed: int) -> None:
    match step.act:
        case Write(path, data):
            await sandbox.write(path, data)
            if await sandbox.read(path) != data:
                raise _wrong(seed, f"{path} is not what was written there")
        case Read(path):
            if not await sandbox.read(path):
                raise _wrong(seed, f"{path} cannot be read")
        case Run(command):
            done = await sandbox.exec(command, timeout=_STEP_SECONDS)
            if done.exit_code != 0:
                why = "timed out" if done.timed_out else f"exit {done.exit_code}"
                raise _wrong(seed, f"{command!r}: {why}: {done.output[-_SHOWN:]}")


def _wrong(seed: int, what: str) -> SandboxError:
    return SandboxError(f"episode {seed}: {what}", retryable=False)
