"""The verifier and the tools over a directory and real processes, without isolation."""

import asyncio
import subprocess
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from gymsuite import (
    Action,
    Environment,
    Episode,
    ExecResult,
    Message,
    PathRefused,
    Registry,
    Sandbox,
    SandboxDead,
    SandboxSpec,
    Score,
    Submission,
    Task,
    ToolCall,
    VerifierError,
)
from gymsuite.sandbox.image import Image
from gymsuite.sandbox.protocol import (
    Change,
    Changes,
    FileState,
    OnOutput,
    Process,
    SandboxStats,
)

EVENS = "def numbers_evens(numbers):\n    return [n for n in numbers if n % 2 == 0]\n"


@dataclass
class Directory:
    """A sandbox that is a directory of this machine; only for code that the tests wrote."""

    root: Path
    python: str = sys.executable
    dead: bool = False

    @property
    def description(self) -> Mapping[str, object]:
        return {}

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
        if self.dead:
            raise SandboxDead("lost")
        assert command[0] == "python3"
        run = await asyncio.to_thread(
            subprocess.run,
            [self.python, *command[1:]],
            input=stdin,
            capture_output=True,
            cwd=self.root,
            timeout=timeout,
            check=False,
        )
        return ExecResult(run.returncode, run.stdout, run.stderr)

    async def spawn(
        self,
        command: str | Sequence[str],
        *,
        cwd: str | None = None,
        env: Mapping[str, str] | None = None,
        user: str | None = None,
    ) -> Process:
        raise NotImplementedError

    async def upload(self, source: Path, target: str) -> None:
        raise NotImplementedError

    async def download(
        self, source: str, target: Path, *, max_bytes: int = 0, max_files: int = 0
    ) -> None:
        raise NotImplementedError

    async def snapshot(self) -> Image:
        raise NotImplementedError

    async def read(self, path: str, *, max_bytes: int = 1 << 20) -> bytes | None:
        file = self.root / path
        return file.read_bytes() if file.is_file() else None

    async def write(self, path: str, data: bytes, *, mode: int = 0o644) -> None:
        try:
            (self.root / path).write_bytes(data)
        except OSError as error:
            raise PathRefused(str(error)) from error

    async def changes(self, root: str, *, max_bytes: int = 1 << 20) -> Changes:
        files = [path for path in sorted(self.root.iterdir()) if path.is_file()]
        large = [path for path in files if path.stat().st_size > max_bytes]
        return Changes(
            tuple(
                Change(f"{root}/{path.name}", None, FileState(0o100644, path.read_bytes()))
                for path in files
                if path not in large
            ),
            tuple(f"{root}/{path.name}" for path in large),
        )

    async def stats(self) -> SandboxStats:
        return SandboxStats(0.0)


@dataclass
class Directories:
    """Opens a new `Directory` each time."""

    root: Path
    python: str = sys.executable
    dead: bool = False
    count: int = 0

    @asynccontextmanager
    async def open(self, spec: SandboxSpec) -> AsyncIterator[Sandbox]:
        assert spec.image == "base"
        self.count += 1
        folder = self.root / str(self.count)
        folder.mkdir()
        yield Directory(folder, self.python, self.dead)


@pytest.fixture(scope="module")
def warmup() -> Environment:
    return Registry.default().load("coding/warmup-v1")


@pytest.fixture
def directories(tmp_path: Path) -> Directories:
    return Directories(tmp_path)


def task_named(warmup: Environment, name: str) -> Task:
    return next(task for task in warmup.tasks if task.id == name)


def score_of(warmup: Environment, directories: Directories, source: str) -> Score:
    task = task_named(warmup, "numbers-evens")
    submission = Submission(files={"solution.py": source.encode()})
    return asyncio.run(warmup.verify(task, submission, directories.open))


def use(name: str, **arguments: object) -> Action:
    return Message(role="assistant", tool_calls=(ToolCall(name=name, arguments=arguments),))


