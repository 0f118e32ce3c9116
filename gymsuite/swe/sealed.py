"""A second look at a patch that the row's own tests pass: sealed tests, in a clean sandbox.

The row's tests run in the process of the code that they judge, which can make them say "passed". So
where they do, they run once more with the values that they expect taken out of them, beside tests
that must fail, and what they saw is compared on this side with what the gold patch made them see.
See docs/design/verification.md.
"""

import asyncio
import hashlib
from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from weakref import WeakKeyDictionary

from gymsuite.sandbox.protocol import Sandbox
from gymsuite.sandbox.records import write_whole
from gymsuite.swe import refusals
from gymsuite.swe.patched import bring_in_own, bring_in_problem
from gymsuite.swe.rows import Row
from gymsuite.types import Model
from gymsuite.verify.canaries import plant
from gymsuite.verify.judging import Expectations, Verdict, judge
from gymsuite.verify.measuring import (
    Bench,
    expectations,
    run_twice,
    seal,
    unsealable,
    write_files,
)
from gymsuite.verify.pytest_run import AS_CONFIGURED, PytestRun, run_pytest

PYTHON = "/opt/miniconda3/envs/testbed/bin/python"

_MEASURE_SECONDS = 600.0
_OLDEST = (3, 7)
_FORMAT = 2
_MOST_TWINS, _ALL = 6, 1 << 16

OpenRow = Callable[[Row], AbstractAsyncContextManager[Sandbox]]
"""Opens a sandbox of a row's image, with its repository at the base commit."""


class Seal(Model):
    """What the sealed tests of a row should see, and whether that tells a repair from none.

    `expected` is None where the row's tests cannot be sealed; `why` says so. `refusals` are the
    tests of each file whose twins below `pytest.raises` fail, and disturb no other.
    """

    expected: Expectations | None = None
    tests: Mapping[str, bytes] = {}
    refusals: Mapping[str, tuple[str, ...]] = {}
    why: str = ""

    @property
    def is_telling(self) -> bool:
        """Whether a test that fails without a repair has to see the right values."""
        return self.expected is not None and any(self.expected.fail_to_pass.values())


class Seals:
    """Seals of rows, measured once for each image and kept on disk."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._known: dict[str, Seal] = {}
        # A lock belongs to the loop that it was waited for in, and goes with it.
        self._locks: WeakKeyDictionary[asyncio.AbstractEventLoop, dict[str, asyncio.Lock]] = (
            WeakKeyDictionary()
        )

    async def stored(self, row: Row, digest: str) -> Seal | None:
        """The seal of a row in an image, if it was measured before."""
        key = _key(row, digest)
        if key not in self._known:
            found = await asyncio.to_thread(_read, self._folder / f"{key}.json")
            if found is None:
                return None
            self._known[key] = found
        return self._known[key]

    async def of(self, row: Row, digest: str, open_row: OpenRow) -> Seal:
        """The seal of a row in an image; the first who asks waits for some runs of its tests.

        He holds no sandbox meanwhile: it takes one, too.
        """
        key = _key(row, digest)
        locks = self._locks.setdefault(asyncio.get_running_loop(), {})
        async with locks.setdefault(key, asyncio.Lock()):
            if key not in self._known:
                path = self._folder / f"{key}.json"
                self._known[key] = await self._read_or_measure(row, path, open_row)
        return self._known[key]

    async def _read_or_measure(self, row: Row, path: Path, open_row: OpenRow) -> Seal:
        if (stored := _read(path)) is not None:
            return stored
        found = await measure(row, open_row)
        await asyncio.to_thread(path.parent.mkdir, parents=True, exist_ok=True)
        await asyncio.to_thread(write_whole, path, found.model_dump_json())
        return found


def _key(row: Row, digest: str) -> str:
    return hashlib.sha256(f"{_FORMAT}|{digest}|{row.model_dump_json()}".encode()).hexdigest()


def patience(seal_: Seal, most: float) -> float:
    """How long the row's tests may take: no slow machine needs this, and a hanging test does."""
    measured = seal_.expected.seconds if seal_.expected else most
    return min(most, 60.0 + 30.0 * measured)


def _read(path: Path) -> Seal | None:
    try:
        return Seal.model_validate_json(path.read_bytes())
    except (OSError, ValueError):
        return None


