"""Small fakes of our own: an in-memory sandbox and an environment built on it."""

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from gymsuite import (
    Environment,
    ExecResult,
    Limits,
    OpenSandbox,
    Sandbox,
    SandboxError,
    SandboxSpec,
    Score,
    Submission,
    Task,
    ToolCall,
    bash,
    edit,
    submit,
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


@dataclass
class FakeSandbox:
    """Files in a dict; `echo WORDS` is the one command it knows."""

    files: dict[str, bytes] = field(default_factory=dict)
    closed: bool = False
    frozen: dict[str, dict[str, bytes]] = field(default_factory=dict)

    @property
    def description(self) -> Mapping[str, object]:
        return {"provider": "fake"}

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
        text = command if isinstance(command, str) else command[-1]
        script = text.removeprefix("exec 2>&1\n")
        if not script.startswith("echo "):
            return ExecResult(127, b"", b"not found")
        return ExecResult(0, script.removeprefix("echo ").encode(), b"", cpu_seconds=0.5)

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
        name = f"snapshot:{len(self.frozen)}"
        self.frozen[name] = dict(self.files)
        return Image(name=name, digest=name, base="fake", layers=())

    async def read(self, path: str, *, max_bytes: int = 1 << 20) -> bytes | None:
        return self.files.get(path)

    async def write(self, path: str, data: bytes, *, mode: int = 0o644) -> None:
        self.files[path] = data

    async def changes(self, root: str, *, max_bytes: int = 1 << 20) -> Changes:
        changed = (Change(p, None, FileState(0o100644, d)) for p, d in sorted(self.files.items()))
        return Changes(tuple(changed), ())

    async def stats(self) -> SandboxStats:
        return SandboxStats(1.5, 1000)


@asynccontextmanager
async def no_sandbox(spec: SandboxSpec) -> AsyncIterator[Sandbox]:
    raise SandboxError("none here")
    yield


@dataclass
class FakeProvider:
    """Counts what it opened, and remembers it."""

    opened: list[FakeSandbox] = field(default_factory=list)
    frozen: dict[str, dict[str, bytes]] = field(default_factory=dict)

    @asynccontextmanager
    async def open(self, spec: SandboxSpec) -> AsyncIterator[Sandbox]:
        files = dict(self.frozen.get(spec.image, {}))
        sandbox = FakeSandbox(files=files, frozen=self.frozen)
        self.opened.append(sandbox)
        try:
            yield sandbox
        finally:
            sandbox.closed = True


@pytest.fixture
def provider() -> FakeProvider:
    return FakeProvider()


@pytest.fixture
def environment() -> Environment:
    """Write the word 42 into answer.txt."""

    async def collect(task: Task, sandbox: Sandbox) -> Submission:
        data = await sandbox.read("answer.txt")
        return Submission(files={"answer.txt": data} if data is not None else {})

    async def verify(task: Task, submission: Submission, open_sandbox: OpenSandbox) -> Score:
        async with open_sandbox(SandboxSpec(image="fake")) as sandbox:
            await sandbox.write("answer.txt", submission.files.get("answer.txt", b""))
            passed = await sandbox.read("answer.txt") == task.hidden["answer"].encode()
        return Score(reward=float(passed), passed=passed)

    call = ToolCall(name="edit", arguments={"path": "answer.txt", "old": "", "new": "42"})
    task = Task(
        id="write-42",
        prompt="Write the answer.",
        files={"note.txt": "hello"},
        hidden={"answer": "42"},
        solution=(call,),
    )
    return Environment(
        id="test/write-v1",
        tasks=(task,),
        verifier=verify,
        sandbox=SandboxSpec(image="fake"),
        tools=(bash, edit, submit),
        collect=collect,
        limits=Limits(max_steps=3),
        system_prompt="You write files.",
    )
