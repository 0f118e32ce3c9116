"""tools/fileops-v1 in real sandboxes: its gate, and what hostile agents leave."""

import asyncio
import importlib
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import pytest

from gymsuite import (
    Environment,
    ExecResult,
    OpenSandbox,
    Registry,
    Sandbox,
    SandboxSpec,
    Score,
    Submission,
    Task,
    ToolCall,
)
from gymsuite.suite import suite_root
from gymsuite.worlds import baselines
from gymsuite.worlds.gate import play
from gymsuite.worlds.procedural import Procedural

from .conftest import InSuite

SPLITS = ("train", "val", "test-iid", "test-ood")
FAMILIES = ("renaming", "deduping", "logs", "settings", "archives", "rights")


@pytest.fixture(scope="module")
def fileops() -> Environment:
    return Registry(suite_root() / "registry.yaml").load("tools/fileops-v1")


def part(fileops: Environment, name: str) -> Any:
    assert isinstance(fileops.tasks, Procedural)
    return importlib.import_module(f"{fileops.tasks.make.__module__.rpartition('.')[0]}.{name}")


def at(fileops: Environment, split: str, index: int) -> Task:
    assert isinstance(fileops.tasks, Procedural)
    return fileops.tasks.at(split, index)


def first(fileops: Environment, level: int, family: str = "") -> Task:
    """The first task of a level, or the first of one family there."""
    some = (at(fileops, "train", index) for index in range(level - 1, 500, 5))
    return next(task for task in some if family in ("", task.metadata["family"]))


def bash(command: str) -> ToolCall:
    return ToolCall(name="bash", arguments={"command": command})


def scores(
    in_suite: InSuite, fileops: Environment, plans: Sequence[tuple[Task, Sequence[ToolCall]]]
) -> list[Score]:
    """What each plan is worth, some at a time."""

    async def main(open_sandbox: OpenSandbox) -> list[Score]:
        gate = asyncio.Semaphore(4)

        async def one(task: Task, plan: Sequence[ToolCall]) -> Score:
            async with gate:
                return await play(fileops, task, plan, open_sandbox)

        return await asyncio.gather(*(one(*each) for each in plans))

    found: list[Score] = in_suite(main)
    return found


def faults(in_suite: InSuite, fileops: Environment, task: Task) -> tuple[str, ...]:
    """What the environment's gate finds wrong with a task."""

    async def main(open_sandbox: OpenSandbox) -> tuple[str, ...]:
        assert fileops.gate is not None
        return tuple(await fileops.gate.faults(fileops, task, open_sandbox))

    found: tuple[str, ...] = in_suite(main)
    return found


def test_the_solutions_of_every_family_are_worth_one(
    fileops: Environment, in_suite: InSuite
) -> None:
    some = [first(fileops, level, family) for level in (1, 3) for family in FAMILIES]
    solved = scores(in_suite, fileops, [(task, task.solution) for task in some])
    wrong = [(t.id, s.details) for t, s in zip(some, solved, strict=True) if s.reward != 1]
    assert wrong == []


@pytest.mark.parametrize(("split", "index"), [*zip((*SPLITS, "train"), range(5), strict=True)])
def test_the_gate_lets_tasks_of_every_level_and_split_through(
    fileops: Environment, in_suite: InSuite, split: str, index: int
) -> None:
    assert faults(in_suite, fileops, at(fileops, split, index)) == ()


def test_the_gate_finds_what_is_wrong_with_a_task(fileops: Environment, in_suite: InSuite) -> None:
    task = first(fileops, 2)
    nothing = task.model_copy(update={"solution": (*task.solution, bash("true"))})
    assert [fault.partition(":")[0] for fault in faults(in_suite, fileops, nothing)] == [
        "without call 2"
    ]
    half = task.model_copy(update={"solution": task.solution[:1]})
    assert faults(in_suite, fileops, half)[0].startswith("gold: reward 0.")


@pytest.mark.parametrize("level", [1, 4])
def test_a_change_that_nobody_asked_for_is_no_success(
    fileops: Environment, in_suite: InSuite, level: int
) -> None:
    task = first(fileops, level)
    changes = (
        "echo x > /workspace/tree/extra.txt",
        'for f in /workspace/tree/misc/*; do echo x >> "$f"; done',
        "find /workspace/tree/misc -type f -exec chmod 700 {} +",
        "rm -r /workspace/tree/misc",
        "ln -s misc /workspace/tree/link",
    )
    plans = [(task, (*task.solution, bash(change))) for change in changes]
    assert not any(score.passed for score in scores(in_suite, fileops, plans))


