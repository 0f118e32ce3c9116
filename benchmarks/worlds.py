"""What a tool world costs: calls, resets, forks, task generation, many episodes at once.

    python benchmarks/worlds.py [--tasks N] [--table]

`--tasks` sets how many prompts of each split are compared (10,000 by default takes minutes);
`--table` prints the table of baselines for each split.
"""

import argparse
import asyncio
import importlib
import statistics
import time
from collections.abc import Callable
from typing import Any

from gymsuite import Environment, Episode, Message, Registry, Task
from gymsuite.worlds import baselines
from gymsuite.worlds.gate import check_ends
from gymsuite.worlds.procedural import Procedural
from gymsuite.worlds.replay import no_sandbox

WORLDS = ("tools/shop-v1", "tools/office-v1", "tools/tables-v1")
CONCURRENT = 256
SAMPLE = 200
_STEPS = 20


def main() -> None:
    """Print a line for each number."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--tasks", type=int, default=10_000)
    parser.add_argument("--table", action="store_true")
    options = parser.parse_args()
    for name in WORLDS:
        environment = Registry.default().load(name)
        tasks = environment.tasks
        if not isinstance(tasks, Procedural):
            continue
        print(f"## {name}")
        _generation(environment, tasks)
        _calls(environment, tasks)
        _forks(environment, tasks.at("train", 0))
        asyncio.run(_concurrency(environment, tasks))
        _prompts(tasks, options.tasks)
        if options.table:
            _table(environment, tasks)


def _part(environment: Environment, name: str) -> Any:  # noqa: ANN401 - a module of the environment
    package = tasks.make.__module__ if isinstance(tasks := environment.tasks, Procedural) else ""
    return importlib.import_module(f"{package.rsplit('.', 1)[0]}.{name}")


def _generation(environment: Environment, tasks: Procedural) -> None:
    tasks.make("train", 0)  # the base world
    started = time.process_time()
    made = [tasks.make("train", index) for index in range(SAMPLE)]
    alone = (time.process_time() - started) / SAMPLE
    gate = _part(environment, "gate").GATE

    async def run() -> int:
        return sum([len(await check_ends(environment, gate, task, no_sandbox)) for task in made])

    findings = asyncio.run(run())
    both = (time.process_time() - started) / SAMPLE
    print(f"generation: {1 / alone:.0f} tasks/s per core")
    print(f"with the gate's cheap half: {1 / both:.0f} tasks/s per core, {findings} findings")


def _calls(environment: Environment, tasks: Procedural) -> None:
    looks = {tool.__name__ for tool in _part(environment, "gate").GATE.world.lookups}
    task, look = next(
        (task, call)
        for task in tasks
        for call in task.solution
        if call.name in looks and not call.name.startswith("tell_")
    )
    action = Message(role="assistant", tool_calls=(look,))

    async def run() -> tuple[list[float], float, list[float]]:
        resets, steps = [], []
        for _ in range(20):
            async with Episode(environment, no_sandbox) as episode:
                started = time.perf_counter()
                await episode.reset(task, 0)
                await episode.step(action)  # the world starts with the first call
                resets.append(time.perf_counter() - started)
                cpu = time.process_time()
                for _ in range(_STEPS):
                    started = time.perf_counter()
                    await episode.step(action)
                    steps.append(time.perf_counter() - started)
                cpu = (time.process_time() - cpu) / _STEPS
        return steps, cpu, resets

    steps, cpu, resets = asyncio.run(run())
    print(f"one call through step: {_median(steps)} ms median, {1000 * cpu:.2f} CPU-ms")
    print(f"reset and first call: {_median(resets)} ms median")


def _forks(environment: Environment, task: Task) -> None:
    state = _part(environment, "gate").GATE.world.start(task)

    def fork() -> None:
        copy = state.fork()
        copy.get("seed")
        copy.close()

    print(f"fork and first query: {_median(_timed(fork, SAMPLE))} ms ({len(state.image)} bytes)")
    state.close()


async def _concurrency(environment: Environment, tasks: Procedural) -> None:
    async def play(index: int) -> bool:
        task = tasks.at("train", index % SAMPLE)
        agent = baselines.oracle(task)
        async with Episode(environment, no_sandbox) as episode:
            observation, _ = await episode.reset(task, index)
            while not episode.done:
                observation = (await episode.step(await agent.act(observation))).observation
                await asyncio.sleep(0)  # let the others in between
            return episode.score is not None and episode.score.passed

    started = time.process_time()
    passed = sum(await asyncio.gather(*(play(index) for index in range(CONCURRENT))))
    seconds = time.process_time() - started
    print(f"{CONCURRENT} episodes at once: {passed} solved, {seconds:.1f} CPU-s")


def _prompts(tasks: Procedural, count: int) -> None:
    seen: set[str] = set()
    for split in tasks.splits:
        before, started = len(seen), time.process_time()
        seen.update(tasks.make(split, index).prompt for index in range(count))
        again = before + count - len(seen)
        rate = count / (time.process_time() - started)
        print(f"{split}: {again} of {count} prompts seen before, made at {rate:.0f} tasks/s")


def _table(environment: Environment, tasks: Procedural) -> None:
    players = {
        "no-op": baselines.noop,
        "random": baselines.random_player,
        "greedy heuristic": _part(environment, "greedy").greedy,
        "noisy oracle (10 %)": baselines.noisy_oracle(10),
        "oracle": baselines.oracle,
    }
    for split in tasks.splits:
        some = [tasks.at(split, index) for index in range(SAMPLE)]
        print(f"\n{split}, {SAMPLE} tasks:\n")
        print(baselines.table(environment, some, players, no_sandbox))


def _timed(work: Callable[[], None], times: int) -> list[float]:
    seconds = []
    for _ in range(times):
        started = time.perf_counter()
        work()
        seconds.append(time.perf_counter() - started)
    return seconds


def _median(seconds: list[float]) -> str:
    return f"{1000 * statistics.median(seconds):.2f}"


if __name__ == "__main__":
    main()
