"""`gymsuite demo`: real tasks, real sandboxes, scored rollouts, with no model and no key."""

from typing import Annotated

import typer
from rich.console import Console

from gymsuite.cli.evaluating import default_concurrency, default_out
from gymsuite.cli.loop import run
from gymsuite.cli.options import (
    CacheOption,
    ProviderOption,
    RegistryOption,
    cache_folder,
    open_registry,
)
from gymsuite.cli.progress import open_screen
from gymsuite.cli.tables import print_reports
from gymsuite.runs.evaluate import Request, evaluate
from gymsuite.runs.plan import Choice
from gymsuite.runs.sandboxes import SandboxSource

_AGENTS = ("oracle", "noop")
_INCOMPLETE = 3


def demo(
    *,
    environment: Annotated[str, typer.Option(metavar="ENV", help="Where.")] = "coding/pybugs-v1",
    tasks: Annotated[
        int, typer.Option("--tasks", "-n", min=1, metavar="N", help="How many tasks.")
    ] = 6,
    provider: ProviderOption = None,
    cache: CacheOption = None,
    registry: RegistryOption = None,
) -> None:
    """Repair real bugs by their known solutions, and see that doing nothing repairs none."""
    opened = open_registry(registry)
    source = SandboxSource(provider, opened.image_roots, cache_folder(cache))
    console = Console()
    console.print(
        f"{tasks} tasks of {environment}, each in a sandbox of its own: once with the agent "
        "`oracle`, which replays the known solution, once with `noop`, which submits at once.",
        highlight=False,
    )
    reports = []
    for agent in _AGENTS:
        request = Request(
            environments=(environment,),
            agent=agent,
            out=default_out(f"demo-{agent}", (environment,)),
            choice=Choice(tasks),
            concurrency=default_concurrency(),
        )
        with open_screen(as_json=False, label=agent) as screen:
            reports.append(run(evaluate(request, opened, source, screen)))
    print_reports(console, reports)
    console.print(
        f"look closer: `gymsuite show {environment}`, `gymsuite play {environment}`; "
        f"your own agent: `gymsuite eval {environment} --agent module:attr`",
        style="dim",
        highlight=False,
    )
    if not all(report.complete for report in reports):
        raise typer.Exit(_INCOMPLETE)