def test_what_lies_beside_the_tree_and_empty_folders_do_not_count(
    fileops: Environment, in_suite: InSuite
) -> None:
    task = first(fileops, 1)
    free = bash("mkdir -p /workspace/tree/misc/empty; cp -r /workspace/tree /workspace/backup")
    (score,) = scores(in_suite, fileops, [(task, (free, *task.solution))])
    assert score.passed


@pytest.mark.parametrize("family", FAMILIES)
def test_a_script_with_the_result_written_out_is_not_the_answer(
    fileops: Environment, in_suite: InSuite, family: str
) -> None:
    task = first(fileops, 3, family)
    copied = bash(
        "cd /workspace; tar -cpf - tree | gzip -9 | base64 -w0 > result; "
        "echo 'cd /workspace; rm -rf tree; echo '$(cat result)' | base64 -d | tar -xpzf -' "
        "> solve.sh"
    )
    (score,) = scores(in_suite, fileops, [(task, (*task.solution, copied))])
    assert score.metrics["tree"] == 1
    assert not score.passed
    assert score.reward < 0.3


def test_reading_no_rules_is_not_enough_from_level_three_up(
    fileops: Environment, in_suite: InSuite
) -> None:
    some = [at(fileops, split, index) for split in ("train", "test-ood") for index in range(5)]
    greedy = part(fileops, "greedy").greedy

    async def main(open_sandbox: OpenSandbox) -> Any:
        return await baselines.success(fileops, some, greedy, open_sandbox)

    shares = in_suite(main)
    assert shares[1] == shares[2] == 1
    assert all(shares[level] < 0.5 for level in (3, 4, 5))


HOSTILE = {
    "a link out of the tree": "ln -s /etc/passwd tree/misc/out; ln -s ../.. tree/misc/up",
    "the tree as a link": "rm -rf tree; ln -s /etc tree",
    "the tree as a file": "rm -rf tree; echo > tree",
    "no tree": "rm -rf tree",
    "a pipe": "mkfifo tree/misc/pipe",
    "a socket": "python3 -c 'import socket; socket.socket(1).bind(\"tree/s\")'",
    "a huge file": "truncate -s 900G tree/misc/huge",
    "many files": "cd tree/misc; python3 -c 'for i in range(6000): open(str(i), \"w\")'",
    "what may not be read": "chmod 000 tree/misc; chmod 000 tree",
    "odd names": "touch tree/misc/\"$(printf 'a\\nb')\" tree/misc/\"$(printf '\\377')\" tree/-rf",
    "deep folders": "cd tree; for i in $(seq 200); do mkdir d && cd d || break; done; touch x",
    "a loop of links": "ln -s b tree/a; ln -s a tree/b",
    "no more tools": "rm -f /usr/bin/python3 /bin/tar /usr/bin/find; true",
    "hard links": "for i in $(seq 3000); do ln tree/misc/* tree/$i 2>/dev/null; done",
    "a hard link in place of a copy": 'cd tree/misc; for f in *; do ln -f -- "$f" ../x; done',
    "holes": "truncate -s 7M tree/misc/hole",
    "names that differ by case or form": "cd tree; "
    "touch A a $'e\\u0301' $'\\u00e9' $'\\xff' '\\xff'",
    "json without end": "python3 -c \"open('tree/a.json', 'w').write('[' * 10**6)\"; "
    "python3 -c \"open('tree/b.json', 'w').write('1' * 10**6)\"",
    "rights of all kinds": "chmod 7777 tree; chmod -R 7000 tree/misc; chmod 0 .",
    "another workspace": "cd /; mv workspace elsewhere; ln -s elsewhere workspace; "
    "touch elsewhere/tree/x",
    "no workspace": "rm -rf /workspace",
    "a file for a workspace": "cd /; rm -rf workspace; touch workspace",
    "what is looked at first": "mkdir .still; mkfifo .still/p; truncate -s 9G .still/h; "
    "cd .still; python3 -c 'for i in range(6000): open(str(i), \"w\")'",
    "processes that go on": "(while :; do echo x > tree/a; rm -f tree/a; done) >/dev/null 2>&1 &",
}


