"""How far players of known skill get in tools/fileops-v1, by level, as Markdown tables.

    python benchmarks/fileops.py [--tasks N] [--provider local]

`--tasks` is how many tasks of each split are played, each in a sandbox of its own.
"""

import argparse
import asyncio
import importlib
from collections import defaultdict
from statistics import mean

from gymsuite import Environment, Registry, Task, open_provider
from gymsuite.sandbox.protocol import OpenSandbox
from gymsuite.suite import default_cache
from gymsuite.worlds import baselines
from gymsuite.worlds.baselines import Player
from gymsuite.worlds.procedural import Procedural

_AT_ONCE = 4


def main() -> None:
    """Print a table for each split."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--tasks", type=int, default=50)
    parser.add_argument("--provider", default="local")
    options = parser.parse_args()
    asyncio.run(_tables(options.provider, options.tasks))


async def _tables(provider: str, count: int) -> None:
    registry = Registry.default()
    environment = registry.load("tools/fileops-v1")
    tasks = environment.tasks
    if not isinstance(tasks, Procedural):
        raise SystemExit("tools/fileops-v1 does not make its tasks on demand")
    package = tasks.make.__module__.rpartition(".")[0]
    players: dict[str, Player] = {
        "no-op": baselines.noop,
        "random": baselines.random_player,
        "greedy heuristic": importlib.import_module(f"{package}.greedy").greedy,
        "noisy oracle (10 %)": baselines.noisy_oracle(10),
        "oracle": baselines.oracle,
    }
    opening = open_provider(provider, image_roots=registry.image_roots, cache=default_cache())
    async with opening as opened:
        for split in tasks.splits:
            some = [tasks.at(split, index) for index in range(count)]
            print(f"\n{split}, {count} tasks:\n")
            levels = sorted({task.level for task in some})
            print("| player | " + " | ".join(f"level {level}" for level in levels) + " |")
            print("|---|" + "---|" * len(levels))
            for name, player in players.items():
                shares = await _shares(environment, some, player, opened.open)
                cells = " | ".join(f"{shares[level]:.2f}" for level in levels)
                print(f"| {name} | {cells} |", flush=True)


async def _shares(
    environment: Environment, tasks: list[Task], player: Player, open_sandbox: OpenSandbox
) -> dict[int, float]:
    """The share of tasks that a player passes, by level; some are played at once."""
    gate = asyncio.Semaphore(_AT_ONCE)
    passed: dict[int, list[float]] = defaultdict(list)

    async def play(task: Task) -> None:
        async with gate:
            found = await baselines.success(environment, [task], player, open_sandbox)
        passed[task.level].append(found[task.level])

    await asyncio.gather(*map(play, tasks))
    return {level: mean(of) for level, of in passed.items()}


if __name__ == "__main__":
    main()
