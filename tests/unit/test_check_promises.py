"""The promises find environments that turn a broken world into a score."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from typing import Any

import pytest

from gymsuite import (
    Context,
    Environment,
    OpenSandbox,
    Sandbox,
    SandboxDead,
    SandboxError,
    SandboxSpec,
    Score,
    Submission,
    Task,
    ToolCall,
    submit,
)
from gymsuite.authoring.promises import PROMISES, Case, Verdict, steps


@pytest.fixture
def mortal(provider: Any) -> OpenSandbox:
    """Fake sandboxes that are dead after they were closed, from the one image `fake`."""

    class Mortal:
        def __init__(self, sandbox: Any) -> None:
            self._sandbox = sandbox

        def __getattr__(self, verb: str) -> Any:
            if self._sandbox.closed:
                raise SandboxDead("is gone")
            return getattr(self._sandbox, verb)

    @asynccontextmanager
    async def open_(spec: SandboxSpec) -> AsyncIterator[Sandbox]:
        if spec.image != "fake":
            raise SandboxError(f"no image {spec.image!r}")
        async with provider.open(spec) as sandbox:
            yield Mortal(sandbox)

    return open_


def _check(environment: Environment, open_sandbox: OpenSandbox) -> dict[str, Verdict]:
    async def check() -> dict[str, Verdict]:
        case = Case(environment, environment.tasks, open_sandbox)
        return {promise: await look(case) for promise, look in PROMISES.items()}

    return asyncio.run(check())


def test_an_environment_with_sandboxes_keeps_all_promises(
    environment: Environment, mortal: OpenSandbox
) -> None:
    assert {verdict.outcome for verdict in _check(environment, mortal).values()} == {"kept"}


def test_a_verifier_that_scores_without_its_sandbox_is_found(
    environment: Environment, mortal: OpenSandbox
) -> None:
    async def verify(task: Task, submission: Submission, open_sandbox: OpenSandbox) -> Score:
        try:
            return await environment.verifier(task, submission, open_sandbox)
        except SandboxDead:
            return Score(reward=0.0, passed=False)

    found = _check(replace(environment, verifier=verify), mortal)
    assert found["a dead verifier gives a failure and no score"].outcome == "broken"
    assert found["a broken image gives a failure and no score"].outcome == "kept"


def test_a_tool_that_hides_a_dead_sandbox_is_found(
    environment: Environment, mortal: OpenSandbox
) -> None:
    async def note(context: Context, text: str) -> str:
        """Write a note, if it can be."""
        with suppress(SandboxDead):
            await context.sandbox.write("note.txt", text.encode())
        return "noted"

    async def verify(task: Task, submission: Submission, open_sandbox: OpenSandbox) -> Score:
        return Score(reward=0.0, passed=False)

    task = Task(id="t", prompt="p", solution=(ToolCall(name="note", arguments={"text": "x"}),))
    hiding = replace(environment, tasks=(task,), tools=(note, submit), verifier=verify)
    found = _check(replace(hiding, collect=None), mortal)
    assert found["a killed sandbox gives a failure and no score"].outcome == "kept"


def test_a_collection_that_forgives_a_dead_sandbox_scores_nothing(
    environment: Environment, mortal: OpenSandbox
) -> None:
    async def collect(task: Task, sandbox: Sandbox) -> Submission:
        try:
            return Submission(files={"answer.txt": await sandbox.read("answer.txt") or b""})
        except SandboxError:
            return Submission()

    async def verify(task: Task, submission: Submission, open_sandbox: OpenSandbox) -> Score:
        passed = submission.files.get("answer.txt") == b"42"
        return Score(reward=float(passed), passed=passed)

    found = _check(replace(environment, collect=collect, verifier=verify), mortal)
    assert found["a killed sandbox gives a failure and no score"].outcome == "kept"


def test_a_reset_that_depends_on_more_than_task_and_seed_is_found(
    environment: Environment, mortal: OpenSandbox
) -> None:
    prompts = iter(range(100))

    class Fickle(Environment):
        @property
        def system_prompt(self) -> str:
            return f"number {next(prompts)}"

        @system_prompt.setter
        def system_prompt(self, _: str) -> None: ...

    fickle = Fickle(**{f: getattr(environment, f) for f in environment.__dataclass_fields__})
    found = _check(fickle, mortal)
    assert found["reset is a pure function of task and seed"].outcome == "broken"


def test_a_secret_in_a_file_of_the_task_is_found(
    environment: Environment, mortal: OpenSandbox
) -> None:
    line = "assert answer() == 'forty-two'"
    task = environment.tasks[0].model_copy(
        update={"hidden": {"answer": "42", "tests": [line]}, "files": {"t.py": f"\n{line}\n"}}
    )
    found = _check(replace(environment, tasks=(task,)), mortal)
    verdict = found["nothing hidden is ever observed"]
    assert verdict.outcome == "broken"
    assert "write-42" in verdict.details


def test_without_sandboxes_the_promises_about_them_are_moot(mortal: OpenSandbox) -> None:
    async def verify(task: Task, submission: Submission, open_sandbox: OpenSandbox) -> Score:
        return Score(reward=0.0, passed=False)

    environment = Environment(id="a/b-v1", tasks=(Task(id="t", prompt="p"),), verifier=verify)
    found = _check(environment, mortal)
    assert found["a broken image gives a failure and no score"].outcome == "moot"
    assert found["the solution passes"].outcome == "broken"
    assert "no solution" in found["the solution passes"].details


def test_every_step_is_counted(environment: Environment, mortal: OpenSandbox) -> None:
    ticks: list[None] = []

    async def check() -> None:
        case = Case(environment, environment.tasks, mortal, tick=lambda: ticks.append(None))
        for look in PROMISES.values():
            await look(case)

    asyncio.run(check())
    assert len(ticks) == steps(len(environment.tasks))
