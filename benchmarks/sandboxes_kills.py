"""Kills controllers with SIGKILL at random moments, and counts what stays of their sandboxes.

Run as a process of its own, which adopts what a killed controller leaves: whatever descends from it
then is a leftover.
"""

import asyncio
import contextlib
import ctypes
import json
import os
import random
import signal
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from sandboxes_processes import descendants

from gymsuite import Registry, SandboxSpec
from gymsuite.sandbox.admission import Admission
from gymsuite.sandbox.hierarchies import find
from gymsuite.sandbox.leftovers import reap_all
from gymsuite.sandbox.owner import start_time
from gymsuite.sandbox.provider import open_provider
from gymsuite.suite import default_cache

_PR_SET_CHILD_SUBREAPER = 36
_SPEC = SandboxSpec(image="base")
_BUSY = 4
_LATEST = {"local": 0.6, "docker": 3.0}
_PATIENCE = 10.0
_IN_FLIGHT = 1.0


class Trials(NamedTuple):
    """How often a controller was killed, and what was left of each kind, over all trials.

    `slowest_ms` is how long the last of it took to go.
    """

    trials: int
    processes: int
    mounts: int
    directories: int
    cgroups: int
    containers: int
    slowest_ms: float


async def _control(name: str, cache: Path) -> None:
    """Open, use and close sandboxes for ever, a few at a time."""
    roots = Registry.default().image_roots
    async with open_provider(
        name, image_roots=roots, cache=cache, admission=Admission.unlimited()
    ) as provider:

        async def slot() -> None:
            while True:
                async with provider.open(_SPEC) as sandbox:
                    for _ in range(3):
                        await sandbox.exec("sleep 60 & echo x > f; sleep 0.01", timeout=60)

        await asyncio.gather(*(slot() for _ in range(_BUSY)))


def _fork(name: str, cache: Path) -> int:
    pid = os.fork()
    if pid == 0:
        with contextlib.suppress(BaseException):
            # Nothing that is killed has anything to say.
            os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
            asyncio.run(_control(name, cache))
        os._exit(1)
    return pid


def run_local(count: int, seed: int) -> Trials:
    """Kill controllers of local sandboxes, and look at once."""
    rng = random.Random(seed)
    totals = dict.fromkeys(("processes", "mounts", "directories", "cgroups"), 0)
    slowest = 0.0
    with tempfile.TemporaryDirectory() as folder:
        cache = Path(folder)
        mounts = _mounts()
        for _ in range(count):
            pid = _fork("local", cache)
            time.sleep(rng.uniform(0.0, _LATEST["local"]))
            os.kill(pid, signal.SIGKILL)
            killed = time.perf_counter()
            os.waitpid(pid, 0)
            gone = _wait(lambda: not _living())
            cgroups = _wait(lambda p=pid: not _groups(p))  # type: ignore[misc]
            if gone and cgroups:
                slowest = max(slowest, time.perf_counter() - killed)
            totals["processes"] += len(_living())
            totals["cgroups"] += len(_groups(pid))
            totals["mounts"] += len(_mounts() - mounts)
            totals["directories"] += len([*cache.glob("live/*")])
    return Trials(count, containers=0, slowest_ms=slowest * 1000, **totals)


def run_docker(count: int, seed: int) -> Trials:
    """Kill controllers of containers, reap once at once, and look after what comes later, too."""
    rng = random.Random(seed)
    containers = 0
    slowest = 0.0
    for _ in range(count):
        pid = _fork("docker", default_cache())
        owner = f"/{pid}/{start_time(pid)}"
        time.sleep(rng.uniform(0.0, _LATEST["docker"]))
        os.kill(pid, signal.SIGKILL)
        killed = time.perf_counter()
        os.waitpid(pid, 0)
        asyncio.run(reap_all(default_cache(), dry_run=False))
        slowest = max(slowest, time.perf_counter() - killed)
        # The Engine still makes what it was asked for when its client died.
        time.sleep(_IN_FLIGHT)
        containers += asyncio.run(_containers_of(owner))
    return Trials(count, 0, 0, 0, 0, containers, slowest * 1000)


async def _containers_of(owner: str) -> int:
    from gymsuite.sandbox import docker, reaper  # noqa: PLC0415 - slow, and only for docker

    async with docker.connect() as engine:
        found = await engine.containers(reaper.OWNER_LABEL)
    return sum(c.labels[reaper.OWNER_LABEL].endswith(owner) for c in found)


def _living() -> set[int]:
    """What descends from this process and is no zombie; zombies are waited for."""
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    return descendants(os.getpid())


def _mounts() -> set[str]:
    """Every mount of this machine but Docker's, which come and go with others' containers."""
    lines = Path("/proc/self/mountinfo").read_text().splitlines()
    return {line for line in lines if "docker" not in line}


def _groups(pid: int) -> list[Path]:
    return [group for parent in find().parents for group in parent.glob(f"gymsuite-*-{pid}-*")]


def _wait(done: Callable[[], bool]) -> bool:
    end = time.perf_counter() + _PATIENCE
    while time.perf_counter() < end:
        if done():
            return True
        time.sleep(0.001)
    return False


def main() -> None:
    """Run the trials of one provider, and print what was left."""
    name, count, seed = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    trials = run_local(count, seed) if name == "local" else run_docker(count, seed)
    print(json.dumps(trials._asdict()))


if __name__ == "__main__":
    main()
