"""Repairing real libraries in real sandboxes, from reset to score."""

import asyncio
import importlib
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

import pytest

from gymsuite import (
    DefinitionError,
    Episode,
    ExecResult,
    InfrastructureError,
    Message,
    OpenSandbox,
    Registry,
    Sandbox,
    SandboxDead,
    SandboxSpec,
    Score,
    Submission,
    Task,
    VerifierError,
)
from gymsuite.sandbox.protocol import OnOutput
from gymsuite.verify.pytest_run import PytestRun, run_pytest

InSuite = Callable[[Callable[[OpenSandbox], Awaitable[Any]]], Any]

PYBUGS = Registry.default().load("coding/pybugs-v1")
MODULE = PYBUGS.verifier.__module__
TASKS = {task.id: task for task in PYBUGS.tasks}
row_of = importlib.import_module(f"{MODULE}.row").row_of
FIRST = TASKS["toolz-1"]
SAMPLE = list({(row_of(t).library, t.level): t for t in reversed(TASKS.values())}.values())[::3]


def spec_of(task: Task) -> SandboxSpec:
    assert task.sandbox is not None
    return task.sandbox


async def prepared(task: Task, sandbox: Sandbox) -> None:
    assert PYBUGS.prepare is not None
    await PYBUGS.prepare(task, sandbox)


async def collected(task: Task, sandbox: Sandbox) -> Submission:
    assert PYBUGS.collect is not None
    return await PYBUGS.collect(task, sandbox)


async def run(sandbox: Sandbox, command: str) -> str:
    result = await sandbox.exec(command, timeout=60)
    assert result.exit_code == 0, result.output
    return result.output


async def repaired(task: Task, open_sandbox: OpenSandbox) -> tuple[Submission, Score]:
    """Let the oracle play an episode."""
    assert PYBUGS.solve is not None
    calls = await PYBUGS.solve(task, open_sandbox)
    async with Episode(PYBUGS, open_sandbox) as episode:
        await episode.reset(task, 0)
        await episode.step(Message(role="assistant", tool_calls=calls))
        assert episode.submission is not None
        assert episode.score is not None
        return episode.submission, episode.score


@pytest.mark.parametrize("task", SAMPLE, ids=lambda task: task.id)
def test_the_solution_passes_and_doing_nothing_fails(in_suite: InSuite, task: Task) -> None:
    async def body(open_sandbox: OpenSandbox) -> tuple[Score, Score]:
        _, score = await repaired(task, open_sandbox)
        async with Episode(PYBUGS, open_sandbox) as episode:
            await episode.reset(task, 0)
            await episode.step(Message(role="assistant", content="I give up"))
            assert episode.score is not None
            return score, episode.score

    gold, empty = in_suite(body)

    assert (gold.reward, gold.passed, gold.details) == (1.0, True, "")
    assert gold.metrics["fail_to_pass"] == gold.metrics["pass_to_pass"] == 1.0
    assert (empty.reward, empty.passed, empty.details) == (0.0, False, "nothing changed")


def test_a_stored_submission_scores_the_same_again(in_suite: InSuite) -> None:
    async def body(open_sandbox: OpenSandbox) -> tuple[Score, Score]:
        submission, score = await repaired(FIRST, open_sandbox)
        stored = Submission.model_validate_json(submission.model_dump_json())
        return score, await PYBUGS.verify(FIRST, stored, open_sandbox)

    first, again = in_suite(body)

    assert first == again


def test_a_change_that_repairs_nothing_is_scored_with_its_reason(in_suite: InSuite) -> None:
    async def body(open_sandbox: OpenSandbox) -> Score:
        async with open_sandbox(spec_of(FIRST)) as sandbox:
            await prepared(FIRST, sandbox)
            await run(sandbox, "echo '# a comment' >> toolz/itertoolz.py")
            submission = await collected(FIRST, sandbox)
        return await PYBUGS.verify(FIRST, submission, open_sandbox)

    score = in_suite(body)

    assert (score.reward, score.metrics["forged"]) == (0.0, 0.0)
    assert score.metrics["pass_to_pass"] == 1.0
    assert score.details.startswith("1 tests did not pass, such as toolz/tests/")


