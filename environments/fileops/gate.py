"""What the task gate tries on jobs on files: trees as values, and plans in sandboxes."""

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from gymsuite import Environment, OpenSandbox, Score, Task, ToolCall
from gymsuite.sampling import sample_action
from gymsuite.worlds.gate import play

from .judging import Expected, alike, judge
from .scenes import HARD_FROM, Scene
from .tasks import ROOT, SCRIPTS, SIBLING, VISIBLE, WORKDIR, command, plan, scene_of, steps
from .tree import text, whole

_RANDOM_CALLS = 20
_RANDOM_REWARD = 0.05
_PYTHON = "import subprocess\nsubprocess.run(['bash', '-c', {script!r}], check=False)"
_IRRELEVANT = f"echo more > {ROOT}/misc/more.txt"


class Trial(NamedTuple):
    """A plan, and whether its score is what it should be."""

    what: str
    plan: Sequence[ToolCall]
    holds: Callable[[Score], bool]


@dataclass(frozen=True)
class FileGate:
    """Tries each plan in a sandbox of its own."""

    async def faults(
        self, environment: Environment, task: Task, open_sandbox: OpenSandbox
    ) -> Sequence[str]:
        """What is wrong with a task, each fault in a line."""
        made = scene_of(task)
        found = [*faults_of_ends(made), *faults_of_changes(made.expected(VISIBLE))]
        taken, most = len(task.solution) + 1, environment.limits_of(task).max_steps
        if 2 * taken > most:
            found.append(f"budget: the solution takes {taken} of {most} steps")
        for trial in (*_trials(task), _random_calls(environment, task)):
            score = await play(environment, task, trial.plan, open_sandbox)
            if not trial.holds(score):
                found.append(f"{trial.what}: reward {score.reward:g} ({score.details})")
        return found


def faults_of_ends(made: Scene) -> Iterator[str]:
    """The cheap half: what the judge says of the right trees, and of those that nobody touched."""
    visible, sibling = copies = [made.expected(copy) for copy in (VISIBLE, SIBLING)]
    for expected in copies:
        right, nothing = (judge(expected, whole(t)) for t in (expected.after, expected.before))
        if not (right.exact and right.atoms):
            yield f"gold: {right}"
        if nothing.exact or nothing.progress or nothing.mines:
            yield f"no-op: {nothing}"
    if made.level >= HARD_FROM and judge(sibling, whole(visible.after)).exact:
        yield "sibling: the visible result is right there, too"


def faults_of_changes(expected: Expected) -> Iterator[str]:
    """What the judge says of a tree with one change less than is right, or with one more."""
    before, after = whole(expected.before), whole(expected.after)
    for path in sorted(before.keys() | after.keys()):
        old, new = before.get(path), after.get(path)
        if "directory" in {node.kind for node in (old, new) if node}:
            continue
        found = {name: node for name, node in after.items() if name != path}
        if alike(path, old, new, rights=True):
            found[path] = text("nobody asked\n")
        elif old is not None:
            found[path] = old
        if judge(expected, found).exact:
            yield f"changes: {path} may be left as it was, or become anything"


def _trials(task: Task) -> Iterator[Trial]:
    made, solution = scene_of(task), task.solution
    scripts = [job.script for job in made.jobs]
    yield Trial("gold", solution, _whole)
    yield Trial("no-op", (), _nothing)
    for at in range(len(solution) if len(solution) > 1 else 0):
        yield Trial(f"without call {at}", (*solution[:at], *solution[at + 1 :]), _less)
    yield Trial("irrelevant write", (*solution, command(_IRRELEVANT)), _less)
    yield Trial("alternative", _in_python(made, scripts), _whole)
    *others, last = made.jobs
    if others and last.folder not in [job.folder for job in others]:
        yield Trial("permutation", plan(made, [scripts[-1], *scripts[:-1]]), _whole)
    if made.level >= HARD_FROM:
        yield Trial("rules not read", plan(made, [job.naive for job in made.jobs]), _less)


def _in_python(made: Scene, scripts: Sequence[str]) -> Sequence[ToolCall]:
    """All jobs by one program in the other language."""
    program = _PYTHON.format(script="\n".join(steps(scripts)))
    target = f"{WORKDIR}/{SCRIPTS[1] if made.level >= HARD_FROM else 'work.py'}"
    return (
        command(f"cat > {target} <<'END_OF_PROGRAM'\n{program}\nEND_OF_PROGRAM\npython3 {target}"),
    )


def _random_calls(environment: Environment, task: Task) -> Trial:
    """Many calls that are valid but mean nothing."""
    rng = random.Random(task.id)
    schemas = [schema for schema in environment.toolbox.schemas if schema.name != "submit"]
    calls = [c for _ in range(_RANDOM_CALLS) for c in sample_action(schemas, rng).tool_calls]
    return Trial("random calls", calls, lambda score: score.reward <= _RANDOM_REWARD)


def _whole(score: Score) -> bool:
    return score.passed and score.reward == 1


def _less(score: Score) -> bool:
    return not score.passed and score.reward < 1


def _nothing(score: Score) -> bool:
    return not score.passed and score.reward == 0