def test_every_solution_passes(warmup: Environment, directories: Directories) -> None:
    async def check(task: Task) -> None:
        source = str(task.solution[0].arguments["code"]).encode()
        submission = Submission(files={"solution.py": source})
        score = await warmup.verify(task, submission, directories.open)
        assert (score.reward, score.passed) == (1.0, True), task.id

    async def check_some() -> None:
        for task in warmup.tasks[::19]:
            await check(task)

    asyncio.run(check_some())


def test_nothing_handed_in_is_zero_and_opens_no_sandbox(
    warmup: Environment, directories: Directories
) -> None:
    task = task_named(warmup, "numbers-evens")
    score = asyncio.run(warmup.verify(task, Submission(), directories.open))
    assert (score.reward, score.passed, directories.count) == (0.0, False, 0)


def test_a_function_that_is_right_in_part_gets_its_share(
    warmup: Environment, directories: Directories
) -> None:
    score = score_of(
        warmup, directories, EVENS + "    \n" + EVENS.replace("% 2 == 0", "% 2 == 0 and n > 0")
    )
    assert 0 < score.reward < 1
    assert not score.passed
    assert score.metrics["tests_passed"] == score.reward * 20


HALF = EVENS.replace("    return", "    if len(numbers) > 5:\n        {}\n    return")


@pytest.mark.parametrize(
    "misdeed",
    [
        "raise ValueError",
        "raise SystemExit(0)",
        "import os; os._exit(0)",
        "import os, signal; os.kill(os.getpid(), signal.SIGKILL)",
        "while True: pass",
        "return 'x' * 10**6",
        "bytearray(10**10)",
        "return {1, 2}",
        "return float('nan')",
        "return len",
        "x = []; x.append(x); return x",
        "import os; os.close(0); os.close(1); os.close(2); [os.close(n) for n in range(3, 99)]",
    ],
)
def test_a_misdeed_costs_only_the_calls_it_happens_in(
    warmup: Environment, directories: Directories, misdeed: str
) -> None:
    task = task_named(warmup, "numbers-evens")
    honest = sum(len(call) <= 5 for call in task.hidden["calls"])
    assert 0 < honest < 20
    score = score_of(warmup, directories, HALF.format(misdeed))
    assert score.metrics["tests_passed"] == honest


@pytest.mark.parametrize(
    "source",
    [
        "",
        "syntax error(",
        "numbers_evens = 3",
        "raise SystemExit",
        "def numbers_evens(): return []",
        "def numbers_evens(numbers): return None",
        "\0",
    ],
)
def test_a_file_that_does_not_work_is_zero(
    warmup: Environment, directories: Directories, source: str
) -> None:
    assert score_of(warmup, directories, source).reward == 0.0


def test_printing_and_global_state_do_not_disturb_later_calls(
    warmup: Environment, directories: Directories
) -> None:
    source = (
        "import os, sys\ncalls = 0\nprint('0 value []')\n"
        "def numbers_evens(numbers):\n"
        "    global calls\n    calls += 1\n"
        "    print('ready', file=sys.stderr); os.write(1, b'3 value []\\n' * 999)\n"
        "    return [n for n in numbers if n % 2 == 0] if calls == 1 else None\n"
    )
    assert score_of(warmup, directories, source).passed


def test_a_forged_line_on_the_runners_own_output_gains_nothing(
    warmup: Environment, directories: Directories
) -> None:
    source = (
        "import os\n"
        "def numbers_evens(numbers):\n"
        "    with open(f'/proc/{os.getppid()}/fd/1', 'wb', buffering=0) as out:\n"
        "        for n in range(20):\n"
        "            out.write(b'%d value [0]\\n%d value true\\n' % (n, n))\n"
        "    return None\n"
    )
    task = task_named(warmup, "numbers-evens")
    assert score_of(warmup, directories, source).reward == task.hidden["results"].count([0]) / 20


