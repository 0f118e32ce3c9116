"""The benchmark's workload stays what it is, and its comparisons claim no more than they can."""

import asyncio
import hashlib
import itertools
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from gymsuite import Sandbox, SandboxSpec
from gymsuite.bench.compare import Ratio, compare
from gymsuite.bench.play import Length, play_level, variant
from gymsuite.bench.report import BenchReport, Episode, Level, per_core_hour, percentile, read
from gymsuite.bench.workload import MIX, VERSION, Variant, episode
from gymsuite.errors import SandboxError, UsageError
from gymsuite.sandbox.protocol import ExecResult

_WITH_GIT = Variant(git=True, tests="unittest")
_FILES = 7  # modules and their tests, which all else needs first


def _level(concurrency: int, mean: float, count: int = 60, seed: int = 1) -> Level:
    rng = random.Random(seed)
    walls = [mean * rng.uniform(0.8, 1.2) for _ in range(count)]
    return Level(
        concurrency=concurrency,
        wall_seconds=sum(walls) / concurrency,
        suite_cpu_seconds=0.1 * count,
        episodes=tuple(
            Episode(seed=n, wall_seconds=wall, cpu_seconds=wall / 2, seconds={"create": wall / 10})
            for n, wall in enumerate(walls)
        ),
    )


def _report(*levels: Level, **changed: object) -> BenchReport:
    report = BenchReport(
        workload=VERSION, git=True, tests="unittest", seed=0, provider="local", image="base:0",
        sandbox={}, machine={}, processors=2.0, levels=levels,
    )  # fmt: skip
    return report.model_copy(update=changed)


def _ratio(ratios: list[Ratio], what: str) -> Ratio:
    return next(ratio for ratio in ratios if ratio.what == what)


def test_the_workload_of_this_version_is_what_it_was() -> None:
    steps = [episode(seed, _WITH_GIT) for seed in range(3)]
    digest = hashlib.sha256(repr(steps).encode()).hexdigest()
    assert (VERSION, digest) == (
        1,
        "e1766d4937a5ddafcb0dae1782b99d6903642dcdf69902c7f35e554e21516c53",
    ), "another workload is another VERSION"


def test_every_episode_has_the_declared_mix_whatever_the_seed() -> None:
    for seed in range(20):
        kinds = [step.kind for step in episode(seed, _WITH_GIT)]
        assert {kind: kinds.count(kind) for kind in MIX} == dict(MIX)


def test_a_seed_draws_the_same_episode_again_and_another_seed_another() -> None:
    assert episode(7, _WITH_GIT) == episode(7, _WITH_GIT)
    assert episode(7, _WITH_GIT) != episode(8, _WITH_GIT)


def test_files_are_written_before_anything_needs_them() -> None:
    assert {step.kind for step in episode(3, _WITH_GIT)[:_FILES]} == {"files"}


def test_an_image_without_git_runs_no_git() -> None:
    assert "git" not in {step.kind for step in episode(0, Variant(git=False, tests="pytest"))}


@pytest.mark.parametrize(
    ("fails", "missing"), [("python3 --version", "python3"), ("import pytest", "pytest")]
)
def test_an_image_without_what_was_asked_for_is_the_callers_mistake(
    fails: str, missing: str
) -> None:
    async def execute(command: str, **_: object) -> ExecResult:
        return ExecResult(int(fails in command), b"", b"")

    @asynccontextmanager
    async def opened(_: SandboxSpec) -> AsyncIterator[Sandbox]:
        yield cast("Sandbox", SimpleNamespace(exec=execute, description={}))

    with pytest.raises(UsageError, match=f"image 'x' has no {missing}: name another by --image"):
        asyncio.run(variant(opened, SandboxSpec(image="x"), "pytest"))


def test_throughput_counts_the_processors() -> None:
    level = _level(4, 1.0)
    one, two = _report(level, processors=1.0), _report(level)
    assert per_core_hour(one, level) == 2 * per_core_hour(two, level)


def test_percentiles_lie_between_their_neighbours() -> None:
    assert percentile([3.0, 1.0, 2.0], 0.5) == 2.0
    assert percentile([1.0, 2.0], 0.75) == 1.75
    assert percentile([5.0], 0.99) == 5.0


