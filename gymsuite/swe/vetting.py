"""Finds out whether a row can be trusted: its gold patch some times, no patch some times.

What is found is kept by row and image. A test that does not always come out alike is flaky: it is
reported, and on request left out of verdicts.
"""

import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path

from gymsuite.sandbox.records import write_whole
from gymsuite.swe.judge import Judge
from gymsuite.swe.judgement import Judgement
from gymsuite.swe.resolving import Names
from gymsuite.swe.rows import Row
from gymsuite.types import Model

RUNS = 3
_ABSENT = "absent"


class Vetted(Model):
    """What came of a row's runs.

    `gold` and `empty` are the endings of each run, `flaky` the statuses of named tests that came
    out differently in equal runs, `reasons` why gold fails or no patch passes. `seconds` is how
    long the tests took at most, and `evidence` what the verdict of gold rests on.
    """

    instance_id: str
    gold: tuple[str, ...]
    empty: tuple[str, ...]
    flaky: Mapping[str, tuple[str, ...]] = {}
    reasons: tuple[str, ...] = ()
    evidence: str = ""
    seconds: float = 0.0

    @property
    def is_sound(self) -> bool:
        """Whether gold was always resolved, and no patch never."""
        return {*self.gold} == {"resolved"} and "resolved" not in self.empty


class Vettings:
    """What is known of rows, below a folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def read(self, row: Row, judge: Judge) -> Vetted | None:
        """What was found of a row in its image, or None."""
        try:
            return Vetted.model_validate_json(self._path(row, judge).read_bytes())
        except (OSError, ValueError):
            return None

    def write(self, row: Row, judge: Judge, found: Vetted) -> None:
        """Keep what was found."""
        path = self._path(row, judge)
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, found.model_dump_json(indent=1))

    def _path(self, row: Row, judge: Judge) -> Path:
        parts = f"{row.model_dump_json()}|{judge.supply.label(row)}|{judge.strict}"
        return self._folder / f"{hashlib.sha256(parts.encode()).hexdigest()}.json"


async def vet(row: Row, judge: Judge, *, runs: int = RUNS) -> Vetted:
    """Run the row's tests with its gold patch and without any, so many times each."""
    gold = [await judge.run(row, row.patch) for _ in range(runs)]
    empty = [await judge.run(row, b"") for _ in range(runs)]
    flaky = {**_flaky(row, gold), **_flaky(row, empty)}
    reasons = [f"gold: {one.reason or one.ending}" for one in gold if not one.resolved]
    reasons += ["without a patch it is resolved" for one in empty if one.resolved]
    return Vetted(
        instance_id=row.instance_id,
        gold=tuple(one.ending.value for one in gold),
        empty=tuple(one.ending.value for one in empty),
        flaky=flaky,
        reasons=tuple(dict.fromkeys(reasons)),
        evidence=gold[0].evidence.value if gold else "",
        seconds=round(max((one.test_seconds for one in (*gold, *empty)), default=0.0), 2),
    )


def _flaky(row: Row, runs: Sequence[Judgement]) -> dict[str, tuple[str, ...]]:
    """The statuses of named tests in equal runs, where they differ."""
    names = [Names(one.results) for one in runs if one.results.statuses]
    seen = {test: tuple(each.status(test) or _ABSENT for each in names) for test in row.named_tests}
    return {test: statuses for test, statuses in seen.items() if len({*statuses}) > 1}
