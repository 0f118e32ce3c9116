"""`gymsuite verify`: scores the stored submissions of a run again."""

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from gymsuite.cli.counting import counting
from gymsuite.cli.evaluating import default_concurrency
from gymsuite.cli.loop import run
from gymsuite.cli.options import (
    CacheOption,
    ConcurrencyOption,
    DatasetOption,
    JsonOption,
    ProviderOption,
    RegistryOption,
    SetOption,
    cache_folder,
    open_registry,
    with_options,
)
from gymsuite.runs.sandboxes import SandboxSource
from gymsuite.runs.verify import (
    Verification,
    Verified,
    VerifyRequest,
    VerifyWatcher,
    verify_run,
)

_DISAGREES, _INCOMPLETE = 1, 3
_SHOWN = 10


def verify(
    directory: Annotated[Path, typer.Argument(metavar="RUN", help="A run directory.")],
    *,
    concurrency: ConcurrencyOption = None,
    settings: SetOption = None,
    dataset: DatasetOption = None,
    provider: ProviderOption = None,
    cache: CacheOption = None,
    as_json: JsonOption = False,
    registry: RegistryOption = None,
) -> None:
    """Score a run's stored submissions again; exit code 1 if one scores otherwise.

    Rollouts of tasks that have changed are not compared; where all have, the exit code is 1, too.
    """
    opened = with_options(open_registry(registry), settings, dataset)
    source = SandboxSource(provider, opened.image_roots, cache_folder(cache))
    request = VerifyRequest(directory, concurrency or default_concurrency())
    errors = Console(stderr=True, quiet=as_json)
    with counting(errors, "verify") as count:

        def advance(_: Verified) -> None:
            count.step()

        def note(text: str) -> None:
            errors.print(text, style="dim", markup=False, highlight=False)

        watcher = VerifyWatcher(note, count.begin, advance)
        result = run(verify_run(request, opened, source, watcher))
    if as_json:
        typer.echo(result.model_dump_json())
    else:
        _present(Console(), result)
    if result.disagreed or not (result.agreed or result.failed):
        raise typer.Exit(_DISAGREES)
    if result.failed:
        raise typer.Exit(_INCOMPLETE)


def _present(console: Console, result: Verification) -> None:
    for bad in result.disagreements[:_SHOWN]:
        again = bad.again
        console.print(
            f"{bad.environment} {bad.task} #{bad.repeat}: stored {bad.stored.reward:g}, now "
            f"{again.reward if again else float('nan'):g}",
            style="red",
            markup=False,
            highlight=False,
        )
    console.print(
        f"{result.agreed} agree, {result.disagreed} disagree, {result.failed} could not be "
        f"verified, {result.changed} are of tasks that have changed",
        highlight=False,
    )
    if result.failed:
        console.print(f"the last problem: {result.last_problem}", markup=False, highlight=False)
    console.print(f"written to {result.file}", soft_wrap=True, highlight=False, markup=False)
