"""A run makes what is missing, keeps all it made, and never scores what broke."""

import asyncio
import json
import subprocess
import sys
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from gymsuite import (
    Environment,
    Message,
    ModelError,
    Observation,
    OpenSandbox,
    Sandbox,
    SandboxError,
    SandboxSpec,
    Score,
    Submission,
    Task,
    UsageError,
)
from gymsuite.agents import AgentSource, Seat
from gymsuite.rollout import AgentFactory
from gymsuite.runs.directory import FORMAT_VERSION, EnvironmentRecord, Manifest, RunDirectory
from gymsuite.runs.log import Key, read_rows
from gymsuite.runs.plan import Plan, make_plan
from gymsuite.runs.report import RunReport, make_report
from gymsuite.runs.run import open_run
from gymsuite.runs.runner import Attempt, Hopeless, Record, Runner
from gymsuite.types import TokenUsage


async def _verify(task: Task, submission: Submission, _: OpenSandbox) -> Score:
    passed = submission.answer == "yes"
    return Score(reward=float(passed), passed=passed)


@asynccontextmanager
async def _no_sandbox(spec: SandboxSpec) -> AsyncIterator[Sandbox]:
    raise SandboxError("there are no sandboxes here")
    yield


def _environment(tasks: int = 5, prompt: str = "p") -> Environment:
    made = tuple(Task(id=f"t{number}", prompt=prompt) for number in range(tasks))
    return Environment(id="test/yes-v1", tasks=made, verifier=_verify)


Script = Callable[[str, int], str]
"""From a task and the how-manieth try at it to what the agent says; it may raise."""


@dataclass
class _Players:
    """A source of agents that say what a script says, and a count of their tries."""

    script: Script = lambda _task, _attempt: "yes"
    tries: Counter[tuple[str, int]] = field(default_factory=Counter)
    at_once: int = 0
    most_at_once: int = 0

    @property
    def source(self) -> AgentSource:
        return AgentSource("script", {}, self._seat)

    def _seat(self, seat: Seat) -> AgentFactory:
        return lambda task: _Player(self, task, seat.repeat)


@dataclass
class _Player:
    players: _Players
    task: Task
    repeat: int

    async def act(self, observation: Observation) -> Message:
        players = self.players
        players.tries[self.task.id, self.repeat] += 1
        players.at_once += 1
        players.most_at_once = max(players.at_once, players.most_at_once)
        try:
            await asyncio.sleep(0.001)
            said = players.script(self.task.id, players.tries[self.task.id, self.repeat])
        finally:
            players.at_once -= 1
        return Message(role="assistant", content=said, usage=TokenUsage(input_tokens=10))


def _manifest(plan: Plan, **changes: object) -> Manifest:
    environments = {
        e.id: EnvironmentRecord(tasks=len(plan.tasks[e.id]), digest=plan.digest(e.id))
        for e in plan.environments
    }
    manifest = Manifest(
        gymsuite="0",
        created="now",
        agent="script",
        environments=environments,
        repeats=plan.repeats,
        seed=plan.seed,
    )
    return manifest.model_copy(update=changes)


async def _work(
    path: Path,
    players: _Players,
    plan: Plan,
    *,
    resume: bool = False,
    attempts: int = 3,
    concurrency: int = 4,
    failed_too: bool = False,
    watch: Record = lambda *_: None,
) -> RunReport:
    async with open_run(path, _manifest(plan), resume=resume) as opened:
        jobs = opened.jobs(plan, attempts=attempts, failed_too=failed_too)
        await opened.play(Runner(players.source, _no_sandbox, concurrency), jobs, watch)
        return make_report(opened, plan, agent="script")


def _run(path: Path, players: _Players, plan: Plan, **how: Any) -> RunReport:
    return asyncio.run(_work(path, players, plan, **how))


def _rows(path: Path) -> list[tuple[Key, int, bool]]:
    rows = read_rows(RunDirectory(path).rollouts)
    return [(row.key, row.attempt, row.score is not None) for _, row in rows]


