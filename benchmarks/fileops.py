"""What making tasks of tools/fileops-v1 costs, and how far players of known skill get, by level.

    python benchmarks/fileops.py [--tasks N] [--prompts N] [--provider local]

`--tasks` is how many tasks of each split are played, each in a sandbox of its own; `--prompts` how
many of each are compared (10,000 by default take minutes).
"""

import argparse
import asyncio
import importlib
import time
from collections import defaultdict
from statistics import mean

from gymsuite import Environment, Registry, Task, open_provider
from gymsuite.sandbox.protocol import OpenSandbox
from gymsuite.suite import default_cache
from gymsuite.worlds import baselines
from gymsuite.worlds.baselines import Player
from gymsuite.worlds.procedural import Procedural

_AT_ONCE = 4
_SAMPLE = 200


def main() -> None:
    """Print the figures, and a table for each split."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--tasks", type=int, default=50)
    parser.add_argument("--prompts", type=int, default=10_000)
    parser.add_argument("--provider", default="local")
    options = parser.parse_args()
    registry = Registry.default()
    environment = registry.load("tools/fileops-v1")
    tasks = environment.tasks
    if not isinstance(tasks, Procedural):
        raise SystemExit("tools/fileops-v1 does not make its tasks on demand")
    _generation(tasks)
    _prompts(tasks, options.prompts)
    asyncio.run(_tables(registry, environment, tasks, options))


def _generation(tasks: Procedural) -> None:
    package = tasks.make.__module__.rpartition(".")[0]
    gate = importlib.import_module(f"{package}.gate")
    started = time.process_time()
    made = [tasks.make("train", index) for index in range(_SAMPLE)]
    alone = (time.process_time() - started) / _SAMPLE
    findings = sum(len(list(gate.faults_of_ends(gate.scene_of(task)))) for task in made)
    both = (time.process_time() - started) / _SAMPLE
    print(f"generation: {1 / alone:.0f} tasks/s per core")
    print(f"with the gate's cheap half: {1 / both:.0f} tasks/s per core, {findings} findings")


def _prompts(tasks: Procedural, count: int) -> None:
    prompts: set[str] = set()
    for split in tasks.splits:
        before, started = len(prompts), time.process_time()
        prompts.update(tasks.make(split, index).prompt for index in range(count))
        again = before + count - len(prompts)
        rate = count / (time.process_time() - started)
        print(f"{split}: {again} of {count} prompts seen before, made at {rate:.0f} tasks/s")


async def _tables(
    registry: Registry, environment: Environment, tasks: Procedural, options: argparse.Namespace
) -> None:
    package = tasks.make.__module__.rpartition(".")[0]
    provider, count = options.provider, options.tasks
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
