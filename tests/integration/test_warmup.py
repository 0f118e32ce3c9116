"""coding/warmup-v1 and the TRL adapter in real sandboxes."""

import asyncio
import subprocess
import sys
from typing import Any

import pytest

from gymsuite import Environment, Message, OpenSandbox, Registry, Score, Submission, Task, ToolCall
from gymsuite.episode import Episode
from gymsuite.suite import default_cache, suite_root

from .conftest import InSuite

EVENS = "def numbers_evens(numbers):\n    return [n for n in numbers if n % 2 == 0]\n"


@pytest.fixture(scope="module")
def warmup() -> Environment:
    return Registry.default().load("coding/warmup-v1")


@pytest.fixture(scope="module")
def evens(warmup: Environment) -> Task:
    return next(task for task in warmup.tasks if task.id == "numbers-evens")


def test_every_solution_passes(warmup: Environment, in_suite: InSuite) -> None:
    async def main(open_sandbox: OpenSandbox) -> list[str]:
        async def passes(task: Task) -> bool:
            async with Episode(warmup, open_sandbox) as episode:
                await episode.reset(task, 0)
                for call in task.solution:
                    step = await episode.step(Message(role="assistant", tool_calls=(call,)))
            return bool(step.info["passed"])

        return [task.id for task in warmup.tasks[::10] if not await passes(task)]

    assert in_suite(main) == []


@pytest.mark.parametrize(
    "misdeed",
    [
        "import os; os.kill(-1, 9)",
        "import os; [os.fork() for _ in range(9)]; import time; time.sleep(99)",
        "import os; os.system('yes > /proc/%d/fd/1 & sleep 0.2' % os.getppid())",
    ],
)
def test_a_hostile_submission_gains_nothing_and_is_scored(
    warmup: Environment, evens: Task, in_suite: InSuite, misdeed: str
) -> None:
    honest = sum(len(call) <= 5 for call in evens.hidden["calls"])
    score = score_of(warmup, evens, in_suite, misdeed)
    assert not score.passed
    assert score.metrics["tests_passed"] <= honest


def test_a_process_that_is_left_behind_holds_up_nothing(
    warmup: Environment, evens: Task, in_suite: InSuite
) -> None:
    stray = "import os, time; os.fork() or (os.setsid(), time.sleep(99), os._exit(0))"
    assert score_of(warmup, evens, in_suite, stray).passed


def score_of(warmup: Environment, evens: Task, in_suite: InSuite, misdeed: str) -> Score:
    """Judge a solution that does something else as well, in about half of the calls."""
    source = EVENS.replace("    return", f"    if len(numbers) > 5:\n        {misdeed}\n    return")

    async def main(open_sandbox: OpenSandbox) -> Score:
        submission = Submission(files={"solution.py": source.encode()})
        return await warmup.verify(evens, submission, open_sandbox)

    score: Score = in_suite(main)
    return score


@pytest.mark.parametrize(
    "trap",
    [
        "import os; os.remove('solution.py'); os.mkdir('solution.py')",
        "open('solution.py', 'w').write('#' * 10**7)",
        "import os; os.remove('solution.py'); os.mkfifo('solution.py')",
        "import os; os.remove('solution.py'); os.symlink('/etc/passwd', 'solution.py')",
    ],
)
def test_what_is_no_reasonable_file_is_no_solution(
    warmup: Environment, evens: Task, in_suite: InSuite, trap: str
) -> None:
    code = f"def numbers_evens(numbers):\n    {trap}\n"

    async def main(open_sandbox: OpenSandbox) -> Any:
        async with Episode(warmup, open_sandbox) as episode:
            await episode.reset(evens, 0)
            for call in (
                ToolCall(name="write_solution", arguments={"code": code}),
                ToolCall(name="run_examples"),
                ToolCall(name="submit"),
            ):
                await episode.step(Message(role="assistant", tool_calls=(call,)))
            return episode.submission, episode.score

    submission, score = in_suite(main)
    assert submission.files == {}
    assert score.details == "there is no solution.py"


ABANDONED = """
import os, sys
from gymsuite.adapters.trl import environment_class, rows
factory = environment_class("coding/warmup-v1", provider="local")
instances = [factory() for _ in range(3)]
for instance in instances:
    instance.reset(**rows("coding/warmup-v1")[0])
    print(instance.write_solution(code="pass"), file=sys.stderr)
print(os.getpid())
"""


def test_an_interpreter_that_exits_in_the_middle_of_episodes_leaves_nothing(
    in_suite: InSuite,
) -> None:
    in_suite(lambda _: asyncio.sleep(0))  # skips where there is no provider
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", ABANDONED],
        capture_output=True,
        text=True,
        timeout=300,
        check=True,
        cwd=suite_root(),
    )
    assert done.stderr == "wrote solution.py (4 bytes)\n" * 3
    pid = done.stdout.strip()
    assert list((default_cache() / "live").glob(f"{pid}-*")) == []
