"""Submissions that try to be scored without a repair: each scores what doing nothing scores.

Each forgery is what an agent could leave in its checkout. The code in them is hostile on purpose.
"""

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from gymsuite import OpenSandbox, Registry, Sandbox, Score, Submission
from gymsuite.authoring.redteam.corpus import CHEATS

InSuite = Callable[[Callable[[OpenSandbox], Awaitable[Any]]], Any]

PYBUGS = Registry.default().load("coding/pybugs-v1")
TASK = next(task for task in PYBUGS.tasks if task.id == "toolz-1")
PACKAGE = "toolz/__init__.py"
TARGET = "toolz/itertoolz.py"

IN_PROCESS = {name: cheat.code for name, cheat in CHEATS.items() if cheat.code}
PASS_EVERYTHING = {name for name, cheat in CHEATS.items() if cheat.passes_everything}

# A sample; `gymsuite check --red-team coding/pybugs-v1` plays them all.
SAMPLE = [name for at, name in enumerate(IN_PROCESS) if name in PASS_EVERYTHING or at % 3 == 0]
FILES = [name for name, cheat in CHEATS.items() if cheat.files][::2]
COMMANDS = [name for name, cheat in CHEATS.items() if cheat.command][::2]


async def left_behind(
    open_sandbox: OpenSandbox, act: Callable[[Sandbox], Awaitable[None]]
) -> Submission:
    assert TASK.sandbox is not None
    assert PYBUGS.prepare is not None
    assert PYBUGS.collect is not None
    async with open_sandbox(TASK.sandbox) as sandbox:
        await PYBUGS.prepare(TASK, sandbox)
        await act(sandbox)
        return await PYBUGS.collect(TASK, sandbox)


async def scored(open_sandbox: OpenSandbox, act: Callable[[Sandbox], Awaitable[None]]) -> Score:
    submission = await left_behind(open_sandbox, act)
    return await PYBUGS.verify(TASK, submission, open_sandbox)


async def append(sandbox: Sandbox, path: str, text: str) -> None:
    old = await sandbox.read(path)
    assert old is not None
    await sandbox.write(path, old + b"\n\n" + text.encode())


async def run(sandbox: Sandbox, command: str) -> None:
    result = await sandbox.exec(command, timeout=60)
    assert result.exit_code == 0, result.output


def assert_like_nothing(score: Score) -> None:
    assert (score.reward, score.passed) == (0.0, False), score
    assert score.metrics["fail_to_pass"] == 0.0, score


@pytest.mark.parametrize("forgery", SAMPLE)
def test_code_in_the_judged_process_cannot_forge_a_pass(in_suite: InSuite, forgery: str) -> None:
    async def body(open_sandbox: OpenSandbox) -> Score:
        return await scored(open_sandbox, lambda s: append(s, PACKAGE, IN_PROCESS[forgery]))

    score = in_suite(body)

    assert_like_nothing(score)
    if forgery in PASS_EVERYTHING:
        assert score.metrics["forged"] == 1.0
        assert score.details.startswith("the run was tampered with: ")


@pytest.mark.parametrize(
    "forgery",
    ["the reporter's channel is used to send passes", "every value equals every other"],
)
def test_code_in_the_file_under_repair_cannot_either(in_suite: InSuite, forgery: str) -> None:
    async def body(open_sandbox: OpenSandbox) -> Score:
        return await scored(open_sandbox, lambda s: append(s, TARGET, IN_PROCESS[forgery]))

    assert_like_nothing(in_suite(body))


@pytest.mark.parametrize("forgery", FILES)
def test_files_beside_the_library_cannot_forge_a_pass(in_suite: InSuite, forgery: str) -> None:
    async def act(sandbox: Sandbox) -> None:
        for path, text in (CHEATS[forgery].files or {}).items():
            await sandbox.write(path, text.encode(), mode=0o755)

    async def body(open_sandbox: OpenSandbox) -> Score:
        return await scored(open_sandbox, act)

    assert_like_nothing(in_suite(body))


@pytest.mark.parametrize("forgery", COMMANDS)
def test_what_an_agent_does_to_its_checkout_cannot_forge_a_pass(
    in_suite: InSuite, forgery: str
) -> None:
    async def act(sandbox: Sandbox) -> None:
        await sandbox.exec(["bash", "-c", CHEATS[forgery].command], timeout=60)

    async def body(open_sandbox: OpenSandbox) -> Score:
        return await scored(open_sandbox, act)

    assert_like_nothing(in_suite(body))


def test_a_forgery_does_not_spoil_a_repair_that_comes_with_harmless_files(
    in_suite: InSuite,
) -> None:
    """Protected paths are put back, and the rest of the submission counts."""

    async def body(open_sandbox: OpenSandbox) -> Score:
        assert PYBUGS.solve is not None
        calls = await PYBUGS.solve(TASK, open_sandbox)

        async def act(sandbox: Sandbox) -> None:
            for call in (call.arguments for call in calls if call.name == "edit"):
                data = await sandbox.read(call["path"])
                assert data is not None
                new = data.replace(call["old"].encode(), call["new"].encode())
                await sandbox.write(call["path"], new)
            await run(
                sandbox, "rm -rf toolz/tests; echo garbage > conftest.py; echo x > pytest.ini"
            )

        return await scored(open_sandbox, act)

    score = in_suite(body)

    assert (score.reward, score.details) == (1.0, "")
    assert score.metrics["undone_paths"] > 0


def test_doing_nothing_is_told_from_a_patch_that_does_not_apply(in_suite: InSuite) -> None:
    async def body(open_sandbox: OpenSandbox) -> tuple[Score, ...]:
        patches = (b"", b"--- a/toolz/x.py\n+++ b/toolz/x.py\n@@ -1 +1 @@\n-one\n+two\n", b"junk")
        return tuple(
            [await PYBUGS.verify(TASK, Submission(patch=p), open_sandbox) for p in patches]
        )

    nothing, stale, junk = in_suite(body)

    assert (nothing.reward, nothing.details) == (0.0, "nothing changed")
    assert stale.reward == junk.reward == 0.0
    assert stale.details.startswith("the patch does not apply: error: toolz/x.py: No such file")
    assert junk.details.startswith("the patch does not apply: ")


def test_a_patch_cannot_write_outside_of_the_checkout(in_suite: InSuite) -> None:
    outside = (
        b"diff --git a/../../opt/venv/x.pth b/../../opt/venv/x.pth\nnew file mode 100644\n"
        b"--- /dev/null\n+++ b/../../opt/venv/x.pth\n@@ -0,0 +1 @@\n+import os\n"
    )

    async def body(open_sandbox: OpenSandbox) -> Score:
        return await PYBUGS.verify(TASK, Submission(patch=outside), open_sandbox)

    assert "invalid path" in in_suite(body).details
