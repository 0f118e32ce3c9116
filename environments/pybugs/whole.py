"""Runs all the tests that a library ships, as written: a bug may show where nobody looks."""

from collections.abc import Sequence

from gymsuite.sandbox.protocol import OpenSandbox
from gymsuite.verify.pytest_run import run_pytest

from .checkout import read_all, write_all
from .libraries import Library
from .mutate import Bug, mutate
from .row import PYTHON, Row

_SECONDS = 600.0


async def passing(
    open_sandbox: OpenSandbox, library: Library, bugs: Sequence[Bug]
) -> frozenset[str]:
    """Return which tests pass with these bugs, or without any."""
    spec = Row.workspace(library.name)
    async with open_sandbox(spec) as sandbox:
        pristine = await read_all(sandbox, spec.workdir, {bug.file for bug in bugs})
        await write_all(sandbox, spec.workdir, mutate(pristine, bugs))
        run = await run_pytest(
            sandbox, [library.tests], python=PYTHON, root=spec.workdir, timeout=_SECONDS
        )
    return frozenset(test for test, seen in run.results.items() if seen.status == "passed")
