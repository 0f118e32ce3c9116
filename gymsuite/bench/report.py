"""What a benchmark measured, as a file that another run can be compared with."""

import statistics
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Literal

from pydantic import ValidationError

from gymsuite.bench.workload import Runner
from gymsuite.complaints import complaints
from gymsuite.errors import UsageError
from gymsuite.types import Model

_NEAR = 0.95
_HOUR = 3600.0


class Episode(Model):
    """One that was played to its end. `seconds` sums the steps of each kind, create to destroy."""

    seed: int
    wall_seconds: float
    cpu_seconds: float
    seconds: Mapping[str, float]


class Level(Model):
    """So many at once. `suite_cpu_seconds` is what this process used beside the sandboxes."""

    concurrency: int
    wall_seconds: float
    suite_cpu_seconds: float
    episodes: tuple[Episode, ...]
    failures: tuple[str, ...] = ()


class BenchReport(Model):
    """A run of the benchmark."""

    format: Literal["gymsuite bench"] = "gymsuite bench"
    workload: int
    git: bool
    tests: Runner
    seed: int
    provider: str
    image: str
    sandbox: Mapping[str, object]
    machine: Mapping[str, str | int]
    processors: float
    levels: tuple[Level, ...]

    @property
    def knee(self) -> int | None:
        """The least concurrency that reaches nearly the best throughput: more only waits longer."""
        rates = {level.concurrency: per_core_hour(self, level) for level in self.levels}
        best = max(rates.values(), default=0.0)
        return min((n for n, rate in rates.items() if best and rate >= best * _NEAR), default=None)

    @property
    def failures(self) -> int:
        """How many episodes were not played to their end."""
        return sum(len(level.failures) for level in self.levels)


def per_core_hour(report: BenchReport, level: Level) -> float:
    """Episodes for each hour of each processor that this process may use."""
    if not level.wall_seconds:
        return 0.0
    return len(level.episodes) / level.wall_seconds * _HOUR / report.processors


def percentile(values: Sequence[float], share: float) -> float:
    """The value that a share of all is not above, between neighbours by their distance."""
    ordered = sorted(values)
    at = (len(ordered) - 1) * share
    low = int(at)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (at - low)


def cpu_seconds(level: Level) -> float:
    """What an episode used, in its sandbox and in this process."""
    own = level.suite_cpu_seconds / len(level.episodes)
    return own + statistics.fmean(episode.cpu_seconds for episode in level.episodes)


def of_level(level: Level, value: Callable[[Episode], float]) -> list[float]:
    """One number of each episode."""
    return [value(episode) for episode in level.episodes]


def read(path: Path) -> BenchReport:
    """Read a report. Raises `UsageError` for what is none."""
    try:
        return BenchReport.model_validate_json(path.read_bytes())
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror}") from error
    except ValidationError as error:
        what = complaints(error, "the whole file")
        raise UsageError(f"{path} is no report of `gymsuite bench --out`: {what}") from error
