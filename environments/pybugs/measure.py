"""Measures which tests show a bug: with the bug twice, without it twice, the network off."""

from collections.abc import Sequence
from typing import NamedTuple

from gymsuite.sandbox.protocol import OpenSandbox
from gymsuite.types import SandboxSpec
from gymsuite.verify.judging import Expectations
from gymsuite.verify.measuring import Bench, Runs, expectations, run_twice, seal, unsealable

from .checkout import read_all, write_all
from .mutate import Bug, mutate
from .row import PYTHON

MEASURE_SECONDS = 120.0


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
    bench = Bench(spec.workdir, PYTHON, MEASURE_SECONDS)
    async with open_sandbox(spec) as sandbox:
        pristine = await read_all(sandbox, spec.workdir, files)
        unsealed = await unsealable(sandbox, bench, pristine)
        hidden = seal(pristine, unsealed)
        fixed = await run_twice(sandbox, bench, hidden)
    async with open_sandbox(spec) as sandbox:
        sources = await read_all(sandbox, spec.workdir, {bug.file for bug in bugs})
        await write_all(sandbox, spec.workdir, mutate(sources, bugs))
        broken = await run_twice(sandbox, bench, hidden)
    return Measured(expectations(files, unsealed, fixed, broken), fixed, broken)
