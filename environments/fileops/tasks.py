"""File jobs without end, each task a pure function of version, split and index."""

import hashlib
from collections.abc import Sequence

from gymsuite.types import Task, ToolCall

from .scenes import HARD_FROM, VERSION, Scene, scene
from .tree import packed

SCRIPTS = ("solve.sh", "solve.py")
"""Where a script may be handed in; the first that is there counts."""

SCRIPT_SECONDS = 30
"""How long a script may take on the tree that nobody saw."""

WORKDIR = "/workspace"
ROOT = f"{WORKDIR}/tree"
VISIBLE, SIBLING = 0, 1
"""The agent's copy of a scene, and the one that only the verifier has."""

_PLACE = f"All paths are relative to {ROOT}."
_JUDGED = (
    "What counts is what the tree holds in the end: nothing but what is asked for may change. That "
    "goes for rights, too, as far as they are about reading and running. What lies beside the tree "
    "does not count."
)
_SCRIPTED = (
    f"Do it by a script, {WORKDIR}/{SCRIPTS[0]} (run by bash) or {WORKDIR}/{SCRIPTS[1]} (run by "
    f"python3; only the first counts where both are there), and run it. Two things are judged, and "
    f"both have to be right: {ROOT} as you leave it, and what the script alone makes, in a fresh "
    "sandbox without a network, of another tree at the same place: same folders and rules, other "
    f"files. A script that does not end within {SCRIPT_SECONDS} seconds counts as having done "
    "nothing."
)
_PART = """cat >> {script} <<'END_OF_PART'
{lines}
END_OF_PART"""


def make(split: str, index: int) -> Task:
    """The task of this number; the same on every machine."""
    made = scene(split, index)
    trees = [made.expected(copy) for copy in (VISIBLE, SIBLING)]
    return Task(
        id=f"{split}-{index}",
        prompt=_prompt(made),
        split=split,
        level=made.level,
        solution=plan(made, [job.script for job in made.jobs]),
        hidden={
            "split": split,
            "index": index,
            # Nobody reads them: they make the digest of a task one of its trees as well.
            "trees": [
                hashlib.sha256(packed(tree)).hexdigest()
                for one in trees
                for tree in (one.before, one.after)
            ],
        },
        metadata={"family": "+".join(job.family for job in made.jobs), "version": VERSION},
    )


def scene_of(task: Task) -> Scene:
    """The scene that a task was made from."""
    return scene(task.hidden["split"], task.hidden["index"])


def plan(made: Scene, scripts: Sequence[str]) -> tuple[ToolCall, ...]:
    """The calls that do the jobs by these scripts, in the form that the level asks for."""
    lines = steps(scripts)
    if made.level < HARD_FROM:
        return tuple(command(line) for line in lines)
    target = f"{WORKDIR}/{SCRIPTS[0]}"
    parts = [command(_PART.format(script=target, lines=line)) for line in lines]
    return (*parts, command(f"bash {target}"))


def steps(scripts: Sequence[str]) -> list[str]:
    """Commands for these scripts, each of which works from within the tree."""
    return [f"cd {ROOT}\n{script}" for script in scripts]


def command(line: str) -> ToolCall:
    """A call that runs a command."""
    return ToolCall(name="bash", arguments={"command": line})


def _prompt(made: Scene) -> str:
    asked = [job.asked for job in made.jobs]
    if len(asked) > 1:
        asked = [f"{number}. {text}" for number, text in enumerate(asked, 1)]
        asked.insert(0, "Do these, one after the other.")
    rules = [note for job in made.jobs for note in _marked(made, job.family, job.notes)]
    if made.protected:
        rules.append(
            f"{made.protected} and everything in it must not be touched. Treat it as if it were "
            "not there: it is never read, counted or compared either."
        )
    parts = [
        _PLACE,
        *asked,
        *(["# Rules", "\n".join(f"- {rule}" for rule in rules)] if rules else []),
        "# What is judged",
        _JUDGED if made.level < HARD_FROM else f"{_SCRIPTED}\n\n{_JUDGED}",
    ]
    return "\n\n".join(parts)


def _marked(made: Scene, family: str, notes: Sequence[str]) -> Sequence[str]:
    """The small print, with the number of its job where there are several."""
    if len(made.jobs) == 1:
        return notes
    number = 1 + [job.family for job in made.jobs].index(family)
    return [f"({number}) {note}" for note in notes]