async def measure(row: Row, open_row: OpenRow) -> Seal:
    """Run the row's test files sealed, with the gold patch twice and without it twice."""
    files = test_files(row)
    if not files:
        return Seal(why="no test of it is pytest's")
    bench = Bench(row.workdir, PYTHON, _MEASURE_SECONDS, AS_CONFIGURED)
    async with open_row(row) as sandbox:
        if problem := await _unfit(sandbox):
            return Seal(why=problem)
        await bring_in_problem(sandbox, row)
        await bring_in_own(sandbox, row, row.patch)
        await bring_in_own(sandbox, row, row.test_patch)
        tests = {}
        for file in files:
            data = await sandbox.read(f"{row.workdir}/{file}")
            if data is not None:
                tests[file] = data
        try:
            unsealed = await unsealable(sandbox, bench, tests)
            hidden = seal(tests, unsealed)
            twins = {
                file: refusals.plant(data, refusals.candidates(data), _ALL)
                for file, data in hidden.items()
            }
        except SyntaxError as error:
            return Seal(why=f"its tests are written for another Python: {error}")
        fixed = await run_twice(sandbox, bench, hidden)
        refused = fixed[0]
        if any(twin.names for twin in twins.values()):
            refused = await _run_once(sandbox, bench, {f: twin.data for f, twin in twins.items()})
    async with open_row(row) as sandbox:
        await bring_in_problem(sandbox, row)
        await bring_in_own(sandbox, row, row.test_patch)
        broken = await run_twice(sandbox, bench, hidden)
    expected = _only_named(row, expectations(list(tests), unsealed, fixed, broken))
    if not expected.fail_to_pass:
        return Seal(why="none of its FAIL_TO_PASS tests can be run sealed")
    return Seal(expected=expected, tests=tests, refusals=_failing(expected, refused, twins))


def _failing(
    expected: Expectations, run: PytestRun, twins: Mapping[str, refusals.Twins]
) -> dict[str, tuple[str, ...]]:
    """The tests whose twins failed; none where a twin has changed what another test sees."""
    if not all(
        expected.passes(run, test) for test in (*expected.fail_to_pass, *expected.pass_to_pass)
    ):
        return {}
    return {
        file: tuple(
            test
            for twin, test in twins_.names.items()
            if (found := run.results.get(f"{file}::{twin}[0]")) and found.status == "failed"
        )
        for file, twins_ in twins.items()
    }


async def confirm(sandbox: Sandbox, row: Row, seal_: Seal) -> Verdict:
    """Judge a checkout that a patch was applied to; the sandbox has run nothing of it so far."""
    expected = seal_.expected
    if expected is None:
        return Verdict(0, 0, "", "")
    bench = Bench(row.workdir, PYTHON, patience(seal_, _MEASURE_SECONDS), AS_CONFIGURED)
    files, canaries = {}, {}
    for file, data in seal(seal_.tests, expected.unsealed).items():
        twins = refusals.plant(data, seal_.refusals.get(file, ()), _MOST_TWINS)
        planted = plant(twins.data)
        files[file], canaries[file] = planted.data, (*planted.names, *twins.names)
    return judge(await _run_once(sandbox, bench, files), expected, canaries)


async def _run_once(sandbox: Sandbox, bench: Bench, files: Mapping[str, bytes]) -> PytestRun:
    await write_files(sandbox, bench, files)
    return await run_pytest(
        sandbox,
        [*files],
        python=bench.python,
        root=bench.workdir,
        timeout=bench.seconds,
        settings=bench.settings,
    )


def test_files(row: Row) -> tuple[str, ...]:
    """The files of the named tests, where these are pytest's."""
    named = (name.partition("::") for name in row.named_tests)
    return tuple(dict.fromkeys(f for f, sep, _ in named if sep and f.endswith(".py")))


test_files.__test__ = False  # type: ignore[attr-defined]  # pytest would collect it


def _only_named(row: Row, found: Expectations) -> Expectations:
    """Leave out the tests of functions that the row does not name."""
    functions = {name.partition("[")[0].strip() for name in row.named_tests}

    def is_named(test: str) -> bool:
        return test.rpartition("[")[0] in functions

    fail = {test: digest for test, digest in found.fail_to_pass.items() if is_named(test)}
    hold = {test: digest for test, digest in found.pass_to_pass.items() if is_named(test)}
    others = {*found.fail_to_pass, *found.pass_to_pass} - fail.keys() - hold.keys()
    return found.model_copy(
        update={
            "fail_to_pass": fail,
            "pass_to_pass": hold,
            "dropped": (*found.dropped, *sorted(others)),
        }
    )


async def _unfit(sandbox: Sandbox) -> str:
    command = [PYTHON, "-c", "import sys; print(*sys.version_info[:2])"]
    done = await sandbox.exec(command, timeout=60)
    try:
        version = tuple(map(int, done.stdout.split()))
    except ValueError:
        version = ()
    if done.exit_code != 0 or not version:
        return f"its image has no {PYTHON}"
    return "" if version >= _OLDEST else f"Python {version[0]}.{version[1]} is too old"
