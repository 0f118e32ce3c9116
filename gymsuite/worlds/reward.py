"""The one reward of all worlds: what changed, against what should have changed."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from gymsuite.environment import Verifier
from gymsuite.sandbox.protocol import OpenSandbox
from gymsuite.types import Score, Submission, Task
from gymsuite.worlds.addresses import mailboxes
from gymsuite.worlds.gold import Ending, Fact, Gold, Left, Mine
from gymsuite.worlds.matching import Pairing, agrees, pair
from gymsuite.worlds.schema import Column, Schema, normal
from gymsuite.worlds.state import Change
from gymsuite.worlds.telling import told

PROGRESS_WEIGHT = 0.3
"""What all of the progress without success is worth."""


@dataclass(frozen=True)
class Diff:
    """Atoms of the expected change: how many came true, and what came instead.

    An atom is one compared column of one expected change, or the row itself where a change has no
    such column.
    """

    atoms: int
    right: int
    wrong: int
    collateral: int

    @property
    def exact(self) -> bool:
        """Everything expected happened, and nothing else."""
        return self.right == self.atoms and not self.wrong and not self.collateral

    @property
    def progress(self) -> float:
        """0 for doing nothing, 1 for exactly what was expected."""
        return max(0.0, (self.right - self.wrong - self.collateral) / self.atoms)


def verifier(schema: Schema) -> Verifier:
    """The verifier of a world: it judges the rows that changed, and what was read and said."""

    async def verify(task: Task, submission: Submission, _: OpenSandbox) -> Score:
        gold = Gold.model_validate(task.hidden["gold"])
        return judge(schema, gold, Left.model_validate(submission.state))

    return verify


def judge(schema: Schema, gold: Gold, left: Left) -> Score:
    """Score what an episode left.

    Success is strict: one accepted set of changes exactly, no mine, every required row read, every
    required fact said. Else the progress counts, and it is nothing when a required row was never
    read (a lucky guess) or a mine went off.
    """
    ends = [_reach(schema, ending, left) for ending in gold.accepted]
    end = max(ends, key=lambda end: (end.diff.exact and not end.untold, end.diff.progress))
    diff = end.diff
    unread = [group for group in gold.reads if not set(group) & set(left.reads)]
    reads = _share([group not in unread for group in gold.reads])
    mines = [mine for mine in gold.mines if any(_goes_off(schema, mine, c) for c in left.changes)]
    success = diff.exact and not end.untold and reads == 1 and not mines
    progress = 0.0 if mines or reads < 1 else diff.progress
    return Score(
        reward=1.0 if success else PROGRESS_WEIGHT * progress,
        passed=success,
        metrics={
            "success": float(success),
            "progress": progress,
            "state": float(diff.exact),
            "tell": end.tell,
            "reads": reads,
            "collateral": float(diff.collateral),
            "wrong": float(diff.wrong),
            "minefield": float(len(mines)),
            "calls": float(left.calls),
            "invalid_calls": float(left.invalid_calls),
        },
        details=_details(end, unread, mines),
    )


@dataclass(frozen=True)
class _End:
    """How close an episode came to one accepted end."""

    diff: Diff
    tell: float
    untold: tuple[Fact, ...]


def _reach(schema: Schema, ending: Ending, left: Left) -> _End:
    untold = tuple(fact for fact in ending.tell if not told(fact, left.said))
    share = _share([fact not in untold for fact in ending.tell])
    return _End(measure(schema, ending.changes, left.changes), share, untold)


def measure(schema: Schema, expected: Sequence[Change], actual: Sequence[Change]) -> Diff:
    """Compare two sets of changes."""
    found = pair(schema, expected, actual)
    atoms = right = wrong = 0
    for change, answer in found.pairs:
        of, matched, off = _compare(schema, change, answer, found)
        atoms, right, wrong = atoms + of, right + matched, wrong + off
    collateral = sum(_matters(schema, change) for change in found.uncalled)
    return Diff(max(1, atoms), right, wrong, collateral)


def _compare(
    schema: Schema, wanted: Change, given: Change | None, found: Pairing
) -> tuple[int, int, int]:
    """Atoms of one expected change, how many of them came true, and how many values are wrong."""
    columns = {
        name: column
        for name, column in schema.table[wanted.table].column.items()
        if column.compared
    }
    atoms = [name for name in wanted.after if name in columns]
    if given is None:
        return max(1, len(atoms)), 0, 0
    if wanted.op != given.op:
        return max(1, len(atoms)), 0, 1
    right = [
        name
        for name in atoms
        if name in given.after
        and agrees(columns[name], wanted.after[name], given.after[name], found.new_ids)
    ]
    wrong = [name for name in given.after if name in columns and name not in right]
    return max(1, len(atoms)), len(right) if atoms else 1, len(wrong)


def _matters(schema: Schema, change: Change) -> bool:
    table = schema.table[change.table]
    if table.audit:
        return False
    if change.op != "update":
        return True
    return any(name in table.column and table.column[name].compared for name in change.after)


def _goes_off(schema: Schema, mine: Mine, change: Change) -> bool:
    now: Mapping[str, object] = {**change.before, **change.after}
    return (
        change.table == mine.table
        and mine.op in (None, change.op)
        and mine.id in (None, change.id)
        and all(
            _meets(schema.table[mine.table].column[name], value, now.get(name))
            for name, value in mine.where.items()
        )
    )


def _meets(column: Column, forbidden: object, given: object) -> bool:
    if column.kind == "addresses" and isinstance(forbidden, str) and isinstance(given, str):
        return bool(mailboxes(forbidden) & mailboxes(given))
    return normal(column.kind, forbidden) == normal(column.kind, given)


def _share(flags: Sequence[bool]) -> float:
    return sum(flags) / len(flags) if flags else 1.0


def _details(end: _End, unread: Sequence[Sequence[str]], mines: Sequence[Mine]) -> str:
    """What kept it from success, in words."""
    diff = end.diff
    lines = []
    if diff.right < diff.atoms:
        lines.append(f"{diff.atoms - diff.right} of {diff.atoms} expected values are missing")
    if diff.wrong:
        lines.append(f"{diff.wrong} values are wrong")
    if diff.collateral:
        lines.append(f"{diff.collateral} rows were changed that should not be")
    lines += [f"never read: {' or '.join(group)}" for group in unread]
    lines += [f"never said: {_fact(fact)}" for fact in end.untold]
    lines += [f"forbidden: {mine.op or 'change'} of {mine.table}" for mine in mines]
    return "; ".join(lines)


def _fact(fact: Fact) -> str:
    return f"{fact.value} {fact.kind}" if fact.kind == "cents" else str(fact.value)