def test_a_repair_that_breaks_something_else_fails(in_suite: InSuite) -> None:
    async def body(open_sandbox: OpenSandbox) -> Score:
        assert PYBUGS.solve is not None
        calls = await PYBUGS.solve(FIRST, open_sandbox)
        edit = next(call.arguments for call in calls if call.name == "edit")
        async with open_sandbox(spec_of(FIRST)) as sandbox:
            await prepared(FIRST, sandbox)
            data = await sandbox.read(edit["path"])
            assert data is not None
            fixed = data.replace(edit["old"].encode(), edit["new"].encode())
            await sandbox.write(edit["path"], fixed + b"\n\ndef first(seq):\n    return None\n")
            submission = await collected(FIRST, sandbox)
        return await PYBUGS.verify(FIRST, submission, open_sandbox)

    score = in_suite(body)

    assert (score.reward, score.metrics["fail_to_pass"]) == (0.0, 1.0)
    assert 0 < score.metrics["pass_to_pass"] < 1


def test_reset_is_a_pure_function_of_the_task(in_suite: InSuite) -> None:
    async def body(open_sandbox: OpenSandbox) -> list[str]:
        commits = []
        for _ in range(2):
            async with open_sandbox(spec_of(FIRST)) as sandbox:
                await prepared(FIRST, sandbox)
                commits.append(await run(sandbox, "git rev-list --all; git status --porcelain"))
        return commits

    first, second = in_suite(body)

    assert first == second
    assert len(first.split()) == 1


def test_the_agent_sees_the_library_without_the_tests_that_show_its_bug(in_suite: InSuite) -> None:
    async def body(open_sandbox: OpenSandbox) -> tuple[str, str]:
        async with open_sandbox(spec_of(FIRST)) as sandbox:
            await prepared(FIRST, sandbox)
            tests = await run(sandbox, "cat toolz/tests/test_itertoolz.py")
            return tests, await run(sandbox, "python -m pytest -q toolz/tests/test_itertoolz.py")

    tests, seen = in_suite(body)

    assert "def test_isdistinct" not in tests
    assert "def test_groupby" in tests
    assert " failed" not in seen


WILD = {
    "new file.txt": b"a\nb",
    "toolz/café.py": b"# \xff\xfe\n",
    "toolz/data.bin": bytes(range(256)) * 40,
    "toolz/lines.txt": b"one\r\ntwo\r\n",
    'odd "name"\n.txt': b"x\n",
    "empty": b"",
}
WILD_COMMANDS = """
rm toolz/recipes.py && mv toolz/utils.py toolz/moved.py && chmod +x toolz/curried/operator.py
ln -s ../README.rst toolz/link && rm README.rst && printf 'no newline' > LICENSE.txt
git add -A && git -c user.name=x -c user.email=x commit -qm mine && mkdir toolz/__pycache__
echo stale > toolz/__pycache__/x.cpython-311.pyc && echo '* -text -diff' > .gitattributes
"""


LISTING = """
import json, os
found = {}
for folder, folders, names in os.walk("."):
    folders[:] = [f for f in folders if f not in (".git", "__pycache__")]
    for path in (os.path.join(folder, name) for name in names):
        mode = os.lstat(path).st_mode
        if os.path.islink(path):
            found[path] = [oct(mode), os.readlink(path)]
        else:
            with open(path, "rb") as stream:
                found[path] = [oct(mode & 0o170111), stream.read().hex()]
print(json.dumps(found))
"""


def test_a_patch_brings_everything_that_an_agent_changed_to_a_fresh_checkout(
    in_suite: InSuite,
) -> None:
    async def listing(sandbox: Sandbox) -> Any:
        done = await sandbox.exec(["python", "-B", "-c", LISTING], timeout=60)
        assert done.exit_code == 0, done.output
        return json.loads(done.stdout)

    async def body(open_sandbox: OpenSandbox) -> tuple[Any, Any]:
        async with open_sandbox(spec_of(FIRST)) as sandbox:
            await prepared(FIRST, sandbox)
            for path, data in WILD.items():
                await sandbox.write(path, data)
            await run(sandbox, WILD_COMMANDS)
            left = await listing(sandbox)
            submission = await collected(FIRST, sandbox)
        async with open_sandbox(spec_of(FIRST)) as sandbox:
            await prepared(FIRST, sandbox)
            await run(sandbox, "rm -rf .git")
            applying = importlib.import_module("gymsuite.verify.applying")
            workdir = spec_of(FIRST).workdir
            assert await applying.apply_patch(sandbox, submission.patch, workdir) == ""
            return left, await listing(sandbox)

    left, applied = in_suite(body)

    assert {path: s for path, s in left.items() if applied.get(path) != s} == {}
    assert left.keys() == applied.keys()
    assert "./toolz/café.py" in left


