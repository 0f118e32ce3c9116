"""Measures which tests tell a right state of a library from a wrong one, sealed as they will be."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from gymsuite.sandbox.protocol import Sandbox
from gymsuite.verify.judging import Expectations
from gymsuite.verify.pytest_run import ALONE, PytestRun, Settings, run_pytest
from gymsuite.verify.sealing import probed, sealed
from gymsuite.verify.source import Source

Runs = tuple[PytestRun, PytestRun]

_HASH_SEEDS = (0, 1)


@dataclass(frozen=True)
class Bench:
    """Where tests are measured: below a workdir, with an interpreter, within so many seconds."""

    workdir: str
    python: str
    seconds: float
    settings: Settings = ALONE


def seal(
    pristine: Mapping[str, bytes], unsealed: Mapping[str, Collection[int]]
) -> dict[str, bytes]:
    """Take the expected values out of test files."""
    return {file: _sealed(data, tuple(unsealed.get(file, ()))) for file, data in pristine.items()}


@lru_cache(maxsize=64)
def _sealed(data: bytes, unsealed: tuple[int, ...]) -> bytes:
    """Seal one file; a trainer asks for the same one again and again."""
    return sealed(Source(data), unsealed)


async def unsealable(
    sandbox: Sandbox, bench: Bench, pristine: Mapping[str, bytes]
) -> dict[str, tuple[int, ...]]:
    """Find the sites whose values have no canonical text, or which no test reaches."""
    await write_files(sandbox, bench, {f: probed(Source(data)) for f, data in pristine.items()})
    run = await run_pytest(
        sandbox,
        [*pristine],
        python=bench.python,
        root=bench.workdir,
        timeout=bench.seconds,
        settings=bench.settings,
    )
    refused: dict[str, list[int]] = {}
    for place, sealable in run.compared.items():
        path, _, number = place.rpartition(":")
        if not sealable:
            refused.setdefault(path.removeprefix(f"{bench.workdir}/"), []).append(int(number))
    return {file: tuple(sorted(numbers)) for file, numbers in sorted(refused.items())}


async def run_twice(sandbox: Sandbox, bench: Bench, hidden: Mapping[str, bytes]) -> Runs:
    """Run sealed tests under two orders of sets and dictionaries."""
    await write_files(sandbox, bench, hidden)
    first, second = [
        await run_pytest(
            sandbox,
            [*hidden],
            python=bench.python,
            root=bench.workdir,
            timeout=bench.seconds,
            trace=True,
            hash_seed=hash_seed,
            settings=bench.settings,
        )
        for hash_seed in _HASH_SEEDS
    ]
    return first, second


async def write_files(sandbox: Sandbox, bench: Bench, files: Mapping[str, bytes]) -> None:
    """Write files below the workdir."""
    for path, data in files.items():
        await sandbox.write(f"{bench.workdir}/{path}", data)


def expectations(
    files: Sequence[str], unsealed: Mapping[str, tuple[int, ...]], fixed: Runs, broken: Runs
) -> Expectations:
    """What follows from two runs of the right state and two of the wrong one."""
    fail_to_pass, pass_to_pass, dropped = {}, {}, []
    for test in fixed[0].collected:
        right = [run.results[test][:2] if test in run.results else None for run in fixed]
        wrong = [run.results[test][:2] if test in run.results else None for run in broken]
        first = right[0]
        if first is None or first[0] != "passed" or right[1] != first:
            dropped.append(test)
        elif first not in wrong:
            fail_to_pass[test] = first[1]
        elif wrong == right:
            pass_to_pass[test] = first[1]
        else:
            dropped.append(test)
    return Expectations(
        python=fixed[0].python,
        seconds=round(max(run.wall_seconds for run in (*fixed, *broken)), 1),
        files=tuple(files),
        unsealed=unsealed,
        fail_to_pass=fail_to_pass,
        pass_to_pass=pass_to_pass,
        dropped=tuple(dropped),
    )
