"""Rows as an environment: an agent repairs a repository, and the row's own tests judge it."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import overload

from gymsuite.errors import DefinitionError
from gymsuite.sandbox.protocol import FileState, OpenSandbox, Sandbox
from gymsuite.suite import default_cache, recipes_folder
from gymsuite.swe.early import Processors
from gymsuite.swe.judge import Judge
from gymsuite.swe.judgement import Evidence, Judgement
from gymsuite.swe.leaks import Scans
from gymsuite.swe.loading import load_rows
from gymsuite.swe.recipe import Recipes
from gymsuite.swe.rows import Row
from gymsuite.swe.sealed import Seals
from gymsuite.swe.supply import Supply
from gymsuite.tools import Tool, bash, edit, submit
from gymsuite.types import Score, Submission, Task, ToolCall
from gymsuite.verify.changed import changed_below
from gymsuite.verify.patch import make_patch
from gymsuite.verify.policy import is_cache
from gymsuite.worlds.procedural import Place

SYSTEM_PROMPT = """\
You repair a problem in a repository. Its checkout is the working directory of your tools; what it
needs is installed, and there is no network. The user's message is the report of the problem.

Find the cause and repair it in the source, then call `submit`. You are scored by hidden tests:
those that fail because of the problem must pass, and those that pass now must still pass. Changes
of tests and of files that configure how tests run are undone before.
"""

_TEST_SPLIT = "test"
_MAX_CHANGES = 64 << 20
_SHOWN_IN_PROMPT = "problem_statement"


@dataclass(frozen=True)
class Problems(Sequence[Task]):
    """Rows as tasks. The recipe of a row's image is written when its task is asked for."""

    rows: tuple[Row, ...]
    supply: Supply

    @property
    def places(self) -> Sequence[Place]:
        """All of them, none of them made."""
        return [Place(at, _TEST_SPLIT, row.instance_id) for at, row in enumerate(self.rows)]

    def __len__(self) -> int:
        return len(self.rows)

    @overload
    def __getitem__(self, at: int) -> Task: ...
    @overload
    def __getitem__(self, at: slice) -> tuple[Task, ...]: ...
    def __getitem__(self, at: int | slice) -> Task | tuple[Task, ...]:
        if isinstance(at, slice):
            return tuple(task_of(row, self.supply) for row in self.rows[at])
        return task_of(self.rows[at], self.supply)

    def __iter__(self) -> Iterator[Task]:
        return (self[at] for at in range(len(self)))


def task_of(row: Row, supply: Supply) -> Task:
    """A row as a task; raises `DefinitionError` for one that there can be no image for."""
    if row.setup_patch:
        raise DefinitionError(
            f"{row.instance_id}: its problem is a patch on top of its commit; such rows can be "
            "judged by `gymsuite swebench eval`, and not be played yet"
        )
    return Task(
        id=row.instance_id,
        prompt=row.problem_statement,
        split=_TEST_SPLIT,
        hidden=row.model_dump(mode="json", exclude={_SHOWN_IN_PROMPT}, exclude_defaults=True),
        sandbox=supply.spec(row),
        metadata={"repo": row.repo, "version": row.version, "dialect": row.dialect},
    )


def row_of(task: Task) -> Row:
    """The row that a task was made of."""
    try:
        return Row.model_validate({**task.hidden, _SHOWN_IN_PROMPT: task.prompt})
    except ValueError as error:
        raise DefinitionError(f"task {task.id!r}: {error}") from error


@dataclass(frozen=True)
class Configured:
    """What an environment's folder defines, for the rows of one data set."""

    tasks: Problems
    supply: Supply
    scans: Scans
    seals: Seals
    processors: Processors = field(default_factory=Processors)
    system_prompt: str = SYSTEM_PROMPT
    tools: tuple[Tool, ...] = field(default=(bash, edit, submit))

    async def prepare(self, task: Task, sandbox: Sandbox) -> None:
        """Refuse an image that shows the future: an agent would only have to look."""
        await self.scans.check(row_of(task), sandbox)

    async def collect(self, task: Task, sandbox: Sandbox) -> Submission:
        """Make a patch from what differs from the image, read from outside the sandbox."""
        changes = await changed_below(sandbox, row_of(task).workdir, max_bytes=_MAX_CHANGES)
        kept = [change for change in changes.changed if not is_cache(change.path)]
        before: dict[str, FileState] = {c.path: c.before for c in kept if c.before is not None}
        after: dict[str, FileState] = {c.path: c.after for c in kept if c.after is not None}
        patch = await make_patch(before, after)
        return Submission(patch=patch, state={"omitted": list(changes.omitted)})

    async def verify(self, task: Task, submission: Submission, open_sandbox: OpenSandbox) -> Score:
        """Judge the patch by the row's tests, in sandboxes of its own."""
        judge = Judge(
            open_sandbox,
            self.supply,
            self.scans,
            self.seals,
            measured=True,
            processors=self.processors,
        )
        return score_of(await judge.judge(row_of(task), submission.patch), submission.patch)

    async def solve(self, task: Task, _: OpenSandbox) -> tuple[ToolCall, ...]:
        """Apply the gold patch."""
        end = "END_OF_THE_GOLD_PATCH"
        command = f"git apply --whitespace=nowarn - <<'{end}'\n{row_of(task).patch}\n{end}\n"
        call = ToolCall(id="gold", name="bash", arguments={"command": command})
        return (call, ToolCall(id="submit", name="submit"))


def score_of(judgement: Judgement, patch: bytes) -> Score:
    """A judgement as a score."""
    verdict = judgement.verdict
    return Score(
        reward=float(judgement.resolved),
        passed=judgement.resolved,
        metrics={
            "fail_to_pass": verdict.fail_to_pass.share if verdict and not verdict.invalid else 0.0,
            "pass_to_pass": verdict.pass_to_pass.share if verdict and not verdict.invalid else 0.0,
            "forged": float(bool(judgement.forged)),
            "sealed": float(judgement.evidence is Evidence.SEALED),
            "patch_bytes": len(patch),
            "undone_paths": len(judgement.undone),
        },
        details=judgement.reason,
    )


def configure(options: Mapping[str, str]) -> Configured:
    """Read a user's rows. Images are made of clones in `repo_dir`, or are the rows' own."""
    rows = load_rows(options["dataset"], split=options.get("split", _TEST_SPLIT))
    clones = options.get("repo_dir")
    supply = Supply(Recipes(Path(clones), recipes_folder()) if clones else None)
    folder = default_cache() / "swe"
    return Configured(
        tasks=Problems(rows, supply),
        supply=supply,
        scans=Scans(folder / "scans"),
        seals=Seals(folder / "seals"),
    )
