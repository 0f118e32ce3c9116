"""The promises of one environment, checked from its first sandbox to the last trace of one."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path

from gymsuite.authoring.gating import gate_opens, plays_the_same
from gymsuite.authoring.promises import KEPT, PROMISES, Case, Outcome, Verdict, steps
from gymsuite.authoring.traces import traces
from gymsuite.environment import Environment
from gymsuite.errors import InfrastructureError
from gymsuite.gym import check_gymnasium
from gymsuite.portal import LazyProvider
from gymsuite.runs.plan import Choice, foreword, make_plan
from gymsuite.runs.sandboxes import SandboxSource, images_of, open_sandboxes
from gymsuite.types import Model
from gymsuite.worlds.replay import Source

_POLLS = 100
_POLL_SECONDS = 0.05


class Finding(Model):
    """Whether one promise holds; `details` say why not."""

    promise: str
    outcome: Outcome
    details: str
    seconds: float


@dataclass(frozen=True)
class Watcher:
    """Hears of images being built, of how many steps there are, of each step and finding."""

    note: Callable[[str], None] = lambda _: None
    begin: Callable[[int], None] = lambda _: None
    tick: Callable[[], None] = lambda: None
    found: Callable[[Finding], None] = lambda _: None


@dataclass(frozen=True)
class CheckRequest:
    """How many tasks to check (None: all), how many at once, and where sandboxes come from.

    `registry` is the registry.yaml of the environment; without it tasks are not replayed in other
    processes.
    """

    sandboxes: SandboxSource
    count: int | None = None
    concurrency: int = 4
    registry: Path | None = None


async def check_environment(
    environment: Environment, request: CheckRequest, watcher: Watcher
) -> list[Finding]:
    """Check every promise; the findings are in the order of `PROMISES`, then two more.

    Where the environment has a gate, what that says of the tasks stands before those two.

    Raises what opening the provider and building the images raises.
    """
    choice = Choice(request.count)
    for line in foreword([environment], choice):
        watcher.note(line)
    tasks = make_plan([environment], choice).tasks[environment.id]
    source = request.sandboxes
    gate = environment.gate
    watcher.begin(steps(len(tasks)) + 2 + (len(tasks) if gate else 0))
    findings = []

    async def look(promise: str, work: Awaitable[Verdict]) -> None:
        started = time.monotonic()
        verdict = await work
        finding = Finding(
            promise=promise,
            outcome=verdict.outcome,
            details=verdict.details,
            seconds=time.monotonic() - started,
        )
        findings.append(finding)
        watcher.found(finding)

    async with open_sandboxes(
        source, sorted(images_of(environment, tasks)), watcher.note
    ) as opened:
        before = await traces(source.cache, opened.provider)
        case = Case(environment, tasks, opened.open, request.concurrency, watcher.tick)
        for promise, check in PROMISES.items():
            await look(promise, check(case))
        if gate is not None:
            await look("the task gate finds no fault", gate_opens(case, gate))
        if gate is not None and request.registry is not None:
            place = Source(request.registry, environment.id, source.provider, source.cache)
            replayed = plays_the_same(environment, tasks, place)
            await look("tasks play the same in other processes and places", replayed)
        await look("Gymnasium's check_env passes", _gymnasium(environment, source, watcher))
        left = _left(before, source.cache, opened.provider, watcher)
        await look("nothing is left behind", left)
    return findings


async def _gymnasium(environment: Environment, source: SandboxSource, watcher: Watcher) -> Verdict:
    provider = LazyProvider(source.provider, image_roots=source.image_roots, cache=source.cache)
    try:
        await asyncio.to_thread(check_gymnasium, environment, provider)
    except InfrastructureError as error:
        return Verdict("unknown", str(error))
    except Exception as error:  # noqa: BLE001 - check_env raises whatever it finds wrong
        return Verdict("broken", f"{type(error).__name__}: {error}")
    finally:
        watcher.tick()
    return KEPT


async def _left(before: set[str], cache: Path, provider: str, watcher: Watcher) -> Verdict:
    """What is still there after the last sandbox was closed; the kernel may take a moment."""
    for _ in range(_POLLS):
        left = await traces(cache, provider) - before
        if not left:
            break
        await asyncio.sleep(_POLL_SECONDS)
    watcher.tick()
    return Verdict("broken", "; ".join(sorted(left))) if left else KEPT
