"""What sandboxes cost here, beside Docker and SWE-ReX on the same machine in the same run.

    python benchmarks/sandboxes.py [--full] [--only WORD] [--idle N] [--out FILE.json]

Each line says whether its target is met; targets are those of a quiet machine with two processors.
CPU-milliseconds, of this process and all its descendants, compare on a busy one as well. SWE-ReX is
installed into a virtual environment that is thrown away. A peer that cannot run is left out.
"""

import argparse
import asyncio
import json
import os
import platform
import subprocess
import sys
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any, NamedTuple

import sandboxes_ours as ours
from docker.errors import DockerException
from sandboxes_peers import DockerPeer, swerex
from sandboxes_table import Row, of_times, print_head, print_row, print_sum

from gymsuite import OpenSandbox, Registry, SandboxError, open_provider
from gymsuite.sandbox.admission import Admission
from gymsuite.suite import default_cache

_MEBIBYTE = 1 << 20
_KILLS, _KILLS_IN_FULL = {"local": 10, "docker": 3}, {"local": 100, "docker": 100}


class Sizes(NamedTuple):
    """How often things are done."""

    creates: int
    execs: int
    peers: int
    idle: int
    kills: dict[str, int]
    rounds: int = 3


class Places(NamedTuple):
    """What can be measured here; None where it cannot."""

    local: OpenSandbox | None
    docker: OpenSandbox | None
    peer: DockerPeer | None
    sizes: Sizes


