"""Bug repair in real Python libraries: a task's bug is data, applied to the pinned source."""

import posixpath
from collections.abc import Collection, Mapping, Sequence
from pathlib import PurePosixPath

from gymsuite.errors import PathRefused
from gymsuite.sandbox.protocol import FileState, OpenSandbox, Sandbox
from gymsuite.tools import bash, edit, submit
from gymsuite.types import Score, Submission, Task, ToolCall
from gymsuite.verify.applying import apply_patch, restore_protected
from gymsuite.verify.canaries import plant
from gymsuite.verify.changed import changed_below
from gymsuite.verify.judging import Expectations, Verdict, judge
from gymsuite.verify.measuring import seal
from gymsuite.verify.patch import make_patch
from gymsuite.verify.policy import is_cache
from gymsuite.verify.pytest_run import run_pytest

from .checkout import break_library, commit, read_all, write_all
from .expect import Remeasured
from .inverse import inverse_edits
from .mutate import mutate
from .row import PYTHON, Row, row_of

_FILE = 0o100644
_MAX_CHANGES = 32 << 20
_remeasured = Remeasured()

tools = (bash, edit, submit)

system_prompt = """\
You repair a bug in a Python library. Its checkout, a git repository with one commit, is the working
directory of your tools; there is no network. `python -m pytest` runs the library's tests; add the
name of a test file to run only that one. The tests that show the bug are not among them.

Find the cause and repair it in the library's source, then call `submit`. You are scored by hidden
tests: those that fail because of the bug must pass, and those that pass now must still pass.
Changes of tests and of configuration files (conftest.py, pyproject.toml, setup.cfg and the like)
are undone before the hidden tests run.
"""


async def prepare(task: Task, sandbox: Sandbox) -> None:
    """Break the library, hide the tests that tell, and begin a history of one commit."""
    row = row_of(task)
    await break_library(sandbox, row)
    await commit(sandbox, row.workdir)


async def collect(task: Task, sandbox: Sandbox) -> Submission:
    """Make a patch from what changed since `prepare`, read from outside the sandbox."""
    row = row_of(task)
    changes = await changed_below(sandbox, row.workdir, max_bytes=_MAX_CHANGES)
    before = {c.path: c.before for c in changes.changed if not is_cache(c.path)}
    after = {c.path: c.after for c in changes.changed if not is_cache(c.path)}
    # What was put back as it is in the image does not differ from it, but from what was prepared.
    unchanged = [path for path in row.paths if path not in before]
    same = await _read_unchanged(sandbox, row.workdir, unchanged, changes.omitted)
    if same is None:
        return Submission(state={"omitted": list(changes.omitted)})
    before.update({path: FileState(_FILE, data) for path, data in same.items()})
    after.update({path: before[path] for path in same})
    pristine = {path: state.data for path in row.paths if (state := before[path])}
    for path, data in row.prepared(pristine).items():
        before[path] = None if data is None else FileState(_FILE, data)
    patch = await make_patch(_present(before), _present(after))
    return Submission(patch=patch, state={"omitted": list(changes.omitted)})


async def verify(task: Task, submission: Submission, open_sandbox: OpenSandbox) -> Score:
    """Apply the patch in a fresh sandbox and run the hidden tests there."""
    row = row_of(task)
    if not submission.patch:
        return _nothing(row, "nothing changed", 0)
    async with open_sandbox(row.spec) as sandbox:
        expected = _remeasured.known(task, row, sandbox.description)
        if expected is not None:
            return await _judged(row, expected, submission, sandbox)
        description = dict(sandbox.description)
    # Nobody holds a sandbox while waiting for another.
    expected = await _remeasured.measure(task, row, description, open_sandbox)
    async with open_sandbox(row.spec) as sandbox:
        return await _judged(row, expected, submission, sandbox)


async def solve(task: Task, open_sandbox: OpenSandbox) -> tuple[ToolCall, ...]:
    """Work the repair out from the pinned source, which no task row holds."""
    row = row_of(task)
    async with open_sandbox(row.spec) as sandbox:
        files = list(dict.fromkeys(bug.file for bug in row.bugs))
        pristine = await read_all(sandbox, row.workdir, files)
    broken = mutate(pristine, row.bugs)
    edits = [
        ToolCall(id=f"{file}:{number}", name="edit", arguments={"path": file, "old": o, "new": n})
        for file in files
        for number, (o, n) in enumerate(inverse_edits(broken[file], pristine[file]))
    ]
    return (*edits, ToolCall(id="submit", name="submit"))


async def _judged(
    row: Row, expected: Expectations, submission: Submission, sandbox: Sandbox
) -> Score:
    size = len(submission.patch)
    await break_library(sandbox, row)
    problem = await apply_patch(sandbox, submission.patch, row.workdir)
    if problem:
        return _nothing(row, f"the patch does not apply: {problem}", size)
    undone = {*await restore_protected(sandbox, row.workdir)} - row.hidden_tests.keys()
    pristine = await read_all(sandbox, row.workdir, expected.files)
    planted = {f: plant(data) for f, data in seal(pristine, expected.unsealed).items()}
    await write_all(sandbox, row.workdir, {f: p.data for f, p in planted.items()})
    run = await run_pytest(
        sandbox, expected.files, python=PYTHON, root=row.workdir, timeout=_patience(expected)
    )
    verdict = judge(run, expected, {file: p.names for file, p in planted.items()})
    return _score(verdict, expected, size, len(undone))


async def _read_unchanged(
    sandbox: Sandbox, workdir: str, paths: Sequence[str], omitted: Collection[str]
) -> dict[str, bytes] | None:
    """Read files that are as in the image, or None where an agent left one that nobody can read."""
    unseen = {*omitted}
    files: dict[str, bytes] = {}
    for path in paths:
        if unseen.intersection([path, *map(str, PurePosixPath(path).parents)]):
            return None
        try:
            data = await sandbox.read(posixpath.join(workdir, path))
        except PathRefused:
            return None
        if data is None:
            return None
        files[path] = data
    return files


def _patience(expected: Expectations) -> float:
    """How many seconds the tests may take: no slow machine needs this, and a hanging test does."""
    return min(300.0, 60.0 + 30.0 * expected.seconds)


def _present(files: Mapping[str, FileState | None]) -> dict[str, FileState]:
    return {path: state for path, state in files.items() if state is not None}


def _nothing(row: Row, reason: str, patch_bytes: int) -> Score:
    return _score(Verdict(0, 0, "", reason), row.expected, patch_bytes, 0)


def _score(verdict: Verdict, expected: Expectations, patch_bytes: int, undone: int) -> Score:
    wanted = len(expected.fail_to_pass), len(expected.pass_to_pass)
    passed = not verdict.reason and wanted == (verdict.fail_to_pass, verdict.pass_to_pass)
    return Score(
        reward=float(passed),
        passed=passed,
        metrics={
            "fail_to_pass": verdict.fail_to_pass / wanted[0],
            "pass_to_pass": verdict.pass_to_pass / wanted[1],
            "forged": float(bool(verdict.forged)),
            "patch_bytes": patch_bytes,
            "undone_paths": undone,
        },
        details=verdict.reason,
    )