def test_the_knee_is_the_least_concurrency_that_is_nearly_as_good_as_any() -> None:
    report = _report(_level(1, 1.0), _level(2, 1.0), _level(4, 2.04), _level(8, 4.1))
    assert report.knee == 2
    assert _report().knee is None


def test_half_as_long_episodes_are_twice_the_throughput_with_an_interval_around_it() -> None:
    first, second = _report(_level(4, 2.0)), _report(_level(4, 1.0, seed=2))
    found = _ratio(compare(first, second), "episodes per core-hour")
    assert found.low < found.ratio < found.high
    assert found.ratio == pytest.approx(2.0, rel=0.1)
    assert found.differs


def test_two_runs_of_the_same_differ_by_nothing_that_can_be_shown() -> None:
    ratios = compare(_report(_level(4, 1.0, seed=3)), _report(_level(4, 1.0, seed=4)))
    for what in ("episodes per core-hour", "CPU-seconds per episode"):
        found = _ratio(ratios, what)
        assert found.low <= 1.0 <= found.high
        assert not found.differs


def test_a_comparison_comes_out_the_same_each_time() -> None:
    first, second = _report(_level(4, 2.0)), _report(_level(4, 1.7, seed=2))
    assert compare(first, second) == compare(first, second)


def test_more_episodes_make_a_narrower_interval() -> None:
    def width(count: int) -> float:
        a, b = _level(4, 1.0, count), _level(4, 1.0, count, seed=2)
        found = _ratio(compare(_report(a), _report(b)), "episodes per core-hour")
        return found.high - found.low

    assert width(400) < width(10) / 3


@pytest.mark.parametrize(
    ("changed", "named"),
    [
        ({"workload": VERSION + 1}, "workload"),
        ({"tests": "pytest"}, "tests"),
        ({"git": False}, "git"),
    ],
)
def test_reports_of_different_work_do_not_compare(changed: dict[str, object], named: str) -> None:
    with pytest.raises(UsageError, match=f"do not compare: {named} is"):
        compare(_report(_level(1, 1.0)), _report(_level(1, 1.0), **changed))


def test_reports_without_a_common_level_do_not_compare() -> None:
    with pytest.raises(UsageError, match=r"no level in common.*1 \(60\).*2 \(60\)"):
        compare(_report(_level(1, 1.0)), _report(_level(2, 1.0)))
    with pytest.raises(UsageError, match="5 episodes or more"):
        compare(_report(_level(1, 1.0, 4)), _report(_level(1, 1.0)))


def test_a_report_is_read_as_it_was_written_and_what_is_none_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    report = _report(_level(1, 1.0, 5))
    path.write_text(report.model_dump_json())
    assert read(path) == report
    for text in ("", "[]", '{"format": "something"}'):
        path.write_text(text)
        with pytest.raises(UsageError, match=r"a\.json is no report"):
            read(path)
    with pytest.raises(UsageError, match="cannot read"):
        read(tmp_path / "none.json")


def test_a_level_has_so_many_at_once_and_counts_failures_apart() -> None:
    running, most = 0, 0

    async def play(seed: int) -> Episode:
        nonlocal running, most
        running += 1
        most = max(most, running)
        await asyncio.sleep(0.001)
        running -= 1
        if seed % 4 == 0:
            raise SandboxError("broken")
        return Episode(seed=seed, wall_seconds=1, cpu_seconds=1, seconds={"create": 1})

    told: list[tuple[int, float, int]] = []
    level = asyncio.run(
        play_level(play, 3, Length(1.0, 12), itertools.count(), lambda *what: told.append(what))
    )
    assert most == 3
    assert (len(level.episodes), level.failures) == (9, ("broken",) * 3)
    assert told[-1] == (3, 1.0, 12)


def test_a_level_of_seconds_plays_one_episode_in_each_slot_at_least() -> None:
    async def play(seed: int) -> Episode:
        await asyncio.sleep(0.05)
        return Episode(seed=seed, wall_seconds=1, cpu_seconds=1, seconds={"create": 1})

    length = Length(0.01, None)
    level = asyncio.run(play_level(play, 5, length, itertools.count(), lambda *_: None))
    assert sorted(one.seed for one in level.episodes) == [0, 1, 2, 3, 4]
