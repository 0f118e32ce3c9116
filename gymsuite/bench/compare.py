"""How two reports differ: ratios with intervals, by drawing their episodes again and again."""

import random
import statistics
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from gymsuite.bench.report import BenchReport, Episode, Level
from gymsuite.errors import UsageError

_DRAWS = 2_000
_FEWEST = 5
_TAIL = 0.025


class Ratio(NamedTuple):
    """The second report's number divided by the first's, with a 95 % interval."""

    concurrency: int
    what: str
    first: float
    second: float
    ratio: float
    low: float
    high: float

    @property
    def differs(self) -> bool:
        """Whether the interval leaves out that both are the same."""
        return not self.low <= 1.0 <= self.high


class Measure(NamedTuple):
    """One number of a level: `of` reads it from each episode, and `over` sums them up."""

    what: str
    of: Callable[[BenchReport, Level, Episode], float]
    over: Callable[[Sequence[float]], float]


def _core_seconds(report: BenchReport, level: Level, episode: Episode) -> float:
    return episode.wall_seconds * report.processors / level.concurrency


def _per_core_hour(core_seconds: Sequence[float]) -> float:
    return 3600.0 / statistics.fmean(core_seconds)


def _cpu(report: BenchReport, level: Level, episode: Episode) -> float:  # noqa: ARG001 - a Measure
    return episode.cpu_seconds + level.suite_cpu_seconds / len(level.episodes)


MEASURES: tuple[Measure, ...] = (
    # As each of n slots always has an episode, it is their mean length that says how many end.
    Measure("episodes per core-hour", _core_seconds, _per_core_hour),
    Measure("episode, median seconds", lambda _, __, one: one.wall_seconds, statistics.median),
    Measure("create, median seconds", lambda _, __, one: one.seconds["create"], statistics.median),
    Measure("CPU-seconds per episode", _cpu, statistics.fmean),
)


def compare(first: BenchReport, second: BenchReport) -> list[Ratio]:
    """Compare level by level. Raises `UsageError` for reports that do not compare."""
    for what in ("workload", "tests", "git"):
        ours, theirs = getattr(first, what), getattr(second, what)
        if ours != theirs:
            raise UsageError(
                f"these reports do not compare: {what} is {ours!r} in the first and {theirs!r} in"
                " the second; measure one of them again, with the same gymsuite, in images that"
                " have the same tools (or with --tests unittest)"
            )
    ratios = [*_ratios(first, second)]
    if not ratios:
        raise UsageError(
            f"these reports have no level in common with {_FEWEST} episodes or more in both: the"
            f" first has {_levels(first)}, the second {_levels(second)}; give both the same"
            " --levels, and more --seconds or --episodes"
        )
    return ratios


def _ratios(first: BenchReport, second: BenchReport) -> Iterator[Ratio]:
    others = {level.concurrency: level for level in second.levels}
    for level in first.levels:
        other = others.get(level.concurrency)
        if other and min(len(level.episodes), len(other.episodes)) >= _FEWEST:
            for measure in MEASURES:
                a = [measure.of(first, level, one) for one in level.episodes]
                b = [measure.of(second, other, one) for one in other.episodes]
                yield ratio(level.concurrency, measure, a, b)


def ratio(concurrency: int, measure: Measure, a: Sequence[float], b: Sequence[float]) -> Ratio:
    """Divide b's number by a's, and draw both again to see how far chance could take that."""
    rng, over = random.Random(0), measure.over
    drawn = sorted(
        over(rng.choices(b, k=len(b))) / over(rng.choices(a, k=len(a))) for _ in range(_DRAWS)
    )
    edge = int(_DRAWS * _TAIL)
    x, y = over(a), over(b)
    return Ratio(concurrency, measure.what, x, y, y / x, drawn[edge], drawn[-1 - edge])


def _levels(report: BenchReport) -> str:
    return ", ".join(f"{one.concurrency} ({len(one.episodes)})" for one in report.levels) or "none"
