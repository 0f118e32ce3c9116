"""`gymsuite swebench`: a drop-in for the harness of SWE-bench, and what vets its rows."""

import asyncio
import json
import os
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from gymsuite.cli.loop import Interrupted, run
from gymsuite.cli.options import CacheOption, JsonOption, ProviderOption, cache_folder
from gymsuite.cli.swebench_place import Place, with_judge
from gymsuite.cli.swebench_tables import print_outcomes, vetted_table
from gymsuite.errors import DefinitionError, InfrastructureError, UsageError
from gymsuite.swe.harness import Done, Run, evaluate
from gymsuite.swe.judge import DEFAULT_SECONDS, Judge
from gymsuite.swe.loading import load_rows
from gymsuite.swe.predictions import GOLD, Prediction, read_predictions
from gymsuite.swe.rows import Row
from gymsuite.swe.vetting import RUNS, Vetted, Vettings, vet

app = typer.Typer(no_args_is_help=True, help="Judge predictions for rows of the SWE-bench family.")

EMPTY = "empty"
_INCOMPLETE = 3
_NOTHING = Prediction(instance_id="-", model="-")

Words = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="[ROWS] [ID]...",
        show_default=False,
        help="What --dataset is, unless it is given; then more ids, after -i.",
    ),
]
Dataset = Annotated[
    str | None,
    typer.Option(
        "--dataset",
        "-d",
        "--dataset_name",
        metavar="ROWS",
        help="A .json, .jsonl or .parquet file, a task repository, or a name in HF's cache.",
    ),
]
Split = Annotated[str, typer.Option("--split", "-s", metavar="NAME")]
Ids = Annotated[
    list[str] | None,
    typer.Option(
        *("--instance-ids", "--instance_ids", "--instance", "-i"),
        metavar="ID",
        help="Only these rows: `-i a b` or `-i a -i b`.",
    ),
]
Jobs = Annotated[
    int | None,
    typer.Option(
        *("--max-workers", "--max_workers", "--workers", "-j"),
        min=1,
        help="At once; 1 for each CPU.",
    ),
]
Seconds = Annotated[
    float, typer.Option("--timeout", "-t", min=1, metavar="S", help="For one row's tests.")
]
RepoDir = Annotated[
    Path | None,
    typer.Option(
        "--repo-dir",
        metavar="DIR",
        exists=True,
        help="Clones or bundles to build the images from; else the rows' own, from Docker.",
    ),
]


@app.command("eval")
def evaluate_predictions(
    words: Words = None,
    *,
    dataset: Dataset = None,
    predictions: Annotated[
        str | None,
        typer.Option(
            "--predictions",
            "-p",
            "--predictions_path",
            metavar="PREDS",
            help=f"A .json or .jsonl file, a folder, {GOLD!r} or {EMPTY!r}.",
        ),
    ] = None,
    gold: Annotated[bool, typer.Option("--gold", help=f"The same as -p {GOLD}.")] = False,
    run_id: Annotated[
        str, typer.Option("--run-id", "-id", "--run_id", metavar="NAME", help="Of the run.")
    ] = "run",
    split: Split = "test",
    ids: Ids = None,
    jobs: Jobs = None,
    seconds: Seconds = DEFAULT_SECONDS,
    repo_dir: RepoDir = None,
    report_dir: Annotated[
        Path, typer.Option("--report-dir", "--report_dir", metavar="DIR", help="Of the report.")
    ] = Path(),
    strict: Annotated[
        bool, typer.Option("--strict-upstream", help="SWE-bench's own verdict, faults and all.")
    ] = False,
    waive_flaky: Annotated[
        bool, typer.Option("--waive-flaky", help="Leave out tests that `vet` found to be flaky.")
    ] = False,
    provider: ProviderOption = None,
    cache: CacheOption = None,
    as_json: JsonOption = False,
) -> None:
    """Judge predictions, and write the files that SWE-bench's harness writes."""
    if strict and waive_flaky:
        raise UsageError("--strict-upstream waives no test: leave out one of it and --waive-flaky")
    dataset, chosen = _chosen(dataset, words or (), ids or ())
    source = _source(predictions, gold=gold)
    rows = load_rows(dataset, split=split, ids=chosen)
    wanted = _predictions(source, rows, chosen=bool(chosen))
    errors = Console(stderr=True, quiet=as_json)
    place = Place(provider, cache_folder(cache), repo_dir, seconds, strict, errors)
    work = Run(run_id, dataset, split, Path(), report_dir, jobs or os.cpu_count() or 1)
    seen: list[Done] = []

    async def go(judge: Judge, tick: Callable[[str], None]) -> tuple[Path, Mapping[str, object]]:
        def hear(done: Done) -> None:
            seen.append(done)
            tick(done.stored.ending or "no verdict")

        waived = _waived(judged, judge, place) if waive_flaky else {}
        return await evaluate(work, rows, wanted, judge, waived=waived, hear=hear)

    judged = [row for row in rows if not wanted.get(row.instance_id, _NOTHING).is_empty]
    try:
        path, report = run(with_judge(place, judged, len(wanted), go))
    except Interrupted:
        said = "interrupted; verdicts so far are kept, and the same command goes on from there"
        errors.print(said, soft_wrap=True)
        raise
    if as_json:
        typer.echo(json.dumps(report))
    else:
        print_outcomes(Console(), seen, rows, path)
    if any(done.stored.error for done in seen):
        raise typer.Exit(_INCOMPLETE)


