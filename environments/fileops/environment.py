"""A real shell on a tree of files: what the tree holds in the end is judged, and so is a script."""

import posixpath
import tempfile
from collections.abc import Mapping
from pathlib import Path

from gymsuite import (
    OpenSandbox,
    PathRefused,
    Sandbox,
    SandboxError,
    SandboxSpec,
    Score,
    Submission,
    Task,
    bash,
    edit,
    submit,
)
from gymsuite.worlds.procedural import Procedural
from gymsuite.worlds.reward import PROGRESS_WEIGHT
from gymsuite.worlds.splits import SPLITS

from .gate import FileGate
from .judging import Expected, Verdict, judge
from .leaving import found_in, left_of
from .scenes import HARD_FROM
from .tasks import ROOT, SCRIPT_SECONDS, SCRIPTS, SIBLING, VISIBLE, WORKDIR, make, scene_of
from .tree import Node, Tree, packed, read_tree, whole

system_prompt = (
    "You work in a Linux shell on a tree of files. Do exactly what is asked, heed the rules, then "
    "call submit."
)
tools = (bash, edit, submit)
tasks = Procedural(make, SPLITS)
gate = FileGate()

_SANDBOX = SandboxSpec(image="base", workdir=WORKDIR, memory_bytes=512 << 20, pids=128)
_UNPACK = f"mkdir -m 755 -p {ROOT} && exec tar -xpf - -C {ROOT} --no-same-owner"
_UNPACK_SECONDS = 60.0
_SCRIPT_BYTES = 1 << 16
_OUTPUT_BYTES = 1 << 16
_TREE_BYTES = 8 << 20
_TREE_FILES = 4000
_RUNNERS = {".sh": "bash", ".py": "python3"}
_NOWHERE = ".still"


async def prepare(task: Task, sandbox: Sandbox) -> None:
    """Unpack the tree that the agent works on."""
    await _unpack(sandbox, scene_of(task).expected(VISIBLE).before)


async def collect(task: Task, sandbox: Sandbox) -> Submission:
    """Take what differs from the tree of the task, and the script, if one is asked for."""
    made = scene_of(task)
    found = await _look(sandbox)
    script: dict[str, bytes] = {}
    if made.level >= HARD_FROM:
        read = [(name, await sandbox.read(name, max_bytes=_SCRIPT_BYTES)) for name in SCRIPTS]
        script = dict([(name, data) for name, data in read if data is not None][:1])
    return left_of(made.expected(VISIBLE).before, found, script)


async def verify(task: Task, submission: Submission, open_sandbox: OpenSandbox) -> Score:
    """Judge the tree that was left, and what the script makes of the tree that nobody saw."""
    made = scene_of(task)
    visible = made.expected(VISIBLE)
    if "refused" in submission.state:
        nothing = judge(visible, whole(visible.before))
        return _score(
            [nothing], f"what was left cannot be taken over: {submission.state['refused']}"
        )
    verdicts = [judge(visible, found_in(visible.before, submission))]
    if made.level < HARD_FROM:
        return _score(verdicts, "")
    sibling = made.expected(SIBLING)
    script = next((name for name in SCRIPTS if name in submission.files), "")
    if not script:
        nothing = judge(sibling, whole(sibling.before))
        return _score([*verdicts, nothing], f"there is no {' or '.join(SCRIPTS)}")
    verdict, details = await _run(script, submission.files[script], sibling, open_sandbox)
    return _score([*verdicts, verdict], details)


async def _run(
    name: str, script: bytes, expected: Expected, open_sandbox: OpenSandbox
) -> tuple[Verdict, str]:
    """What a script makes of a tree, and what is to be said of that."""
    nothing = judge(expected, whole(expected.before))
    async with open_sandbox(_SANDBOX) as sandbox:
        await _unpack(sandbox, expected.before)
        await sandbox.write(name, script)
        result = await sandbox.exec(
            [_RUNNERS[posixpath.splitext(name)[1]], f"{WORKDIR}/{name}"],
            timeout=SCRIPT_SECONDS,
            max_output=_OUTPUT_BYTES,
        )
        if result.timed_out:
            return nothing, f"{name} did not end within {SCRIPT_SECONDS} s"
        try:
            found = await _look(sandbox)
        except PathRefused as refusal:
            return nothing, f"what the script left cannot be taken over: {refusal}"
    return judge(expected, found), ""


async def _unpack(sandbox: Sandbox, tree: Tree) -> None:
    result = await sandbox.exec(_UNPACK, stdin=packed(tree), timeout=_UNPACK_SECONDS)
    if result.exit_code:
        raise SandboxError(f"the tree could not be unpacked: {result.output[-200:]}")


async def _look(sandbox: Sandbox) -> Mapping[str, Node]:
    """Take the tree out. Raises `PathRefused` for one that no job leaves: with pipes, say."""
    # Its processes end first, so that nothing moves while it is read.
    await sandbox.changes(f"{WORKDIR}/{_NOWHERE}")
    with tempfile.TemporaryDirectory(prefix="gymsuite-fileops-") as folder:
        place = Path(folder) / "tree"
        await sandbox.download(ROOT, place, max_bytes=_TREE_BYTES, max_files=_TREE_FILES)
        return read_tree(place)


def _score(verdicts: list[Verdict], details: str) -> Score:
    passed = all(verdict.exact for verdict in verdicts)
    mines = [path for verdict in verdicts for path in verdict.mines]
    progress = 0.0 if mines else sum(verdict.progress for verdict in verdicts) / len(verdicts)
    said = [details] if details else []
    for where, verdict in zip(("the tree", "the other tree"), verdicts, strict=False):
        said += [f"{where}: {line}" for line in _complaints(verdict)]
    return Score(
        reward=1.0 if passed else PROGRESS_WEIGHT * progress,
        passed=passed,
        metrics={
            "success": float(passed),
            "progress": progress,
            "tree": float(verdicts[0].exact),
            "other_tree": float(verdicts[-1].exact),
            "wrong": float(sum(verdict.wrong for verdict in verdicts)),
            "collateral": float(sum(len(verdict.collateral) for verdict in verdicts)),
            "minefield": float(len(mines)),
        },
        details="; ".join(said),
    )


def _complaints(verdict: Verdict) -> list[str]:
    said = []
    if verdict.right < verdict.atoms:
        said.append(f"{verdict.atoms - verdict.right} of {verdict.atoms} changes are missing")
    if verdict.wrong:
        said.append(f"{verdict.wrong} of them went wrong")
    if verdict.collateral:
        path = verdict.collateral[0][:100]
        said.append(f"{len(verdict.collateral)} other changes, such as of {path!r}")
    if verdict.mines:
        said.append(f"forbidden: {verdict.mines[0][:100]!r} was touched or lost")
    return said
