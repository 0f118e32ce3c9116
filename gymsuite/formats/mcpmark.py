"""MCPMark's task folders for its file system service: meta.json, description.md and verify.py.

The agent works on a copy of the category's files. What differs afterwards is taken from outside,
and verify.py judges it in a sandbox that the agent never saw; upstream it runs beside the agent.

The rule `mcpmark` is verify.py's exit code. The rule `strict` also asks that verify.py says no to
the untouched files: who does nothing is never right.
"""

import asyncio
import json
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from gymsuite.environment import Environment
from gymsuite.errors import DefinitionError, PathRefused, VerifierError
from gymsuite.formats.rows import Row, checked
from gymsuite.formats.tree_change import TreeChange, apply_change, change_of
from gymsuite.sandbox.protocol import OpenSandbox, Sandbox
from gymsuite.tools import Tool, bash, submit
from gymsuite.types import Limits, SandboxSpec, Score, Submission, Task

RULES = ("mcpmark", "strict")
SERVICE = "filesystem"
WORKDIR = "/workspace"
SANDBOX = SandboxSpec(image="base", workdir=WORKDIR)
LIMITS = Limits(max_steps=100, verify_seconds=600)
_VERIFY = "/tmp/verify.py"  # noqa: S108 - in a sandbox of the verifier's
_TREE_BYTES = 256 << 20


class Start(Row):
    """What a task begins with."""

    stateType: str = ""  # noqa: N815 - as it is on disk
    stateUrl: str = ""  # noqa: N815 - as it is on disk


class Meta(Row):
    """meta.json."""

    task_id: str
    category_id: str
    difficulty: str = ""
    tags: tuple[str, ...] = ()
    mcp: tuple[str, ...] = ()
    meta_data: Start = Start()


def read_mcpmark(
    folder: Path, states: Path, *, rule: str = "mcpmark", split: str = "test"
) -> tuple[Task, ...]:
    """Read the tasks of the file system service below a folder; those of others are left out.

    `states` has a folder for each category, with the files that a task begins with: upstream's
    archives, unpacked. Raises `DefinitionError` for a task whose files are not there.
    """
    if rule not in RULES:
        raise DefinitionError(f"no rule {rule!r}; there are: {', '.join(RULES)}")
    tasks = []
    for path in sorted(folder.rglob("meta.json")):
        meta = _meta(path)
        if SERVICE in meta.mcp:
            tasks.append(_task(path.parent, meta, states, rule, split))
    if not tasks:
        raise DefinitionError(f"{folder}: no meta.json of a task for {SERVICE!r} below it")
    return tuple(tasks)


def mcpmark_environment(
    name: str,
    tasks: tuple[Task, ...],
    states: Path,
    *,
    tools: tuple[Tool, ...] = (bash, submit),
    sandbox: SandboxSpec = SANDBOX,
) -> Environment:
    """The tasks as an environment; `tools` may be those of a file system server (`mcp_tools`)."""
    workdir = sandbox.workdir

    async def prepare(task: Task, opened: Sandbox) -> None:
        await opened.upload(states / task.metadata["category"], workdir)

    async def collect(task: Task, opened: Sandbox) -> Submission:
        with tempfile.TemporaryDirectory() as temporary:
            tree = Path(temporary) / "tree"
            await opened.download(workdir, tree, max_bytes=_TREE_BYTES)
            start = states / task.metadata["category"]
            change = await asyncio.to_thread(change_of, start, tree)
        size = sum(map(len, change.files.values()))
        if size > LIMITS.submission_bytes:
            raise PathRefused(f"{size} bytes of files were changed, more than can be handed in")
        return Submission(
            files=change.files,
            deletions=change.deletions,
            state={"folders": list(change.folders), "links": dict(change.links)},
        )

    async def verify(task: Task, submission: Submission, open_sandbox: OpenSandbox) -> Score:
        start = states / task.metadata["category"]
        if "refused" in submission.state:
            return Score(reward=0.0, passed=False, details=str(submission.state["refused"]))
        change = TreeChange(
            submission.files,
            submission.deletions,
            tuple(submission.state.get("folders", ())),
            submission.state.get("links", {}),
        )
        right, said = await _judge(task, start, change, open_sandbox, sandbox)
        idle = right and (await _judge(task, start, TreeChange(), open_sandbox, sandbox))[0]
        verdicts = {"mcpmark": right, "strict": right and not idle}
        passed = verdicts[task.hidden["rule"]]
        metrics = {f"rule_{rule}": float(verdict) for rule, verdict in verdicts.items()}
        return Score(reward=float(passed), passed=passed, metrics=metrics, details=said)

    return Environment(
        id=name,
        tasks=tasks,
        verifier=verify,
        tools=tools,
        sandbox=sandbox,
        limits=LIMITS,
        prepare=prepare,
        collect=collect,
    )


async def _judge(
    task: Task, start: Path, change: TreeChange, open_sandbox: OpenSandbox, spec: SandboxSpec
) -> tuple[bool, str]:
    """What verify.py says of the files with the change made, and the end of its words."""
    with tempfile.TemporaryDirectory() as temporary:
        tree = Path(temporary) / "tree"
        await asyncio.to_thread(apply_change, start, change, tree)
        async with open_sandbox(spec) as opened:
            await opened.upload(tree, spec.workdir)
            await opened.write(_VERIFY, task.hidden["verify"].encode())
            result = await opened.exec(
                ["python3", "-I", _VERIFY],
                cwd="/",
                env={"FILESYSTEM_TEST_DIR": spec.workdir, "PYTHONIOENCODING": "utf-8"},
                timeout=LIMITS.verify_seconds / 3,
                max_output=20_000,
            )
    if result.exit_code in (126, 127):
        raise VerifierError(f"verify.py of {task.id!r} cannot run: {result.output[-500:]}")
    return result.exit_code == 0 and not result.timed_out, result.output[-2000:]


def _meta(path: Path) -> Meta:
    try:
        found: Mapping[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise DefinitionError(f"{path}: not readable JSON: {error}") from error
    return next(checked(path, [(1, found)], Meta))


def _task(folder: Path, meta: Meta, states: Path, rule: str, split: str) -> Task:
    start = states / meta.category_id
    if not start.is_dir():
        raise DefinitionError(
            f"{folder}: it begins with files that are not there: unpack "
            f"{meta.meta_data.stateUrl or 'its archive'} as {start}"
        )
    try:
        prompt = (folder / "description.md").read_text(encoding="utf-8")
        code = (folder / "verify.py").read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise DefinitionError(f"{folder}: {error}") from error
    level = meta.difficulty.removeprefix("L")
    return Task(
        id=f"{meta.category_id}/{meta.task_id}",
        prompt=f"The files are in {WORKDIR}.\n\n{prompt.strip()}",
        split=split,
        level=int(level) if level.isdecimal() else 1,
        hidden={"rule": rule, "verify": code},
        metadata={"category": meta.category_id, "tags": list(meta.tags)},
    )
