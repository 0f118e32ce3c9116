"""Measures which tests show a bug: with the bug twice, without it twice, the network off."""

from collections.abc import Collection, Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

from gymsuite.sandbox.protocol import OpenSandbox, Sandbox
from gymsuite.types import SandboxSpec
from gymsuite.verify.judging import Expectations
from gymsuite.verify.pytest_run import PytestRun, run_pytest
from gymsuite.verify.sealing import probed, sealed
from gymsuite.verify.source import Source

from .checkout import read_all, write_all
from .mutate import Bug, mutate
from .row import PYTHON

MEASURE_SECONDS = 120.0
Runs = tuple[PytestRun, PytestRun]


class Measured(NamedTuple):
    """What was seen: the expectations that follow, and the runs that they follow from."""

    expected: Expectations
    fixed: Runs
    broken: Runs


async def measure(
    open_sandbox: OpenSandbox,
    spec: SandboxSpec,
    bugs: Sequence[Bug],
    files: Sequence[str],
) -> Measured:
    """Run the test files in clean sandboxes, sealed as they will be when a submission is judged."""
    async with open_sandbox(spec) as sandbox:
        pristine = await read_all(sandbox, spec.workdir, files)
        unsealed = await _unsealed(sandbox, spec.workdir, pristine)
        hidden = seal(pristine, unsealed)
        fixed = await _twice(sandbox, spec.workdir, hidden)
    async with open_sandbox(spec) as sandbox:
        sources = await read_all(sandbox, spec.workdir, {bug.file for bug in bugs})
        await write_all(sandbox, spec.workdir, mutate(sources, bugs))
        broken = await _twice(sandbox, spec.workdir, hidden)
    return Measured(_expectations(files, unsealed, fixed, broken), fixed, broken)


def seal(
    pristine: Mapping[str, bytes], unsealed: Mapping[str, Collection[int]]
) -> dict[str, bytes]:
    """Take the expected values out of test files."""
    return {file: _sealed(data, tuple(unsealed.get(file, ()))) for file, data in pristine.items()}


@lru_cache(maxsize=64)
def _sealed(data: bytes, unsealed: tuple[int, ...]) -> bytes:
    """Seal one file; a trainer asks for the same one again and again."""
    return sealed(Source(data), unsealed)


async def _unsealed(
    sandbox: Sandbox, workdir: str, pristine: Mapping[str, bytes]
) -> dict[str, tuple[int, ...]]:
    """Find the sites whose values have no canonical text, or which no test reaches."""
    await write_all(sandbox, workdir, {f: probed(Source(data)) for f, data in pristine.items()})
    run = await run_pytest(
        sandbox, [*pristine], python=PYTHON, root=workdir, timeout=MEASURE_SECONDS
    )
    refused: dict[str, list[int]] = {}
    for place, sealable in run.compared.items():
        path, _, number = place.rpartition(":")
        if not sealable:
            refused.setdefault(path.removeprefix(f"{workdir}/"), []).append(int(number))
    return {file: tuple(sorted(numbers)) for file, numbers in sorted(refused.items())}


async def _twice(sandbox: Sandbox, workdir: str, hidden: Mapping[str, bytes]) -> Runs:
    await write_all(sandbox, workdir, hidden)
    runs = []
    for hash_seed in (0, 1):
        run = await run_pytest(
            sandbox,
            [*hidden],
            python=PYTHON,
            root=workdir,
            timeout=MEASURE_SECONDS,
            trace=True,
            hash_seed=hash_seed,
        )
        runs.append(run)
    return (runs[0], runs[1])


def _expectations(
    files: Sequence[str], unsealed: Mapping[str, tuple[int, ...]], fixed: Runs, broken: Runs
) -> Expectations:
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
