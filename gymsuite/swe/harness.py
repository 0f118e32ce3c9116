"""Judges predictions for rows, many at once, and leaves upstream's files behind.

A row is done again when its patch, its row, its image or the way of judging has changed; what is
done already is kept. Where the world breaks, a row has no verdict: an error, never unresolved.
"""

import asyncio
import hashlib
import json
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from pydantic import JsonValue

from gymsuite.errors import DefinitionError, InfrastructureError, UsageError
from gymsuite.swe import reports, script
from gymsuite.swe.judge import Judge
from gymsuite.swe.judgement import Ending, Judgement
from gymsuite.swe.predictions import Prediction, unknown_ids
from gymsuite.swe.rows import Row
from gymsuite.types import Model

_FORMAT = 1
_SHOWN_IDS = 5


class Stored(Model):
    """What we know of a row beyond upstream's report: verdict.json beside it.

    `key` says of what this is the verdict. `error` is why there is none.
    """

    key: str
    ending: str
    evidence: str = ""
    reason: str = ""
    how: str = ""
    undone: tuple[str, ...] = ()
    forged: str = ""
    differences: tuple[str, ...] = ()
    waived: tuple[str, ...] = ()
    test_seconds: float = 0.0
    error: str = ""


class Done(NamedTuple):
    """One row's outcome; `kept` says that it was there already."""

    instance_id: str
    stored: Stored
    kept: bool


@dataclass(frozen=True)
class Run:
    """What a run is called, where its files go, and how many rows are judged at once."""

    run_id: str
    dataset: str
    split: str
    root: Path
    report_dir: Path
    jobs: int
    attempts: int = 3


async def evaluate(  # noqa: PLR0913 - what is judged, by whom, and who hears of it
    run: Run,
    rows: Sequence[Row],
    predictions: Mapping[str, Prediction],
    judge: Judge,
    *,
    waived: Mapping[str, Collection[str]],
    hear: Callable[[Done], None],
) -> tuple[Path, Mapping[str, JsonValue]]:
    """Judge every row that has a prediction; returns the run's report, and where it lies.

    Raises `UsageError` for predictions of rows that there are not, as upstream does.
    """
    if unknown := unknown_ids(predictions, rows):
        more = f" and {len(unknown) - _SHOWN_IDS} more" if len(unknown) > _SHOWN_IDS else ""
        raise UsageError(
            f"predictions for rows that {run.dataset} does not have: "
            f"{', '.join(unknown[:_SHOWN_IDS])}{more}"
        )
    info = reports.RunInfo(
        dataset=run.dataset,
        split=run.split,
        created_at=datetime.now(UTC).isoformat(timespec="seconds"),
    )
    folder = reports.run_folder(run.root, run.run_id)
    reports.write_json(folder / reports.RUN, info.model_dump(mode="json"))
    gate = asyncio.Semaphore(run.jobs)

    async def one(row: Row, prediction: Prediction) -> None:
        async with gate:
            done = await _one(run, row, prediction, judge, waived.get(row.instance_id, ()))
        hear(done)

    try:
        async with asyncio.TaskGroup() as group:
            for row in rows:
                prediction = predictions.get(row.instance_id)
                if prediction is not None:
                    group.create_task(one(row, prediction))
    except ExceptionGroup as errors:  # a full disk of this machine, say: one cause ends them all
        raise errors.exceptions[0] from errors
    report = reports.run_report(run.root, run.run_id, rows, predictions)
    path = reports.report_path(run.report_dir, run.run_id, predictions)
    reports.write_json(path, report)
    return path, report


async def _one(
    run: Run, row: Row, prediction: Prediction, judge: Judge, waived: Collection[str]
) -> Done:
    folder = reports.instance_folder(run.root, run.run_id, prediction)
    key = key_of(row, prediction, judge, waived)
    stored = _read(folder / reports.VERDICT)
    if stored is not None and stored.key == key and not stored.error:
        return Done(row.instance_id, stored, kept=True)
    for name in (reports.REPORT, reports.VERDICT, reports.OUTPUT):
        (folder / name).unlink(missing_ok=True)
    folder.mkdir(parents=True, exist_ok=True)
    text = (prediction.patch or "").encode("utf-8", "surrogateescape")
    (folder / reports.PATCH).write_bytes(text)
    try:
        judgement = await _patiently(run, row, prediction, judge, waived)
    except (InfrastructureError, DefinitionError) as error:
        stored = Stored(key=key, ending="", error=f"{type(error).__name__}: {error}")
    else:
        stored = _stored(key, judgement, waived)
        _write_files(folder, row, prediction, judge, judgement)
    log = folder / reports.LOG
    with log.open("a", encoding="utf-8") as file:
        file.write(f"{stored.ending or 'no verdict'}: {stored.reason or stored.error}\n")
    reports.write_json(folder / reports.VERDICT, stored.model_dump(mode="json"))
    return Done(row.instance_id, stored, kept=False)


async def _patiently(
    run: Run, row: Row, prediction: Prediction, judge: Judge, waived: Collection[str]
) -> Judgement:
    """Judge, and try again where the world broke in a way that may pass."""
    if not prediction.is_empty:
        if row.fail_to_pass and not set(row.fail_to_pass) - set(waived):
            raise DefinitionError(
                f"{row.instance_id}: every test that tells a repair is flaky and waived: "
                "any patch would be resolved"
            )
        await asyncio.to_thread(judge.supply.ready, row)
    for left in reversed(range(run.attempts)):
        try:
            return await judge.judge(row, prediction.patch, waived=waived)
        except InfrastructureError as error:
            if not error.retryable or not left:
                raise
    raise AssertionError  # the last attempt returns or raises


def key_of(row: Row, prediction: Prediction, judge: Judge, waived: Collection[str]) -> str:
    """Of what a verdict is the verdict: a change of any part asks for a new one."""
    parts = [
        _FORMAT,
        row.model_dump_json(),
        prediction.patch,
        judge.supply.label(row),
        judge.strict,
        judge.seconds,
        sorted(waived),
    ]
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()


def _stored(key: str, judgement: Judgement, waived: Collection[str]) -> Stored:
    return Stored(
        key=key,
        ending=judgement.ending.value,
        evidence=judgement.evidence.value,
        reason=judgement.reason,
        how=judgement.how,
        undone=judgement.undone,
        forged=judgement.forged,
        differences=judgement.differences,
        waived=tuple(sorted(waived)),
        test_seconds=round(judgement.test_seconds, 3),
    )


def _write_files(
    folder: Path, row: Row, prediction: Prediction, judge: Judge, judgement: Judgement
) -> None:
    """Upstream's files. What does not apply or does not end has no report, as upstream has it."""
    text = script.of(row, strict=judge.strict)
    (folder / reports.SCRIPT).write_text(text, "utf-8", "surrogateescape")
    (folder / reports.LOG).write_text(judgement.patch_log, "utf-8", "replace")
    if judgement.log:
        (folder / reports.OUTPUT).write_bytes(judgement.log)
    if judgement.ending in {Ending.RESOLVED, Ending.UNRESOLVED}:
        log = judgement.log.decode("utf-8", "replace")
        report = reports.instance_report(prediction, judgement.verdict, log)
        reports.write_json(folder / reports.REPORT, report)


def _read(path: Path) -> Stored | None:
    try:
        return Stored.model_validate_json(path.read_bytes())
    except (OSError, ValueError):
        return None