def test_a_caller_that_is_killed_is_the_submissions_own_loss(
    warmup: Environment, directories: Directories
) -> None:
    source = "import os\ndef numbers_evens(numbers):\n    os.kill(os.getppid(), 9)\n"
    assert score_of(warmup, directories, source).reward == 0.0


def test_types_count(warmup: Environment, directories: Directories) -> None:
    source = EVENS.replace("[n for", "[float(n) for")
    task = task_named(warmup, "numbers-evens")
    empty = task.hidden["results"].count([])
    assert score_of(warmup, directories, source).metrics["tests_passed"] == empty


def test_a_python_that_does_not_start_is_no_score(
    warmup: Environment, directories: Directories
) -> None:
    directories.python = "/bin/false"
    with pytest.raises(VerifierError, match="could not be made"):
        score_of(warmup, directories, EVENS)


def test_a_sandbox_that_is_lost_is_no_score(warmup: Environment, directories: Directories) -> None:
    directories.dead = True
    with pytest.raises(SandboxDead):
        score_of(warmup, directories, EVENS)


def test_an_episode_from_a_wrong_try_to_full_reward(
    warmup: Environment, directories: Directories
) -> None:
    actions = (
        use("run_examples"),
        use("write_solution", code=EVENS.replace("== 0", "== 1")),
        use("run_examples"),
        use("write_solution", code=EVENS),
        use("run_examples"),
        use("submit"),
    )

    async def play() -> tuple[list[str], float]:
        async with Episode(warmup, directories.open) as episode:
            await episode.reset(task_named(warmup, "numbers-evens"), 0)
            steps = [await episode.step(action) for action in actions]
        return [step.observation.messages[0].text for step in steps], steps[-1].reward

    texts, reward = asyncio.run(play())
    assert "No such file" in texts[0]
    assert texts[1].startswith("wrote solution.py")
    assert "expected" in texts[2]
    assert texts[4].count(": right") == 2
    assert reward == 1.0


def test_a_directory_in_place_of_the_file_is_the_agents_mistake(
    warmup: Environment, directories: Directories
) -> None:
    trap = (
        "import os\ndef numbers_evens(n):\n    os.remove('solution.py'); os.mkdir('solution.py')\n"
    )

    async def play() -> tuple[str, float]:
        async with Episode(warmup, directories.open) as episode:
            await episode.reset(task_named(warmup, "numbers-evens"), 0)
            await episode.step(use("write_solution", code=trap))
            await episode.step(use("run_examples"))
            step = await episode.step(use("write_solution", code=EVENS))
            return step.observation.messages[0].text, (await episode.step(use("submit"))).reward

    text, reward = asyncio.run(play())
    assert text.startswith("error: ")
    assert "solution.py" in text
    assert reward == 0.0


def test_a_solution_that_is_too_large_is_refused(
    warmup: Environment, directories: Directories
) -> None:
    async def play() -> str:
        async with Episode(warmup, directories.open) as episode:
            await episode.reset(task_named(warmup, "numbers-evens"), 0)
            step = await episode.step(use("write_solution", code="#" * 100_000))
            return step.observation.messages[0].text

    assert "too many for one function" in asyncio.run(play())


def test_agent_and_verifier_get_the_same_kind_of_sandbox(
    warmup: Environment, tmp_path: Path
) -> None:
    specs: list[SandboxSpec] = []

    @asynccontextmanager
    async def open_sandbox(spec: SandboxSpec) -> AsyncIterator[Sandbox]:
        specs.append(spec)
        folder = tmp_path / str(len(specs))
        folder.mkdir()
        yield Directory(folder)

    async def play() -> None:
        async with Episode(warmup, open_sandbox) as episode:
            await episode.reset(warmup.tasks[0], 0)
            await episode.step(use("write_solution", code="x"))
            await episode.step(use("submit"))

    asyncio.run(play())
    assert specs == [warmup.sandbox, warmup.sandbox]