def test_a_run_makes_every_rollout_once(tmp_path: Path) -> None:
    players, plan = _Players(), make_plan([_environment()], repeats=3)
    report = _run(tmp_path / "r", players, plan)
    assert sorted(key for key, _, _ in _rows(tmp_path / "r")) == sorted(s.key for s in plan)
    assert set(players.tries.values()) == {1}
    assert report.complete
    assert (report.total.scored, report.total.solved, report.total.mean_reward) == (15, 15, 1.0)
    assert report.total.usage.input_tokens == 150


def test_no_more_than_so_many_play_at_once(tmp_path: Path) -> None:
    players = _Players()
    _run(tmp_path / "r", players, make_plan([_environment(40)]), concurrency=7)
    assert players.most_at_once == 7


def test_what_failed_for_now_is_tried_again_and_both_are_kept(tmp_path: Path) -> None:
    def script(task: str, attempt: int) -> str:
        if task == "t1" and attempt == 1:
            raise ModelError("busy")
        return "yes"

    finals: list[tuple[str, int, bool]] = []
    players, plan = _Players(script), make_plan([_environment(2)])
    report = _run(
        tmp_path / "r",
        players,
        plan,
        watch=lambda a: finals.append((a.rollout.task, a.rollout.attempt, a.final)),
    )
    rows = [(key.task, attempt, scored) for key, attempt, scored in _rows(tmp_path / "r")]
    assert sorted(rows) == [("t0", 0, True), ("t1", 0, False), ("t1", 1, True)]
    assert sorted(finals) == [("t0", 0, True), ("t1", 0, False), ("t1", 1, True)]
    assert report.complete
    assert report.total.failures_by_kind == {}


def test_a_failure_is_no_score_of_zero(tmp_path: Path) -> None:
    def script(task: str, attempt: int) -> str:
        if task == "t1":
            raise ModelError("no such key", retryable=False)
        return "yes"

    players, plan = _Players(script), make_plan([_environment(2)])
    report = _run(tmp_path / "r", players, plan)
    assert players.tries["t1", 0] == 1
    assert report.total.mean_reward == 1.0
    assert report.total.failures_by_kind == {"model": 1}
    assert report.failure_messages == {"model": "no such key"}
    assert not report.complete


def test_attempts_end(tmp_path: Path) -> None:
    def script(task: str, attempt: int) -> str:
        raise ModelError("busy")

    players, plan = _Players(script), make_plan([_environment(1)])
    report = _run(tmp_path / "r", players, plan, attempts=2)
    assert [attempt for _, attempt, _ in _rows(tmp_path / "r")] == [0, 1]
    assert (report.total.failures, report.total.missing, report.total.scored) == (1, 0, 0)
    assert report.total.mean_reward is None


def test_a_broken_agent_is_a_failure(tmp_path: Path) -> None:
    def script(task: str, attempt: int) -> str:
        raise KeyError(task)

    report = _run(tmp_path / "r", _Players(script), make_plan([_environment(1)]))
    assert report.total.failures_by_kind == {"agent": 1}


def test_resuming_does_only_what_is_missing(tmp_path: Path) -> None:
    plan = make_plan([_environment()], repeats=2)

    class Enough(Exception):  # noqa: N818 - a signal
        pass

    def script(task: str, attempt: int) -> str:
        return "yes" if task != "t3" else "no"

    done = 0

    def watch(_: Attempt) -> None:
        nonlocal done
        done += 1
        if done == 4:
            raise Enough

    first = _Players(script)
    with pytest.raises(Enough):
        _run(tmp_path / "r", first, plan, watch=watch, concurrency=1)
    kept = _rows(tmp_path / "r")
    assert len(kept) == 4
    second = _Players(script)
    report = _run(tmp_path / "r", second, plan, resume=True)
    assert sum(second.tries.values()) == 6
    rows = _rows(tmp_path / "r")
    assert rows[:4] == kept
    assert len({key for key, _, _ in rows}) == len(rows) == 10
    assert report.total.solved == 8
    assert report.total.usage.input_tokens == 100
    third = _Players(script)
    assert _run(tmp_path / "r", third, plan, resume=True).total == report.total
    assert not third.tries