@app.command("vet")
def vet_rows(
    words: Words = None,
    *,
    dataset: Dataset = None,
    split: Split = "test",
    ids: Ids = None,
    jobs: Jobs = None,
    seconds: Seconds = DEFAULT_SECONDS,
    repo_dir: RepoDir = None,
    runs: Annotated[int, typer.Option("--runs", min=1, metavar="N", help="Of each kind.")] = RUNS,
    provider: ProviderOption = None,
    cache: CacheOption = None,
    as_json: JsonOption = False,
) -> None:
    """Run gold and nothing some times each; exit code 1 if a row does not keep its word."""
    dataset, chosen = _chosen(dataset, words or (), ids or ())
    rows = load_rows(dataset, split=split, ids=chosen)
    errors = Console(stderr=True, quiet=as_json)
    place = Place(provider, cache_folder(cache), repo_dir, seconds, strict=False, console=errors)

    async def go(judge: Judge, tick: Callable[[str], None]) -> list[Vetted]:
        gate = asyncio.Semaphore(jobs or os.cpu_count() or 1)
        vettings = Vettings(place.cache / "swe/vetted")

        async def one(row: Row) -> Vetted:
            async with gate:
                try:
                    await asyncio.to_thread(judge.supply.ready, row)
                    found = await vet(row, judge, runs=runs)
                    vettings.write(row, judge, found)
                except (InfrastructureError, DefinitionError) as error:
                    found = Vetted(
                        instance_id=row.instance_id, gold=(), empty=(), reasons=(str(error),)
                    )
            tick("sound" if found.is_sound else "not sound")
            return found

        return list(await asyncio.gather(*map(one, rows)))

    vetted = run(with_judge(place, rows, len(rows), go))
    if as_json:
        typer.echo(json.dumps([one.model_dump(mode="json") for one in vetted]))
    else:
        Console().print(vetted_table(vetted))
    if not all(one.is_sound for one in vetted):
        raise typer.Exit(1)


def _chosen(
    dataset: str | None, words: Sequence[str], ids: Sequence[str]
) -> tuple[str, tuple[str, ...]]:
    """The rows' source and the wanted ids: SWE-bench's harness takes several behind one `-i`."""
    if dataset is None and not words:
        raise UsageError("which rows? Name a file, a folder or a data set: --dataset ROWS")
    source, more = (words[0], words[1:]) if dataset is None else (dataset, words)
    if more and not ids:
        raise UsageError(f"{more[0]!r} stands behind no option; ids of rows come after -i")
    return source, (*ids, *more)


def _source(predictions: str | None, *, gold: bool) -> str:
    if gold and predictions is not None:
        raise UsageError(f"--gold and --predictions {predictions}: give one of them")
    if not gold and predictions is None:
        raise UsageError(f"which predictions? Name a file or a folder, {GOLD!r} or {EMPTY!r}: -p")
    return predictions or GOLD


def _predictions(source: str, rows: Sequence[Row], *, chosen: bool) -> Mapping[str, Prediction]:
    if source == EMPTY:
        return {
            row.instance_id: Prediction(instance_id=row.instance_id, model=EMPTY, patch="")
            for row in rows
        }
    found = read_predictions(source, rows)
    if not chosen:
        return found
    known = {row.instance_id for row in rows}
    return {name: one for name, one in found.items() if name in known}


def _waived(rows: Sequence[Row], judge: Judge, place: Place) -> Mapping[str, Collection[str]]:
    vettings = Vettings(place.cache / "swe/vetted")
    found = {row.instance_id: vettings.read(row, judge) for row in rows}
    if unknown := [name for name, one in found.items() if one is None]:
        raise UsageError(
            f"--waive-flaky: {len(unknown)} rows were not vetted, such as {unknown[0]}; "
            "run `gymsuite swebench vet` with the same options first"
        )
    return {name: tuple(one.flaky) for name, one in found.items() if one is not None}
