"""`gymsuite check`: the promises of environments, as a gate."""

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Annotated

import typer
from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from gymsuite.authoring.check import CheckRequest, Finding, Watcher, check_environment
from gymsuite.authoring.redteam.attack import attack
from gymsuite.authoring.redteam.corpus import CHEATS
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
from gymsuite.cli.plain import plain
from gymsuite.environment import Environment
from gymsuite.errors import UsageError
from gymsuite.registry import Registry
from gymsuite.runs.sandboxes import SandboxSource

_BROKEN, _UNKNOWN = 1, 3
_STYLES = {"kept": "green", "broken": "red", "unknown": "yellow", "moot": "dim"}


def check(
    environments: Annotated[
        list[str] | None, typer.Argument(metavar="ENV", help="Ids, such as coding/pybugs-v1.")
    ] = None,
    *,
    every: Annotated[
        bool, typer.Option("--all", help="All environments that need no option.")
    ] = False,
    tasks: Annotated[
        int | None,
        typer.Option("--tasks", "-n", min=1, metavar="N", help="A sample of tasks, not all."),
    ] = None,
    concurrency: ConcurrencyOption = None,
    red_team: Annotated[
        bool,
        typer.Option(
            "--red-team", help="Play cheats instead, on one task or -n of them: none may pay."
        ),
    ] = False,
    settings: SetOption = None,
    dataset: DatasetOption = None,
    provider: ProviderOption = None,
    cache: CacheOption = None,
    as_json: JsonOption = False,
    registry: RegistryOption = None,
) -> None:
    """Check what environments promise; exit code 1 if a promise is broken.

    The solution passes, doing nothing fails, a stored submission scores the same
    again, and nothing that breaks is ever scored.
    """
    opened = with_options(open_registry(registry), settings, dataset)
    source = SandboxSource(provider, opened.image_roots, cache_folder(cache))
    request = CheckRequest(source, tasks, concurrency or default_concurrency())
    console, errors = Console(), Console(stderr=True, quiet=as_json)
    found: dict[str, Sequence[Finding]] = {}
    for name in _names(environments, opened, every=every):
        given = bool(settings or dataset)  # other processes would not be given the options
        file = None if given and opened.spec(name).options else opened.file_of(name)
        here = replace(request, registry=file)
        found[name] = _check(opened.load(name), here, errors, red_team=red_team)
        if not as_json:
            console.print(_table(name, found[name]))
    outcomes = {finding.outcome for findings in found.values() for finding in findings}
    if as_json:
        typer.echo(_json(found, ok=outcomes <= {"kept", "moot"}))
    if "broken" in outcomes:
        raise typer.Exit(_BROKEN)
    if "unknown" in outcomes:
        raise typer.Exit(_UNKNOWN)


def _names(given: list[str] | None, registry: Registry, *, every: bool) -> list[str]:
    if bool(given) == every:
        raise UsageError("name environments to check, or give --all, not both")
    return list(registry.complete) if every else given or []


def _check(
    environment: Environment, request: CheckRequest, console: Console, *, red_team: bool
) -> list[Finding]:
    with counting(console, f"check {environment.id}") as count:

        def note(text: str) -> None:
            console.print(text, style="dim", markup=False, highlight=False)

        watcher = Watcher(
            note=note,
            begin=count.begin,
            tick=count.step,
            found=lambda finding: count.say(f"{finding.promise}: {finding.outcome}"),
        )
        if red_team:
            return run(attack(environment, [*CHEATS.values()], request, watcher))
        return run(check_environment(environment, request, watcher))


def _table(name: str, findings: Sequence[Finding]) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, title=name, title_justify="left")
    table.add_column("promise")
    table.add_column("")
    table.add_column("seconds", justify="right")
    for finding in findings:
        says = Text(finding.promise)
        if finding.details:
            says.append_text(plain(f"\n{finding.details}", "dim"))
        table.add_row(
            says, Text(finding.outcome, style=_STYLES[finding.outcome]), f"{finding.seconds:.1f}"
        )
    return table


def _json(found: dict[str, Sequence[Finding]], *, ok: bool) -> str:
    environments = {
        name: [finding.model_dump(mode="json") for finding in findings]
        for name, findings in found.items()
    }
    return json.dumps({"ok": ok, "environments": environments})
