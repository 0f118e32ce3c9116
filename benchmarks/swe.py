"""A verdict here, beside SWE-bench's own harness: the same row, the same image, in one run.

    python benchmarks/swe.py ROWS --repo-dir DIR [--row ID] [--peer VENV/bin/swebench]

The peer is swebench 5.0.2 in an environment of its own (`pip install swebench==5.0.2`). It runs
offline: the image is the one that the docker provider has imported, under the name in the row, and
its installations build without fetching what is there. What is compared is a whole command, from
its start to its report. Rows are vetted first, as a user would; that is not counted.
"""

import argparse
import asyncio
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

import docker

from gymsuite import open_provider
from gymsuite.sandbox.dockerhost import tag_of
from gymsuite.sandbox.protocol import OpenSandbox, Sandbox
from gymsuite.suite import default_cache, recipes_folder, suite_root
from gymsuite.swe.early import Processors
from gymsuite.swe.judge import Judge
from gymsuite.swe.loading import load_rows
from gymsuite.swe.recipe import Recipes
from gymsuite.swe.rows import Row
from gymsuite.swe.supply import Supply
from gymsuite.swe.vetting import vet
from gymsuite.types import SandboxSpec

MOST_OVERHEAD_SECONDS, LEAST_RATIO, MOST_SPREAD = 1.0, 6.0, 1.2
_ALONE = 5
GYMSUITE = str(Path(sys.executable).with_name("gymsuite"))
# The peer installs with a network; without one, this is the nearest thing.
OFFLINE = ("ENV PIP_NO_INDEX=1", "ENV PIP_NO_BUILD_ISOLATION=0", "ENV PIP_NO_DEPS=1")


def timed(command: Sequence[str], folder: Path) -> float:
    """Seconds that a command takes; its complaint ends the benchmark."""
    started = time.perf_counter()
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"{' '.join(command)}: {done.stdout[-1000:]}{done.stderr[-1000:]}")
    return time.perf_counter() - started


async def prepared(row: Row, supply: Supply, provider: str) -> str:
    """Build the image, vet the row, and say what the image is called in Docker."""
    roots = (recipes_folder(), suite_root() / "sandboxes")
    async with open_provider(provider, image_roots=roots, cache=default_cache()) as opened:
        image = await opened.ensure(supply.ready(row))
        judge = Judge.of(opened.open, supply, default_cache() / "swe")
        found = await vet(row, judge, runs=1)
        if not found.is_sound:
            sys.exit(f"{row.instance_id}: {found}")
        return tag_of(image)


def lend(tag: str, name: str) -> None:
    """Have the image under the name that the peer looks for."""
    client = docker.from_env()
    container = client.containers.create(tag, ["true"])
    repository, _, version = name.rpartition(":")
    container.commit(repository, version, changes="\n".join(OFFLINE))
    container.remove()
    client.close()


@dataclass
class Meter:
    """CPU-seconds of sandboxes, added up as each of them ends."""

    cpu_seconds: float = 0.0

    def of(self, open_sandbox: OpenSandbox) -> OpenSandbox:
        """The same way to open sandboxes, metered."""

        @asynccontextmanager
        async def opened(spec: SandboxSpec) -> AsyncIterator[Sandbox]:
            async with open_sandbox(spec) as sandbox:
                yield sandbox
                self.cpu_seconds += (await sandbox.stats()).cpu_seconds

        return opened


class Cost(NamedTuple):
    """What one verdict takes."""

    wall_seconds: float
    cpu_seconds: float


@asynccontextmanager
async def judging(row: Row, supply: Supply, provider: str) -> AsyncIterator[tuple[Judge, Meter]]:
    """A judge whose image is there and whose provider is warm."""
    roots, meter = (recipes_folder(), suite_root() / "sandboxes"), Meter()
    async with open_provider(provider, image_roots=roots, cache=default_cache()) as opened:
        judge = Judge.of(meter.of(opened.open), supply, default_cache() / "swe")
        await opened.ensure(supply.ready(row))
        await judge.run(row, row.patch)
        yield judge, meter


async def verdicts(row: Row, supply: Supply, count: int, at_once: int) -> Cost:
    """What one of so many verdicts of gold takes, of which so many are judged at a time."""
    gate = asyncio.Semaphore(at_once)
    async with judging(row, supply, "local") as (judge, meter):

        async def one() -> None:
            async with gate:
                if not (await judge.run(row, row.patch)).resolved:
                    sys.exit(f"{row.instance_id}: gold is not resolved")

        before, started = time.process_time() + meter.cpu_seconds, time.perf_counter()
        await asyncio.gather(*(one() for _ in range(count)))
        cpu = time.process_time() + meter.cpu_seconds - before
        return Cost((time.perf_counter() - started) / count, cpu / count)


