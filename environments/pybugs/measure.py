"""Measures which tests show a bug: with the bug twice, without it twice, the network off."""

from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

from gymsuite.sandbox.protocol import OpenSandbox
from gymsuite.types import SandboxSpec
from gymsuite.verify.clocks import clocked
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
    expected = expectations(files, unsealed, fixed, broken)
    return Measured(_without_clocks(expected, pristine), fixed, broken)


def _without_clocks(expected: Expectations, pristine: Mapping[str, bytes]) -> Expectations:
    """Expect nothing of tests that a busy machine can fail."""
    clocks = {file: clocked(data) for file, data in pristine.items()}

    def steady(tests: Mapping[str, str]) -> dict[str, str]:
        return {test: digest for test, digest in tests.items() if not _is_in(test, clocks)}

    kept = {
        "fail_to_pass": steady(expected.fail_to_pass),
        "pass_to_pass": steady(expected.pass_to_pass),
    }
    every = (*expected.fail_to_pass, *expected.pass_to_pass)
    timed = [test for test in every if _is_in(test, clocks)]
    return expected.model_copy(update={**kept, "dropped": (*expected.dropped, *timed)})


def _is_in(test: str, functions: Mapping[str, Collection[str]]) -> bool:
    file, _, rest = test.partition("::")
    return rest.rpartition("::")[2].partition("[")[0] in functions.get(file, ())