def test_a_resumed_run_does_not_repeat_what_cannot_be_helped_unless_told(tmp_path: Path) -> None:
    def broken(task: str, attempt: int) -> str:
        raise ModelError("no such key", retryable=False)

    plan = make_plan([_environment(1)])
    _run(tmp_path / "r", _Players(broken), plan)
    idle = _Players()
    assert not _run(tmp_path / "r", idle, plan, resume=True).complete
    assert not idle.tries
    assert _run(tmp_path / "r", idle, plan, resume=True, failed_too=True).complete
    assert [attempt for _, attempt, _ in _rows(tmp_path / "r")] == [0, 1]


def test_more_attempts_go_on_where_fewer_ended(tmp_path: Path) -> None:
    def script(task: str, attempt: int) -> str:
        raise ModelError("busy")

    plan = make_plan([_environment(1)])
    _run(tmp_path / "r", _Players(script), plan, attempts=1)
    again = _Players()
    report = _run(tmp_path / "r", again, plan, attempts=2, resume=True)
    assert report.complete
    assert report.total.usage.model_calls == 1
    assert [attempt for _, attempt, _ in _rows(tmp_path / "r")] == [0, 1]


def test_a_changed_task_runs_again(tmp_path: Path) -> None:
    _run(tmp_path / "r", _Players(), make_plan([_environment(2)]))
    changed = make_plan([_environment(2, prompt="q")])
    again = _Players(lambda *_: "no")
    report = _run(tmp_path / "r", again, changed, resume=True)
    assert sum(again.tries.values()) == 2
    assert (report.total.scored, report.total.solved) == (2, 0)


def test_a_directory_with_something_in_it_is_not_reused(tmp_path: Path) -> None:
    plan = make_plan([_environment(1)])
    _run(tmp_path / "r", _Players(), plan)
    with pytest.raises(UsageError, match="--resume"):
        _run(tmp_path / "r", _Players(), plan)
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "thesis.txt").write_text("precious")
    with pytest.raises(UsageError, match="not empty"):
        _run(tmp_path / "other", _Players(), plan)
    with pytest.raises(UsageError, match="no run directory"):
        _run(tmp_path / "other", _Players(), plan, resume=True)
    assert {path.name for path in (tmp_path / "other").iterdir()} <= {"thesis.txt", "lock"}


def test_a_file_is_no_run_directory(tmp_path: Path) -> None:
    plan = make_plan([_environment()])
    (tmp_path / "file").touch()
    for path in (tmp_path / "file", tmp_path / "file" / "below"):
        with pytest.raises(UsageError, match="it is, or lies below, a file"):
            _run(path, _Players(), plan)


def test_resuming_another_run_says_what_differs(tmp_path: Path) -> None:
    _run(tmp_path / "r", _Players(), make_plan([_environment(2)]))
    with pytest.raises(UsageError, match=r"repeats was 1 and is 2; seed was 0 and is 7"):
        _run(
            tmp_path / "r", _Players(), make_plan([_environment(2)], repeats=2, seed=7), resume=True
        )


def test_a_run_of_another_format_is_left_alone(tmp_path: Path) -> None:
    plan = make_plan([_environment(1)])
    directory = RunDirectory(tmp_path)
    directory.write_manifest(_manifest(plan, format_version=FORMAT_VERSION + 1))
    with pytest.raises(UsageError, match=f"reads format {FORMAT_VERSION}"):
        _run(tmp_path, _Players(), plan, resume=True)


