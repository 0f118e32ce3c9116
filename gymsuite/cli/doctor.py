"""`gymsuite doctor`: what this machine can do for sandboxes, proved, with the fix for each gap."""

import json
from collections.abc import Iterable

import typer
from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from gymsuite.cli.loop import run
from gymsuite.cli.options import CacheOption, JsonOption, ProviderOption, cache_folder
from gymsuite.cli.plain import plain
from gymsuite.diagnosis.doctor import Diagnosis, diagnose
from gymsuite.diagnosis.finding import Finding
from gymsuite.registry import Registry

_STYLES = {"ok": "green", "gap": "red", "note": "dim", "unknown": "yellow"}


def doctor(
    *, provider: ProviderOption = None, cache: CacheOption = None, as_json: JsonOption = False
) -> None:
    """Say what this machine can do, try each limit on a small sandbox, and name the fixes.

    Exits with 0 if the provider (by default the one that is taken here) keeps every limit, else 1.
    """
    console = Console(stderr=True)
    with console.status("trying limits on small sandboxes"):
        roots = Registry.default().image_roots
        found = run(diagnose(provider, roots, cache_folder(cache)))
    if as_json:
        typer.echo(json.dumps(_flat(found)))
    else:
        _show(found)
    raise typer.Exit(0 if found.healthy else 1)


def _flat(found: Diagnosis) -> dict[str, object]:
    return {
        "healthy": found.healthy,
        "provider": found.provider,
        "providers": {
            one.name: {"works": one.works, "unenforced": one.unenforced} for one in found.providers
        },
        "findings": [finding._asdict() for finding in _all(found)],
    }


def _all(found: Diagnosis) -> list[Finding]:
    return [*found.findings, *(finding for one in found.providers for finding in one.findings)]


def _show(found: Diagnosis) -> None:
    console = Console(highlight=False)
    everything = _all(found)
    console.print(_table(everything))
    for fix, where in _fixes(everything).items():
        console.print(Text.assemble((", ".join(where), "bold"), ": ", plain(fix)))
    for one in found.providers:
        if one.unenforced:
            console.print(f"{one.name} does not keep: {', '.join(one.unenforced)}")
    console.print(_verdict(found))


def _fixes(findings: Iterable[Finding]) -> dict[str, list[str]]:
    """Say once what mends several gaps."""
    fixes: dict[str, list[str]] = {}
    for finding in findings:
        if finding.fix and finding.state in {"gap", "unknown"}:
            fixes.setdefault(finding.fix, []).append(f"{finding.area} {finding.name}")
    return fixes


def _table(findings: Iterable[Finding]) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    table.add_column("area", no_wrap=True)
    table.add_column("what", style="bold", no_wrap=True)
    table.add_column("", no_wrap=True)
    table.add_column("seen", overflow="fold")
    area = ""
    for finding in findings:
        shown = "" if finding.area == area else finding.area
        area = finding.area
        state = Text(finding.state, style=_STYLES[finding.state])
        table.add_row(shown, finding.name, state, plain(finding.detail))
    return table


def _verdict(found: Diagnosis) -> Text:
    if found.healthy:
        return Text(f"{found.provider} works here and keeps every limit", style="bold green")
    if not found.provider:
        return Text("no sandbox can be made on this machine: see the fixes", style="bold red")
    started = {one.name: one.findings[0].state for one in found.providers}[found.provider]
    why = {"gap": "no sandbox can be made here", "unknown": "no limit was tried here"}
    says = why.get(started, "not every limit is kept here")
    return Text(f"{found.provider}: {says}", style="bold red")
