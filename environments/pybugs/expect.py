"""What the tests of a task should do under the interpreter at hand."""

import asyncio
from collections.abc import Mapping
from weakref import WeakKeyDictionary

from gymsuite.errors import DefinitionError
from gymsuite.sandbox.protocol import OpenSandbox
from gymsuite.types import Task
from gymsuite.verify.judging import Expectations

from .measure import measure
from .row import Row

_Key = tuple[str, str]


class Remeasured:
    """Expectations measured again, because the row's are of another Python. Kept in memory."""

    def __init__(self) -> None:
        self._known: dict[_Key, Expectations] = {}
        # A lock belongs to the loop that it was waited for in, and goes with it.
        self._locks: WeakKeyDictionary[asyncio.AbstractEventLoop, dict[_Key, asyncio.Lock]] = (
            WeakKeyDictionary()
        )

    def known(self, task: Task, row: Row, description: Mapping[str, object]) -> Expectations | None:
        """The row's own where they hold, or those measured before for this image."""
        if row.holds_under(description.get("python")):
            return row.expected
        return self._known.get(_key(task, description))

    async def measure(
        self, task: Task, row: Row, description: Mapping[str, object], open_sandbox: OpenSandbox
    ) -> Expectations:
        """Measure them, once for all who ask; `DefinitionError` where nothing is left to test."""
        key = _key(task, description)
        locks = self._locks.setdefault(asyncio.get_running_loop(), {})
        async with locks.setdefault(key, asyncio.Lock()):
            if key not in self._known:
                new = await measure(open_sandbox, row.spec, row.bugs, row.expected.files)
                self._known[key] = _both(task, row.expected, new.expected)
        return self._known[key]


def _key(task: Task, description: Mapping[str, object]) -> _Key:
    return str(description.get("digest", "")), task.id


def _both(task: Task, row: Expectations, here: Expectations) -> Expectations:
    """Keep what both measurements say, with the digests of this interpreter."""
    fail = {test: here.fail_to_pass[test] for test in row.fail_to_pass if test in here.fail_to_pass}
    hold = {test: here.pass_to_pass[test] for test in row.pass_to_pass if test in here.pass_to_pass}
    if not fail or not hold:
        raise DefinitionError(
            f"task {task.id!r} was measured under Python {row.python}; under {here.python} "
            f"{len(fail)} tests show its bug and {len(hold)} guard the rest, and it needs both"
        )
    every = [*here.fail_to_pass, *here.pass_to_pass, *here.dropped]
    return here.model_copy(
        update={
            "fail_to_pass": fail,
            "pass_to_pass": hold,
            "dropped": tuple(test for test in every if test not in fail and test not in hold),
        }
    )