def test_putting_the_pinned_file_back_is_seen_although_it_is_as_in_the_image(
    in_suite: InSuite,
) -> None:
    async def body(open_sandbox: OpenSandbox) -> Score:
        file = row_of(FIRST).bugs[0].file
        async with open_sandbox(spec_of(FIRST)) as sandbox:
            pristine = await sandbox.read(file)
            assert pristine is not None
            await prepared(FIRST, sandbox)
            await sandbox.write(file, pristine)
            submission = await collected(FIRST, sandbox)
        return await PYBUGS.verify(FIRST, submission, open_sandbox)

    assert in_suite(body).reward == 1.0


class Dying:
    """A sandbox that is lost as soon as a command matches."""

    def __init__(self, sandbox: Sandbox, word: str) -> None:
        self.description = sandbox.description
        self.sandbox = sandbox
        self.word = word
        self.spawn = sandbox.spawn
        self.read = sandbox.read
        self.write = sandbox.write
        self.upload = sandbox.upload
        self.download = sandbox.download
        self.changes = sandbox.changes
        self.snapshot = sandbox.snapshot
        self.stats = sandbox.stats

    async def exec(
        self,
        command: str | Sequence[str],
        *,
        timeout: float,
        stdin: bytes = b"",
        cwd: str | None = None,
        env: Mapping[str, str] | None = None,
        user: str | None = None,
        max_output: int = 1 << 20,
        on_output: OnOutput | None = None,
    ) -> ExecResult:
        if self.word in str(command):
            raise SandboxDead("lost")
        return await self.sandbox.exec(
            command, timeout=timeout, stdin=stdin, cwd=cwd, env=env, max_output=max_output
        )


@pytest.mark.parametrize("word", ["apply", "pytest"])
def test_a_sandbox_that_is_lost_in_verification_is_a_failure_and_no_score(
    in_suite: InSuite, word: str
) -> None:
    async def body(open_sandbox: OpenSandbox) -> None:
        @asynccontextmanager
        async def open_dying(spec: SandboxSpec) -> AsyncIterator[Sandbox]:
            async with open_sandbox(spec) as sandbox:
                yield Dying(sandbox, word)

        submission, _ = await repaired(FIRST, open_sandbox)
        with pytest.raises(InfrastructureError, match="lost"):
            await PYBUGS.verify(FIRST, submission, open_dying)

    in_suite(body)


def expecting(task: Task, **changes: object) -> Task:
    """The task as if it had been measured otherwise."""
    hidden = json.loads(json.dumps(task.model_dump(mode="json")["hidden"]))
    hidden["expected"].update(changes)
    hidden["also"] = []
    return task.model_copy(update={"hidden": hidden})


def test_expectations_of_another_python_are_measured_again(in_suite: InSuite) -> None:
    wrong = dict.fromkeys(row_of(FIRST).expected.fail_to_pass, "measured elsewhere")
    elsewhere = expecting(FIRST, python="3.0.1", fail_to_pass=wrong)

    async def body(open_sandbox: OpenSandbox) -> Score:
        submission, _ = await repaired(FIRST, open_sandbox)
        return await PYBUGS.verify(elsewhere, submission, open_sandbox)

    assert in_suite(body).reward == 1.0


def test_they_are_measured_once_for_all_who_wait_and_never_where_they_are_noted(
    in_suite: InSuite,
) -> None:
    elsewhere = expecting(FIRST, python="3.0.2").model_copy(update={"id": "measured-once"})
    opened: list[SandboxSpec] = []

    async def body(open_sandbox: OpenSandbox) -> tuple[list[Score], int, Score, int]:
        @asynccontextmanager
        async def counted(spec: SandboxSpec) -> AsyncIterator[Sandbox]:
            opened.append(spec)
            async with open_sandbox(spec) as sandbox:
                python = str(sandbox.description["python"])
                yield sandbox
            pythons.append(python)

        pythons: list[str] = []
        submission, _ = await repaired(FIRST, open_sandbox)
        both = [PYBUGS.verify(elsewhere, submission, counted) for _ in range(2)]
        scores = await asyncio.gather(*both)
        asked = len(opened)
        row = row_of(elsewhere).model_copy(update={"also": (pythons[0],)})
        noted = elsewhere.model_copy(
            update={"hidden": row.model_dump(mode="json"), "id": "measured-never"}
        )
        return scores, asked, await PYBUGS.verify(noted, submission, counted), len(opened) - asked

    scores, asked, score, asked_again = in_suite(body)
    assert [one.reward for one in (*scores, score)] == [1.0, 1.0, 1.0]
    assert asked == 2 + 2 + 2, "to see the interpreter, to measure once, to judge"
    assert asked_again == 1


