"""What the rows of a run amount to so far: where each rollout stands, and what all of it cost.

The last attempt at a rollout is where it stands. The costs of all attempts add up, and those of
failed ones are known apart: they were paid for and bought nothing.
"""

from collections.abc import Iterable
from typing import NamedTuple

from gymsuite.metrics import Tally
from gymsuite.runs.log import Key, Row
from gymsuite.runs.plan import Plan, Slot
from gymsuite.types import Rollout, Usage

_PEAK = "sandbox_peak_bytes"


class Standing(NamedTuple):
    """How the last attempt at one rollout ended. `kind` is that of its failure, or ""."""

    digest: str
    attempts: int
    reward: float = 0.0
    passed: bool = False
    kind: str = ""
    retryable: bool = True


class Costs:
    """A sum of usages."""

    def __init__(self) -> None:
        self._sums = dict.fromkeys(Usage.model_fields, 0)

    def add(self, usage: Usage) -> None:
        """Add all figures; of the peak memory keep the highest."""
        for name, value in usage:
            sums = self._sums
            sums[name] = max(sums[name], value) if name == _PEAK else sums[name] + value

    @property
    def total(self) -> Usage:
        """The sum so far."""
        return Usage.model_validate(self._sums)


class Ledger:
    """Folds attempts as they come; holds some hundred bytes per rollout, and no conversation."""

    def __init__(self, attempts: Iterable[Row] = ()) -> None:
        self.costs: dict[str, Costs] = {}
        self.wasted = Costs()
        self.messages: dict[str, str] = {}
        self._standings: dict[Key, Standing] = {}
        for attempt in attempts:
            self.add(attempt)

    def add(self, attempt: Row | Rollout) -> None:
        """Count one attempt; the latest of a rollout is where it stands."""
        key = Key(attempt.environment, attempt.task, attempt.repeat)
        before = self._standings.get(key)
        same = before is not None and before.digest == attempt.task_digest
        standing = Standing(attempt.task_digest, 1 + (before.attempts if before and same else 0))
        self.costs.setdefault(attempt.environment, Costs()).add(attempt.usage)
        if attempt.score is not None:
            standing = standing._replace(reward=attempt.score.reward, passed=attempt.score.passed)
        elif attempt.failure is not None:
            kind = attempt.failure.kind
            standing = standing._replace(kind=kind, retryable=attempt.failure.retryable)
            self.wasted.add(attempt.usage)
            self.messages[kind] = attempt.failure.message
        self._standings[key] = standing

    def standing(self, slot: Slot) -> Standing | None:
        """Where a rollout stands; None if it was never finished, or its task has changed since."""
        standing = self._standings.get(slot.key)
        return standing if standing is not None and standing.digest == slot.digest else None

    def is_outdated(self, slot: Slot) -> bool:
        """Whether there is a rollout, but of a task that has changed since."""
        return slot.key in self._standings and self.standing(slot) is None

    def tallies(self, plan: Plan) -> dict[str, Tally]:
        """What the plan's rollouts came to, by environment."""
        tallies = {environment.id: Tally() for environment in plan.environments}
        for slot in plan:
            standing = self.standing(slot)
            if standing is None:
                continue
            tally = tallies[slot.environment.id]
            if standing.kind:
                tally.failures[standing.kind] += 1
            else:
                tally.tasks[slot.task.id].add(standing.reward, passed=standing.passed)
        return tallies
