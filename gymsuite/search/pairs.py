"""Scores twins together: a question and its edition that cannot be answered."""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from gymsuite.types import Rollout, Task


class PairScore(NamedTuple):
    """How many pairs there are, and the shares passed on both sides and on either."""

    pairs: int
    both: float
    answerable: float
    unanswerable: float


def score_pairs(tasks: Iterable[Task], rollouts: Iterable[Rollout]) -> PairScore:
    """Score the pairs of an environment whose tasks say `pair` and `answerable` in `metadata`.

    A rollout without a score counts nowhere, and neither does its twin; of several rollouts of one
    task all must pass.
    """
    passed: dict[str, bool] = {}
    for record in rollouts:
        if record.score is not None:
            passed[record.task] = record.score.passed and passed.get(record.task, True)
    halves: dict[str, dict[bool, bool]] = {}
    for task in tasks:
        pair = task.metadata.get("pair")
        if pair and task.id in passed:
            answerable = bool(task.metadata["answerable"])
            halves.setdefault(str(pair), {})[answerable] = passed[task.id]
    return _summary([pair for pair in halves.values() if len(pair) == len((True, False))])


def _summary(pairs: Sequence[Mapping[bool, bool]]) -> PairScore:
    if not pairs:
        return PairScore(0, 0.0, 0.0, 0.0)
    count = len(pairs)
    return PairScore(
        count,
        sum(pair[True] and pair[False] for pair in pairs) / count,
        sum(pair[True] for pair in pairs) / count,
        sum(pair[False] for pair in pairs) / count,
    )
