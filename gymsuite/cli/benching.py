"""`gymsuite bench`: what sandboxes carry on this machine, and how two machines compare."""

import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Literal

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from gymsuite.bench.compare import compare
from gymsuite.bench.play import Length, Told
from gymsuite.bench.report import BenchReport, read
from gymsuite.bench.run import Request
from gymsuite.bench.run import bench as measure
from gymsuite.cli.bench_tables import print_ratios, print_report, ratios_as_json
from gymsuite.cli.loop import run
from gymsuite.cli.options import CacheOption, JsonOption, ProviderOption, cache_folder
from gymsuite.errors import UsageError
from gymsuite.registry import Registry
from gymsuite.sandbox.records import write_whole

_SECONDS = 10.0
_DAY_SECONDS = 86_400.0
_MOST = 4_096
_INCOMPLETE = 3


def bench(
    comparable: Annotated[
        list[Path] | None, typer.Argument(metavar="[A.json B.json]", help="With --compare.")
    ] = None,
    *,
    provider: ProviderOption = None,
    levels: Annotated[
        str | None,
        typer.Option(metavar="N,N,...", help="How many at once; 1,2,4 ... 8 for each CPU."),
    ] = None,
    seconds: Annotated[
        float | None,
        typer.Option(min=0.1, max=_DAY_SECONDS, help=f"How long a level takes; {_SECONDS:g}."),
    ] = None,
    episodes: Annotated[
        int | None, typer.Option(min=1, help="So many in each level, however long they take.")
    ] = None,
    image: Annotated[str, typer.Option(help="What to start from; it needs Python.")] = "base",
    tests: Annotated[
        Literal["auto", "pytest", "unittest"],
        typer.Option(help="What runs the tests; pytest where the image has it."),
    ] = "auto",
    seed: Annotated[int, typer.Option(min=0, help="What contents and order are drawn from.")] = 0,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", metavar="FILE", help="Where to write the report.")
    ] = None,
    comparing: Annotated[
        bool, typer.Option("--compare", help="Compare two reports instead of measuring.")
    ] = False,
    cache: CacheOption = None,
    as_json: JsonOption = False,
) -> None:
    """Play a fixed workload in sandboxes, with ever more of them at once.

    An episode creates a sandbox, writes and reads files, runs shell commands,
    Python, git and tests, and removes the sandbox. The knee is the least
    concurrency that reaches 95 % of the best throughput.
    """
    if comparing:
        _compare(comparable or [], as_json=as_json)
        return
    if comparable:
        raise UsageError(f"{comparable[0]}: files are for --compare; --out names the report")
    if seconds is not None and episodes is not None:
        raise UsageError("--seconds and --episodes: a level ends by one of them, not both")
    if out is not None:
        _check_place(out.absolute(), f"--out {out}")
    request = Request(
        provider=provider,
        image=image,
        tests=None if tests == "auto" else tests,
        levels=_levels(levels),
        length=Length(seconds or _SECONDS, episodes),
        seed=seed,
        image_roots=Registry.default().image_roots,
        cache=cache_folder(cache),
    )
    with _screen(request, quiet=as_json) as (note, told):
        report = run(measure(request, note, told, _keeper(out)))
    if as_json:
        typer.echo(report.model_dump_json())
    else:
        print_report(Console(highlight=False), report)
    if report.failures:
        raise typer.Exit(_INCOMPLETE)


def _compare(files: list[Path], *, as_json: bool) -> None:
    if len(files) != 2:  # noqa: PLR2004 - A and B
        raise UsageError("--compare takes two files: gymsuite bench --compare A.json B.json")
    first, second = map(read, files)
    ratios = compare(first, second)
    if as_json:
        typer.echo(ratios_as_json(ratios))
    else:
        print_ratios(Console(highlight=False), (first, second), ratios)


def _keeper(out: Path | None) -> Callable[[BenchReport], None]:
    """Write the report after each level, so that an interrupted run has those that ended."""

    def keep(report: BenchReport) -> None:
        if out is not None:
            write_whole(out, report.model_dump_json(indent=1))

    return keep


def _check_place(path: Path, what: str) -> None:
    """Raise `UsageError` for what could not be written once everything is measured."""
    if path.is_dir():
        raise UsageError(f"{what}: it is a folder; name a file in it, as in {path / 'a.json'}")
    if not path.parent.is_dir():
        raise UsageError(f"{what}: there is no folder {path.parent}")
    try:
        tempfile.TemporaryFile(dir=path.parent).close()
    except OSError as error:
        raise UsageError(f"{what}: {path.parent} cannot be written to; name another") from error


def _levels(text: str | None) -> list[int]:
    if text is None:
        most = 8 * (os.cpu_count() or 1)
        return [2**n for n in range(most.bit_length()) if 2**n <= most]
    parts = [part.strip() for part in text.split(",")]
    if not all(part.isdecimal() and 0 < int(part) <= _MOST for part in parts):
        raise UsageError(
            f"--levels {text}: it would be numbers from 1 to {_MOST:,} with commas, as in 1,2,4,8"
        )
    numbers = [int(part) for part in parts]
    if numbers != sorted(set(numbers)):
        raise UsageError(f"--levels {text}: each once, and rising, as in 1,2,4,8")
    return numbers


@contextmanager
def _screen(request: Request, *, quiet: bool) -> Iterator[tuple[Callable[[str], None], Told]]:
    """Draw a bar on stderr where a person looks, and elsewhere nothing."""
    console = Console(stderr=True, highlight=False)
    progress = Progress(
        TextColumn("{task.description}"),
        BarColumn(bar_width=20),
        TextColumn("{task.fields[ended]} episodes"),
        TimeElapsedColumn(),
        console=console,
        transient=True,
        disable=quiet or not console.is_terminal,
    )
    bar = progress.add_task("preparing", total=len(request.levels), ended=0)
    before = {level: n for n, level in enumerate(request.levels)}

    def note(text: str) -> None:
        if not quiet:
            console.print(text, style="dim", markup=False)

    def told(concurrency: int, share: float, ended: int) -> None:
        done = before[concurrency] + min(share, 1.0)
        progress.update(bar, description=f"{concurrency} at once", completed=done, ended=ended)

    with progress:
        yield note, told