async def overhead(row: Row, supply: Supply, provider: str, count: int = 5) -> tuple[float, float]:
    """Seconds of a verdict beside its tests: of a patch that is not resolved, and of one that is.

    How long the tests take is measured with nothing beside them. The second look at a patch that
    is resolved runs them again, and counts as overhead here as far as it is not over by then.
    """
    best = []
    async with judging(row, supply, provider) as (judge, _):
        alone = replace(judge, processors=Processors(count=0))
        for patch in (b"", row.patch):
            tests = [(await alone.run(row, patch)).test_seconds for _ in range(count)]
            walls = []
            for _ in range(count):
                started = time.perf_counter()
                await judge.run(row, patch)
                walls.append(time.perf_counter() - started)
            best.append(min(walls) - min(tests))
    return best[0], best[1]


def peer_seconds(peer: str, row: Row, rows: Path, tag: str, folder: Path) -> float:
    """Let the peer judge gold in the same image, and check that it comes to the same verdict."""
    lend(tag, row.image)
    prediction = {"instance_id": row.instance_id, "model_name_or_path": "gold"}
    (folder / "gold.json").write_text(json.dumps([{**prediction, "model_patch": row.patch}]))
    options = ["-p", "gold.json", "-i", row.instance_id, "--run-id", "peer", "-j", "1"]
    seconds = timed([peer, "eval", str(rows), *options], folder)
    report = json.loads((folder / "gold.peer.json").read_text("utf-8"))
    print(f"swebench: {seconds:.2f} s, resolved {report['resolved_instances']}")
    return seconds


def compare(row: Row, supply: Supply, given: argparse.Namespace, folder: Path) -> None:
    """Measure whole commands and overheads in both providers, then the peer's command."""
    ours: dict[str, float] = {}
    tag = ""
    for provider in ("local", "docker"):
        tag = asyncio.run(prepared(row, supply, provider))
        options = ["-d", str(given.rows.resolve()), "-p", "gold", "-i", row.instance_id]
        options += ["--repo-dir", str(given.repo_dir.resolve()), "--provider", provider]
        command = [GYMSUITE, "swebench", "eval", *options, "--run-id"]
        ours[provider] = min(timed([*command, f"{provider}{at}"], folder) for at in range(3))
        idle, second = asyncio.run(overhead(row, supply, provider))
        print(f"{provider}: {ours[provider]:.2f} s for the command; beside the tests {idle:.2f} s")
        print(f"  (at most {MOST_OVERHEAD_SECONDS}), with the second look {second:.2f} s")
    if given.peer:
        seconds = peer_seconds(given.peer, row, given.rows.resolve(), tag, folder)
        for provider, mine in ours.items():
            ratio = seconds / mine
            print(f"  {ratio:.1f} times as long as {provider} (at least {LEAST_RATIO:g})")


def main() -> None:
    """Print what was measured, and what each figure was to be."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("rows", type=Path)
    parser.add_argument("--repo-dir", required=True, type=Path)
    parser.add_argument("--row")
    parser.add_argument("--peer")
    parser.add_argument("--verdicts", type=int, default=100)
    given = parser.parse_args()
    row = load_rows(str(given.rows), ids=[given.row] if given.row else ())[0]
    supply = Supply(Recipes(given.repo_dir, recipes_folder()))
    print(f"{row.instance_id}; {os.cpu_count()} CPUs, load {os.getloadavg()[0]:.1f}")
    with tempfile.TemporaryDirectory() as folder:
        compare(row, supply, given, Path(folder))
    one = asyncio.run(verdicts(row, supply, _ALONE, 1))
    print(f"one verdict at a time: {one.wall_seconds:.2f} s, {one.cpu_seconds:.2f} CPU-s each")
    for count in (10, given.verdicts):
        many = asyncio.run(verdicts(row, supply, count, count))
        print(f"{count} at once: {many.wall_seconds:.2f} s, {many.cpu_seconds:.2f} CPU-s each,")
        spread = many.cpu_seconds / one.cpu_seconds
        print(f"  {spread:.2f} times the CPU of one alone (at most {MOST_SPREAD})")


if __name__ == "__main__":
    main()