@pytest.mark.parametrize("text", ["", "{", "[]", '{"format_version": 1}'])
def test_a_damaged_manifest_is_said_to_be(tmp_path: Path, text: str) -> None:
    (tmp_path / "run.json").write_text(text)
    with pytest.raises(UsageError, match=r"run\.json is damaged"):
        _run(tmp_path, _Players(), make_plan([_environment(1)]), resume=True)


def test_two_processes_do_not_write_to_one_run(tmp_path: Path) -> None:
    plan = make_plan([_environment(1)])
    _run(tmp_path, _Players(), plan)
    code = (
        "import sys, pathlib\n"
        "from gymsuite.runs.directory import RunDirectory\n"
        "with RunDirectory(pathlib.Path(sys.argv[1])).locked():\n"
        "    print('locked', flush=True); sys.stdin.read()"
    )
    holder = subprocess.Popen(
        [sys.executable, "-c", code, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert holder.stdout is not None
    assert holder.stdout.readline() == b"locked\n"
    with pytest.raises(UsageError, match="another process"):
        _run(tmp_path, _Players(), plan, resume=True)
    holder.communicate()
    assert _run(tmp_path, _Players(), plan, resume=True).complete


def test_a_run_of_nothing_but_failures_is_given_up(tmp_path: Path) -> None:
    def script(task: str, attempt: int) -> str:
        raise ModelError("nobody there", retryable=False)

    players, plan = _Players(script), make_plan([_environment(200)])
    with pytest.raises(Hopeless, match="nobody there"):
        _run(tmp_path / "r", players, plan)
    assert 16 <= len(_rows(tmp_path / "r")) < 50


def test_what_cannot_be_stored_is_no_score(tmp_path: Path) -> None:
    class Odd:
        async def act(self, observation: Observation) -> Message:
            return Message(role="assistant", content="yes", extra={"odd": object()})

    async def run() -> None:
        plan = make_plan([_environment(1)])
        async with open_run(tmp_path, _manifest(plan), resume=False) as opened:
            source = AgentSource("odd", {}, lambda _: lambda _: Odd())
            jobs = opened.jobs(plan, attempts=3)
            await opened.play(Runner(source, _no_sandbox), jobs, lambda *_: None)

    asyncio.run(run())
    ((_, row),) = read_rows(RunDirectory(tmp_path).rollouts)
    assert row.failure is not None
    assert row.failure.kind == "agent"
    assert "JSON" in row.failure.message


def test_a_cancelled_run_keeps_what_it_finished(tmp_path: Path) -> None:
    plan = make_plan([_environment(50)])

    async def run() -> None:
        def stop(_: Attempt) -> None:
            if len(_rows(tmp_path / "r")) == 10:
                work.cancel()

        work = asyncio.create_task(_work(tmp_path / "r", _Players(), plan, watch=stop))
        with pytest.raises(asyncio.CancelledError):
            await work

    asyncio.run(run())
    assert 10 <= len(_rows(tmp_path / "r")) < 50
    assert _run(tmp_path / "r", _Players(), plan, resume=True).complete


def test_times_of_all_commands_add_up(tmp_path: Path) -> None:
    plan = make_plan([_environment(3)])
    first = _run(tmp_path, _Players(), plan)
    second = _run(tmp_path, _Players(), plan, resume=True)
    timings = RunDirectory(tmp_path).read_timings()
    assert len(timings) == 2
    assert second.seconds > first.seconds > 0
    assert second.suite_cpu_seconds >= first.suite_cpu_seconds


def test_the_report_is_one_flat_object(tmp_path: Path) -> None:
    report = _run(tmp_path, _Players(), make_plan([_environment(3)], repeats=2))
    flat = report.flat()
    promised = {
        "run", "environments", "mean_reward", "pass_at_1", "solved", "scored", "failures",
        "seconds", "cpu_seconds",
    }  # fmt: skip
    assert promised <= flat.keys()
    assert flat["failures"] == 0
    again = json.loads(json.dumps(flat))
    assert again["environments"]["test/yes-v1"]["pass_at"] == {"1": 1.0, "2": 1.0}