def test_nothing_that_an_agent_leaves_is_a_failure_or_a_reward(
    fileops: Environment, in_suite: InSuite
) -> None:
    task = first(fileops, 1)
    plans = [(task, (bash(f"cd /workspace; {deed}"),)) for deed in HOSTILE.values()]
    scripts = (
        "mkfifo solve.sh",
        "mkdir solve.sh",
        "ln -s /etc/passwd solve.sh",
        "truncate -s 1G solve.sh",
        "printf '\\377\\0' > solve.py",
    )
    plans += [(first(fileops, 3), (bash(f"cd /workspace; {deed}"),)) for deed in scripts]
    found = zip((*HOSTILE, *scripts), scores(in_suite, fileops, plans), strict=True)
    assert [(name, score.reward) for name, score in found if score.reward or score.passed] == []


def judged(in_suite: InSuite, fileops: Environment, deeds: Sequence[str]) -> list[Score]:
    """What handing in a script that does nothing else is worth."""
    task = first(fileops, 3)

    async def main(open_sandbox: OpenSandbox) -> list[Score]:
        async def one(deed: str) -> Score:
            files = {"solve.sh": f"cd /workspace\n{deed}\n".encode()}
            return await fileops.verify(task, Submission(files=files), open_sandbox)

        return [await one(deed) for deed in deeds]

    found: list[Score] = in_suite(main)
    return found


DOCKER = pytest.param("docker", marks=pytest.mark.docker)
WRECKS = ("kill -9 -1", "kill -9 $$", ":(){ :|:& };:", "exec false", "cat /dev/zero | tail")


def test_nothing_that_a_script_does_or_leaves_is_a_failure_or_a_reward(
    fileops: Environment, in_suite: InSuite
) -> None:
    deeds = [*HOSTILE.values(), *(f"timeout 2 bash -c '{wreck}'" for wreck in WRECKS)]

    found = zip(deeds, judged(in_suite, fileops, deeds), strict=True)
    assert [(deed, score.reward) for deed, score in found if score.reward or score.passed] == []


class Hasty:
    """A sandbox in which no command may take longer than two seconds."""

    def __init__(self, sandbox: Sandbox) -> None:
        self._sandbox = sandbox

    def __getattr__(self, name: str) -> Any:
        return getattr(self._sandbox, name)

    async def exec(self, command: Any, *, timeout: float, **more: Any) -> ExecResult:
        return await self._sandbox.exec(command, timeout=min(timeout, 2), **more)


def test_a_script_that_does_not_end_has_done_nothing(
    fileops: Environment, in_suite: InSuite
) -> None:
    task = first(fileops, 3)
    script = task.solution[0].arguments["command"].split("\n", 1)[1].rpartition("END_OF_PART")[0]

    async def main(open_sandbox: OpenSandbox) -> list[Score]:
        @asynccontextmanager
        async def hasty(spec: SandboxSpec) -> AsyncIterator[Sandbox]:
            async with open_sandbox(spec) as sandbox:
                yield Hasty(sandbox)

        files = [{"solve.sh": f"{script}\n{end}\n".encode()} for end in ("", "sleep 60")]
        return [await fileops.verify(task, Submission(files=each), hasty) for each in files]

    ended, went_on = in_suite(main)
    assert (ended.metrics["other_tree"], went_on.metrics["other_tree"]) == (1, 0)
    assert went_on.reward == 0
    assert "solve.sh did not end within" in went_on.details


@pytest.mark.parametrize("in_suite", [DOCKER], indirect=True)
def test_solutions_and_hostile_agents_are_judged_alike_in_containers(
    fileops: Environment, in_suite: InSuite
) -> None:
    some = [first(fileops, level) for level in (2, 4, 5)]
    plans: list[tuple[Task, Sequence[ToolCall]]] = [(task, task.solution) for task in some]
    assert [score.details for score in scores(in_suite, fileops, plans) if not score.passed] == []
    task = first(fileops, 1)
    plans = [(task, (bash(f"cd /workspace; {deed}"),)) for deed in HOSTILE.values()]
    assert not any(score.reward for score in scores(in_suite, fileops, plans))
    assert not any(score.reward for score in judged(in_suite, fileops, WRECKS[:2]))
