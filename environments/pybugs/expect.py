"""What the tests of a task should do under the interpreter at hand."""

from collections.abc import Mapping

from gymsuite.errors import DefinitionError
from gymsuite.sandbox.protocol import OpenSandbox
from gymsuite.types import Task
from gymsuite.verify.judging import Expectations

from .measure import measure
from .row import Row


class Remeasured:
    """Expectations measured again, because the row's are of another Python. Kept in memory."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, str], Expectations] = {}

    def known(self, task: Task, row: Row, description: Mapping[str, object]) -> Expectations | None:
        """The row's own where they hold, or those measured before for this image."""
        if description.get("python") == row.expected.python:
            return row.expected
        return self._known.get(_key(task, description))

    async def measure(
        self, task: Task, row: Row, description: Mapping[str, object], open_sandbox: OpenSandbox
    ) -> Expectations:
        """Measure them; raises `DefinitionError` where nothing is left to test."""
        new = await measure(open_sandbox, row.spec, row.bugs, row.expected.files)
        expected = _both(task, row.expected, new.expected)
        self._known[_key(task, description)] = expected
        return expected


def _key(task: Task, description: Mapping[str, object]) -> tuple[str, str]:
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
