"""`gymsuite mcp`: an environment as an MCP server, and what tools other MCP servers have."""

import importlib.util
import os
import secrets
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from gymsuite.cli.loop import run
from gymsuite.cli.options import (
    CacheOption,
    EnvironmentArgument,
    ProviderOption,
    RegistryOption,
    SetOption,
    cache_folder,
    open_registry,
    with_options,
)
from gymsuite.environment import Environment
from gymsuite.errors import UsageError
from gymsuite.runs.sandboxes import SandboxSource, images_of, open_sandboxes
from gymsuite.worlds.procedural import OnDemand, Place, places

app = typer.Typer(help="Environments over the Model Context Protocol.", no_args_is_help=True)


@app.command()
def serve(
    environment: EnvironmentArgument,
    *,
    task: Annotated[
        str | None, typer.Option(metavar="ID", help="Only this task; else all in turn.")
    ] = None,
    split: Annotated[str | None, typer.Option(help="Only tasks of this split.")] = None,
    seed: Annotated[int, typer.Option(help="Of the first episode of each task.")] = 0,
    http: Annotated[
        str | None,
        typer.Option(metavar="HOST:PORT", help="Streamable HTTP there; else stdin and stdout."),
    ] = None,
    token: Annotated[
        str,
        typer.Option(
            envvar="GYMSUITE_MCP_TOKEN",
            show_envvar=True,
            help="What clients have to present over HTTP; needed beyond loopback.",
        ),
    ] = "",
    control: Annotated[
        str | None,
        typer.Option(metavar="HOST:PORT", help="Reset and reward there, for you alone."),
    ] = None,
    control_token: Annotated[
        str,
        typer.Option(
            envvar="GYMSUITE_MCP_CONTROL_TOKEN",
            show_envvar=True,
            help="Of the control channel; over HTTP one is made and printed if not given.",
        ),
    ] = "",
    results: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Append each episode's record, a JSON line, here."),
    ] = None,
    max_episodes: Annotated[int, typer.Option(min=1, help="How many may be open.")] = 64,
    idle_seconds: Annotated[
        float, typer.Option(min=0.1, help="An episode ends when nothing is called so long.")
    ] = 1800.0,
    settings: SetOption = None,
    provider: ProviderOption = None,
    cache: CacheOption = None,
    registry: RegistryOption = None,
) -> None:
    """Serve an environment's episodes to any MCP client: each session is an episode."""
    _installed()
    opened = with_options(open_registry(registry), settings)
    loaded = opened.load(environment)
    chosen = _chosen(loaded, task, split)
    source = SandboxSource(provider, opened.image_roots, cache_folder(cache))
    if control is not None and http is None and not control_token:
        raise UsageError(
            "over stdio our output is the agent's: give a token in GYMSUITE_MCP_CONTROL_TOKEN"
        )
    key = control_token or secrets.token_urlsafe(32)
    served_at = _address(http) if http is not None else None
    control_at = _address(control) if control is not None else None

    if served_at is None and results is None and control_at is None:
        typer.echo("warning: without --results nobody will know how it ended", err=True)
    if served_at is None:
        from gymsuite.mcp.outliving import outlive  # noqa: PLC0415 - an extra

        outlive()

    async def listen() -> None:
        from gymsuite.mcp.desk import Desk, Offer  # noqa: PLC0415 - an extra
        from gymsuite.mcp.records import Records  # noqa: PLC0415 - an extra
        from gymsuite.mcp.serving import Door, serve_http, serve_stdio  # noqa: PLC0415 - an extra

        ears = Door(*control_at, key) if control_at is not None else None
        door = Door(*served_at, token) if served_at is not None else None
        note = Console(stderr=True, highlight=False).print
        async with open_sandboxes(source, _images(loaded, chosen), note) as sandboxes:
            offer = Offer(loaded, chosen, sandboxes.open, seed, max_episodes, idle_seconds)
            with Records(results, typer.echo if door else None) as records:
                async with Desk(offer, records.keep) as desk:
                    if door is not None:
                        await serve_http(desk, door, ears, typer.echo)
                    else:
                        await serve_stdio(desk, ears)

    run(listen())


@app.command()
def tools(
    manifest: Annotated[
        Path, typer.Argument(metavar="FILE", help="An `mcpServers` file, as MCP clients have it.")
    ],
    *,
    out: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write the list here, for `mcp_tools`.")
    ] = None,
    seconds: Annotated[float, typer.Option(min=1, help="How long each server may take.")] = 60.0,
) -> None:
    """Start the servers on this machine, and list their tools."""
    _installed()

    async def ask() -> None:
        from gymsuite.mcp.asking import list_tools  # noqa: PLC0415 - an extra
        from gymsuite.mcp.manifest import read_manifest  # noqa: PLC0415 - an extra
        from gymsuite.mcp.places import reach  # noqa: PLC0415 - an extra

        entries = read_manifest(manifest, os.environ)
        listing = await list_tools(entries, reach, seconds=seconds)
        text = listing.model_dump_json(indent=2)
        if out is None:
            typer.echo(text)
            return
        out.write_text(text + "\n", encoding="utf-8")
        counts = ", ".join(f"{name} {len(found)}" for name, found in listing.servers.items())
        typer.echo(f"{out}: {counts}")

    run(ask())


def _installed() -> None:
    if importlib.util.find_spec("mcp") is None:
        raise UsageError("this needs the extra `mcp`: pip install 'gymsuite[mcp]'")


def _address(text: str) -> tuple[str, int]:
    host, _, port = text.rpartition(":")
    if not host or not port.isdecimal():
        raise UsageError(f"{text!r} is no HOST:PORT, such as 127.0.0.1:8765")
    return host.strip("[]"), int(port)


def _chosen(environment: Environment, task: str | None, split: str | None) -> Sequence[Place]:
    known = places(environment.tasks)
    chosen = [p for p in known if split in (None, p.split) and task in (None, p.id)]
    if not chosen:
        raise UsageError(
            f"{environment.id} has no such task; an id is {known[0].id!r}, and the splits are "
            f"{', '.join(sorted({place.split for place in known}))}"
        )
    return chosen


def _images(environment: Environment, chosen: Sequence[Place]) -> list[str]:
    """What they start from; tasks that are made on demand start from the environment's."""
    if isinstance(environment.tasks, OnDemand):
        return [environment.sandbox.image] if environment.sandbox else []
    return sorted(images_of(environment, (environment.tasks[p.position] for p in chosen)))