async def creating(places: Places) -> list[Row]:
    """From nothing to the end of a first command."""
    rows, sizes = [], places.sizes
    here: list[float] = []
    peer: list[float] = []
    cpu_ms = 0.0
    for _ in range(sizes.rounds):
        if places.local:
            cost = await ours.create(places.local, sizes.creates // sizes.rounds)
            here += cost.seconds
            cpu_ms += cost.cpu_ms / sizes.rounds
        if places.peer:
            peer += await asyncio.to_thread(places.peer.create, sizes.peers // sizes.rounds)
    versus = _versus("docker run + exec", peer)
    if here:
        rows.append(
            of_times("create to first exec, local", here, cpu_ms=cpu_ms, most=10, most_p95=25,
                     **versus)
        )  # fmt: skip
    if places.docker:
        # Its pool makes some while others are used.
        cost = await ours.create(places.docker, sizes.peers, pause_seconds=1.0)
        rows.append(of_times("create to first exec, docker, one a second", cost.seconds, **versus))
    if places.local:
        rate, each_ms = await ours.per_second(places.local, 32, 256)
        theirs = await asyncio.to_thread(places.peer.per_second, 32, 32) if places.peer else None
        rows.append(
            Row("created and removed, 32 at once, local", rate, "/s", cpu_ms=each_ms, least=200,
                peer="docker run" if theirs else "", peer_value=theirs)
        )  # fmt: skip
    return rows


async def commanding(places: Places) -> list[Row]:
    """Commands and files in a sandbox that is there."""
    sizes = places.sizes
    floor = await asyncio.to_thread(ours.bare, sizes.execs)
    rows = [of_times("true, without any sandbox", floor)._replace(note="no exec is quicker")]
    one = await asyncio.to_thread(places.peer.execs, sizes.peers) if places.peer else []
    hundred = await asyncio.to_thread(places.peer.execs, 100) if places.peer else []
    writes = await asyncio.to_thread(places.peer.writes, sizes.peers) if places.peer else []
    for name, open_sandbox, times in (("local", places.local, 100), ("docker", places.docker, 60)):
        if open_sandbox is None:
            continue
        cost = await ours.execs(open_sandbox, sizes.execs)
        cpu = cost.cpu_ms if name == "local" else None
        versus = _versus("docker exec", one)
        rows.append(of_times(f"exec true, {name}", cost.seconds, cpu_ms=cpu, most=0.8, **versus))
        cost = await ours.hundred(open_sandbox, sizes.rounds)
        row = of_times(f"100 short execs, {name}", cost.seconds)
        total = sum(hundred) * 1000
        if hundred:
            row = row._replace(peer="100 x docker exec", peer_value=total, most=total / times,
                               note=f"the target is a {times}th of docker exec's")  # fmt: skip
        rows.append(row)
        cost = await ours.writes(open_sandbox, sizes.execs)
        cpu = cost.cpu_ms if name == "local" else None
        rows.append(
            of_times(f"write 100 KB, {name}", cost.seconds, cpu_ms=cpu, most=1,
                     **_versus("put_archive", writes))
        )  # fmt: skip
    return rows


async def forking(places: Places) -> list[Row]:
    """Sandboxes that start from one that changed 200 MB."""
    if not places.local:
        return []
    commits, runs = await asyncio.to_thread(places.peer.forks, 2) if places.peer else ([], [])
    cost, snapshot = await ours.forks(places.local, places.sizes.creates)
    both = [commit + run for commit, run in zip(commits, runs, strict=True)]
    return [
        Row("snapshot of 200 MB of changes, local", snapshot * 1000,
            **_versus("docker commit", commits)),
        of_times("fork from it to first exec, local", cost.seconds, cpu_ms=cost.cpu_ms, most=10,
                 **_versus("docker commit + run", both)),
    ]  # fmt: skip


async def idling(places: Places) -> list[Row]:
    """Many sandboxes that do nothing."""
    if not places.local:
        return []
    count = places.sizes.idle
    found = await ours.idle(places.local, count, min(count, 100))
    peer = await asyncio.to_thread(places.peer.idle_bytes, 10) if places.peer else None
    each = (found.process_bytes + found.kernel_bytes) / _MEBIBYTE
    return [
        Row("memory of an idle sandbox, local", each, "MiB", most=1.5,
            peer="docker's processes" if peer else "", peer_value=peer and peer / _MEBIBYTE,
            note=f"{found.process_bytes / _MEBIBYTE:.2f} of processes,"
            f" {found.kernel_bytes / _MEBIBYTE:.2f} of the kernel's"),
        Row(f"of {count:,} idle ones answer, local", found.answered, "", least=count,
            note=f"opened in {found.open_seconds:.1f} s"),
        Row("and are left after, of any kind", found.left, "", most=0),
    ]  # fmt: skip


async def killing(places: Places) -> list[Row]:
    """What controllers leave that were killed at random moments."""
    rows = []
    for name, open_sandbox in (("local", places.local), ("docker", places.docker)):
        if open_sandbox is None:
            continue
        count = places.sizes.kills[name]
        script = str(Path(__file__).with_name("sandboxes_kills.py"))
        done = await asyncio.to_thread(
            subprocess.run, [sys.executable, script, name, str(count), "1"],
            check=True, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        left: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
        slowest = left.pop("slowest_ms")
        left.pop("trials")
        when = "after" if name == "local" else "after a reap that ended"
        note = f"{json.dumps(left)}; the last was gone {slowest:,.0f} ms {when}"
        rows.append(
            Row(f"left by {count} killed controllers, {name}", sum(left.values()), "", most=0,
                note=note)
        )  # fmt: skip
    return rows


async def comparing(places: Places) -> list[Row]:
    """SWE-ReX, which has no number of ours beside it here: the rows above are."""
    found: dict[str, Any] = await asyncio.to_thread(swerex, places.sizes.peers)
    if "skipped" in found:
        return [Row("SWE-ReX", None, note=f"skipped: {found['skipped']}")]
    return [
        Row("(SWE-ReX: server and session ready)", found["ready"] * 1000),
        of_times("(SWE-ReX: true in its session)", found["session"]),
        of_times("(SWE-ReX: true by its execute)", found["execute"]),
        Row("(SWE-ReX: memory of its server)", found["pss_bytes"] / _MEBIBYTE, "MiB"),
    ]


PARTS: dict[str, Callable[[Places], Awaitable[list[Row]]]] = {
    "create": creating,
    "exec": commanding,
    "fork": forking,
    "idle": idling,
    "kill": killing,
    "swerex": comparing,
}


def _versus(name: str, seconds: list[float]) -> dict[str, Any]:
    if not seconds:
        return {}
    return {"peer": name, "peer_value": sorted(seconds)[len(seconds) // 2] * 1000}


async def measure(parts: list[str], sizes: Sizes) -> list[Row]:
    """Run the parts over what works here; a provider that does not is said and left out."""
    async with AsyncExitStack() as stack:
        local = await _opened("local", stack)
        docker = await _opened("docker", stack)
        places = Places(local, docker, _peer(), sizes)
        print_head()
        rows = []
        for part in parts:
            for row in await PARTS[part](places):
                print_row(row)
                rows.append(row)
        return rows


async def _opened(name: str, stack: AsyncExitStack) -> OpenSandbox | None:
    roots = Registry.default().image_roots
    opening = open_provider(
        name, image_roots=roots, cache=default_cache(), admission=Admission.unlimited()
    )
    try:
        provider = await stack.enter_async_context(opening)
        await provider.ensure("base")
    except SandboxError as error:
        print(f"{name}: skipped: {error}", file=sys.stderr)
        return None
    return provider.open


def _peer() -> DockerPeer | None:
    try:
        return DockerPeer()
    except (DockerException, IndexError, OSError) as error:
        print(f"docker run and docker exec: skipped: {error}", file=sys.stderr)
        return None


def main() -> None:
    """Measure, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--full", action="store_true", help="100 kills of each provider")
    parser.add_argument("--only", action="append", choices=PARTS, help="one part; may be repeated")
    parser.add_argument("--idle", type=int, default=2_000, help="how many idle sandboxes")
    parser.add_argument("--out", type=Path, help="the rows as JSON")
    given = parser.parse_args()
    kills = _KILLS_IN_FULL if given.full else _KILLS
    sizes = Sizes(creates=60, execs=400, peers=15, idle=given.idle, kills=kills)
    load = os.getloadavg()[0]
    print(
        f"{platform.platform()}, {os.cpu_count()} processors, load {load:.1f}, Python"
        f" {platform.python_version()}"
    )
    rows = asyncio.run(measure(given.only or list(PARTS), sizes))
    print_sum(rows)
    if given.out:
        given.out.write_text(json.dumps([row._asdict() for row in rows], indent=1))


if __name__ == "__main__":
    main()