def test_a_task_of_which_nothing_is_left_here_says_so_with_both_versions(
    in_suite: InSuite,
) -> None:
    gone = {"toolz/tests/test_itertoolz.py::test_of_old[0]": ""}
    elsewhere = expecting(TASKS["toolz-2"], python="3.0.1", pass_to_pass=gone)
    elsewhere = elsewhere.model_copy(update={"id": "of-old"})

    async def body(open_sandbox: OpenSandbox) -> None:
        with pytest.raises(DefinitionError, match=r"'of-old' .* Python 3\.0\.1; under 3\.\d+\."):
            await PYBUGS.verify(elsewhere, Submission(patch=b"x"), open_sandbox)

    in_suite(body)


async def pytest_of(open_sandbox: OpenSandbox, code: str, timeout: float = 60) -> PytestRun:
    async with open_sandbox(spec_of(FIRST)) as sandbox:
        await sandbox.write("test_it.py", code.encode())
        return await run_pytest(
            sandbox,
            ["test_it.py"],
            python="/opt/venv/bin/python",
            root="/workspace/toolz",
            timeout=timeout,
        )


def test_a_test_that_hangs_is_cut_off_and_keeps_what_came_before(in_suite: InSuite) -> None:
    code = "def test_a(): pass\ndef test_b():\n    while True: pass\n"

    seen = in_suite(lambda open_sandbox: pytest_of(open_sandbox, code, timeout=10))

    assert (seen.timed_out, seen.finished) == (True, False)
    assert {test: o.status for test, o in seen.results.items()} == {
        "test_it.py::test_a[0]": "passed"
    }


def test_each_kind_of_outcome_is_told(in_suite: InSuite) -> None:
    code = """
import pytest, unittest
def test_pass(): pass
def test_fail(): assert 0
def test_error(missing): pass
def test_skip(): pytest.skip()
@pytest.mark.xfail
def test_xfail(): assert 0
@pytest.mark.xfail
def test_xpass(): pass
@pytest.fixture
def late():
    yield
    assert 0
def test_teardown(late): pass
@pytest.mark.parametrize("n", ["a b", "a[b]", "\\x00", "é"])
def test_many(n): assert n != "a[b]"
class TestIt(unittest.TestCase):
    def test_sub(self):
        for n in range(2):
            with self.subTest(n=n):
                self.assertEqual(n, 0)
"""

    seen = in_suite(lambda open_sandbox: pytest_of(open_sandbox, code))

    assert {test.removeprefix("test_it.py::"): o.status for test, o in seen.results.items()} == {
        "test_pass[0]": "passed",
        "test_fail[0]": "failed",
        "test_error[0]": "failed",
        "test_skip[0]": "skipped",
        "test_xfail[0]": "xfail",
        "test_xpass[0]": "xfail",
        "test_teardown[0]": "failed",
        "test_many[0]": "passed",
        "test_many[1]": "failed",
        "test_many[2]": "passed",
        "test_many[3]": "passed",
        "TestIt::test_sub[0]": "failed",
    }
    assert seen.finished
    assert not seen.disturbed


def test_what_tests_print_does_not_reach_the_channel(in_suite: InSuite) -> None:
    code = "import os\ndef test_a():\n    print(1)\n    os.write(1, b'x')\n    os.write(2, b'y')\n"

    seen = in_suite(lambda open_sandbox: pytest_of(open_sandbox, code))

    assert seen.disturbed == ""
    assert seen.finished


def test_a_runner_without_its_interpreter_is_a_failure(in_suite: InSuite) -> None:
    async def body(open_sandbox: OpenSandbox) -> None:
        async with open_sandbox(spec_of(FIRST)) as sandbox:
            with pytest.raises(VerifierError, match="did not start"):
                await run_pytest(
                    sandbox, ["x.py"], python="/bin/false", root="/workspace/toolz", timeout=20
                )

    in_suite(body)


def test_many_verifications_at_once_do_not_meet(in_suite: InSuite) -> None:
    async def body(open_sandbox: OpenSandbox) -> list[Score]:
        submission, _ = await repaired(FIRST, open_sandbox)
        patches = (submission, Submission(), submission)
        return await asyncio.gather(*(PYBUGS.verify(FIRST, s, open_sandbox) for s in patches))

    assert [score.reward for score in in_suite(body)] == [1.0, 0.0, 1.0]
