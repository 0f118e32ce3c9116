"""Proposes bugs for bugs.jsonl: mutants of covered functions that a few tests notice.

What is printed is to be read, chosen from, and given a `topic` by a person; README.md says how.
"""

import argparse
import asyncio
import json
import random
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import NamedTuple

from gymsuite.errors import DefinitionError
from gymsuite.registry import Registry
from gymsuite.sandbox.protocol import OpenSandbox, Sandbox
from gymsuite.sandbox.provider import open_provider
from gymsuite.suite import default_cache
from gymsuite.types import SandboxSpec
from gymsuite.verify.pytest_run import PytestRun, run_pytest
from gymsuite.verify.source import Source

from .checkout import read_all, write_all
from .libraries import LIBRARIES, Library
from .mutate import REMOVED_BODY, Bug, mutate, sites, statements
from .operators import OPERATORS
from .row import IMAGE, PYTHON

FEWEST_STATEMENTS = 5
MOST_FAILING = 0.4
MOST_FILES = 4
MOST_TESTS = 60
TRIES = 12
SECONDS = 60.0
# A traceback that points at the fault makes a poor task.
_CRASHES = {"TypeError", "AttributeError", "NameError", "UnboundLocalError"}


class Candidate(NamedTuple):
    """A function, some of the tests that enter it, and all the tests of their files."""

    file: str
    function: str
    tests: tuple[str, ...]
    files: tuple[str, ...]
    total: int


async def candidates(sandbox: Sandbox, library: Library) -> list[Candidate]:
    """Find functions that are long enough, and entered by some of the tests."""
    root = f"/workspace/{library.name}"
    listing = await sandbox.exec(
        ["sh", "-c", f"ls {library.tests}/test*.py; find {library.package} -name '*.py'"],
        timeout=30,
    )
    paths = listing.stdout.decode().split()
    tests = [
        p for p in paths if p.startswith(library.tests) and Path(p).name not in library.skipped
    ]
    program = Path(__file__).with_name("coverage.py").read_text(encoding="utf-8")
    done = await sandbox.exec(
        [PYTHON, "-P", "-s", "-B", "-c", program, root, library.package, *tests], timeout=600
    )
    calls: Mapping[str, Sequence[str]] = json.loads(done.stdout)
    sizes = Counter(_file(test) for test in {t for entered in calls.values() for t in entered})
    found = []
    sources = [p for p in paths if p.startswith(library.package) and f"{library.tests}/" not in p]
    for file, data in (await read_all(sandbox, root, sources)).items():
        source = Source(data)
        functions = list(source.functions())
        times = Counter(name for name, _ in functions)
        for name, node in functions:
            entered = calls.get(f"{root}/{file}:{name}", ())
            if entered and times[name] == 1 and statements(node) >= FEWEST_STATEMENTS:
                by_file = Counter(_file(test) for test in entered)
                most = tuple(sorted(f for f, _ in by_file.most_common(MOST_FILES)))
                inside = [test for test in entered if _file(test) in most]
                total = sum(sizes[file] for file in most)
                found.append(Candidate(file, name, tuple(inside[:MOST_TESTS]), most, total))
    return found


def mutants(source: Source, candidate: Candidate, rng: random.Random) -> Iterator[Bug]:
    """All single faults of a function; each operator has the same chance to come early."""
    function = source.function(candidate.function)
    names = list(OPERATORS)
    rng.shuffle(names)
    choices = {name: list(range(len(sites(source, function, name)))) for name in names}
    while any(choices.values()):
        for name in names:
            if choices[name]:
                site = choices[name].pop(rng.randrange(len(choices[name])))
                yield Bug(
                    file=candidate.file, function=candidate.function, operator=name, site=site
                )


def _file(test: str) -> str:
    return test.partition("::")[0]


def noticed(run: PytestRun, candidate: Candidate) -> list[str]:
    """The tests that fail, if they are neither none nor too many; [] otherwise."""
    failing = [test for test, result in run.results.items() if result.status == "failed"]
    kinds = {run.results[test].failure.get("type") for test in failing}
    if kinds <= _CRASHES:
        return []
    fine = run.finished and not run.timed_out and len(run.collected) == len(candidate.tests)
    return failing if fine and len(failing) <= max(1, MOST_FAILING * candidate.total) else []


async def propose(
    open_sandbox: OpenSandbox, library: Library, seed: int, most: int, *, bodies: bool
) -> None:
    """Print what was found, one JSON object a line."""
    spec = SandboxSpec(image=IMAGE, workdir=f"/workspace/{library.name}")
    rng = random.Random(f"{library.name}/{seed}/{bodies}")
    async with AsyncExitStack() as stack:
        sandbox = await stack.enter_async_context(open_sandbox(spec))
        functions = await candidates(sandbox, library)
        rng.shuffle(functions)
        for candidate in functions:
            if most <= 0:
                return
            most -= await _try(sandbox, library, candidate, rng, bodies=bodies)


async def _try(
    sandbox: Sandbox, library: Library, candidate: Candidate, rng: random.Random, *, bodies: bool
) -> bool:
    root = f"/workspace/{library.name}"
    pristine = await read_all(sandbox, root, [candidate.file])
    source = Source(pristine[candidate.file])

    async def run() -> PytestRun:
        return await run_pytest(
            sandbox, candidate.tests, python=PYTHON, root=root, timeout=SECONDS, trace=True
        )

    bugs: Iterable[Bug] = mutants(source, candidate, rng)
    if bodies:
        bugs = [Bug(file=candidate.file, function=candidate.function, operator=REMOVED_BODY)]
    for _, bug in zip(range(TRIES), bugs, strict=False):
        try:
            broken = mutate(pristine, [bug])
        except DefinitionError:
            continue
        await write_all(sandbox, root, broken)
        seen = await run()
        await write_all(sandbox, root, pristine)
        failing = noticed(seen, candidate)
        if failing:
            shown = [[test, seen.results[test].failure] for test in failing[:3]]
            print(  # noqa: T201 - a program's output
                json.dumps(
                    {
                        "library": library.name,
                        "bugs": [bug.model_dump()],
                        "files": candidate.files,
                        "failing": len(failing),
                        "entering": len(candidate.tests),
                        "total": candidate.total,
                        "shown": shown,
                    }
                ),
                flush=True,
            )
            return True
    return False


async def main() -> None:
    """Read the command line and propose."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("library", choices=sorted(LIBRARIES))
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--most", type=int, default=10)
    parser.add_argument("--bodies", action="store_true", help="remove whole bodies: level 3")
    options = parser.parse_args()
    roots = Registry.default().image_roots
    async with open_provider(None, image_roots=roots, cache=default_cache()) as provider:
        await propose(
            provider.open,
            LIBRARIES[options.library],
            options.seed,
            options.most,
            bodies=options.bodies,
        )


if __name__ == "__main__":
    asyncio.run(main())
