"""`gymsuite sandbox`: the images that sandboxes start from, and what killed processes left."""

import json
import time
from collections.abc import Sequence
from typing import Annotated

import typer
from rich import box
from rich.console import Console
from rich.table import Table

from gymsuite.cli.building import build, import_
from gymsuite.cli.conforming import check
from gymsuite.cli.loop import run
from gymsuite.cli.options import CacheOption, JsonOption, cache_folder
from gymsuite.errors import UsageError
from gymsuite.sandbox.collecting import ImageUsage, usage
from gymsuite.sandbox.disk import limit_of, show_size
from gymsuite.sandbox.importing import forget
from gymsuite.sandbox.leftovers import Leftovers, reap_all
from gymsuite.sandbox.store import Store

app = typer.Typer(
    help="Build, import and list images; check providers; remove what killed processes left.",
    no_args_is_help=True,
)
app.command()(build)
app.command("import")(import_)
app.command()(check)


@app.command("list")
def list_images(*, cache: CacheOption = None, as_json: JsonOption = False) -> None:
    """List the images on this machine, the last used first."""
    folder = cache_folder(cache)
    used = usage(folder)
    images = sorted(used.images, key=lambda image: -image.used_at)
    if as_json:
        rows = [
            {
                **image.record.model_dump(
                    mode="json",
                    include={"name", "digest", "base", "origin", "layers", "python", "user"},
                ),
                "size_bytes": image.size_bytes,
                "used_at": image.used_at,
            }
            for image in images
        ]
        typer.echo(json.dumps({"cache": str(folder), "images": rows}))
        return
    console = Console(highlight=False)
    if images:
        console.print(_table(images))
    console.print(
        f"{folder}: {show_size(used.size_bytes)} of at most {show_size(limit_of(folder))}"
        " (`gymsuite cache limit SIZE` changes that)",
        soft_wrap=True,
        markup=False,
    )


@app.command()
def remove(
    name: Annotated[str, typer.Argument(metavar="NAME", help="An image that was imported.")],
    *,
    cache: CacheOption = None,
) -> None:
    """Forget an imported image; its layers go when room is needed, or by `gymsuite cache clean`."""
    if not forget(Store(cache_folder(cache), None), name):
        raise UsageError(
            f"no image {name!r} was imported; `gymsuite sandbox list` shows what was, and"
            " `gymsuite cache clean` removes images that were built"
        )
    typer.echo(f"{name} is forgotten")


@app.command()
def reap(
    *,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say what, and remove nothing.")
    ] = False,
    cache: CacheOption = None,
    as_json: JsonOption = False,
) -> None:
    """Remove containers, directories and half-made layers whose owners are dead."""
    found = run(reap_all(cache_folder(cache), dry_run=dry_run))
    if as_json:
        typer.echo(json.dumps({**found._asdict(), "dry_run": dry_run}))
        return
    for line in _lines(found, "would be removed" if dry_run else "removed"):
        typer.echo(line)


def _table(images: Sequence[ImageUsage]) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("image", style="bold", overflow="fold")
    table.add_column("digest", no_wrap=True)
    table.add_column("base", no_wrap=True)
    for header in ("layers", "size", "last used"):
        table.add_column(header, justify="right", no_wrap=True)
    now = time.time()
    for image in images:
        record = image.record
        layers, size = str(len(record.layers)), show_size(image.size_bytes)
        ago = _ago(now - image.used_at)
        table.add_row(record.name, record.digest[:12], record.base, layers, size, ago)
    return table


def _ago(seconds: float) -> str:
    for unit, length in (("day", 86_400), ("hour", 3600), ("minute", 60)):
        count = int(seconds // length)
        if count:
            return f"{count} {unit}{'s' * (count > 1)} ago"
    return "just now"


def _lines(found: Leftovers, what: str) -> list[str]:
    kinds = (
        ("container", found.containers),
        ("directory", found.directories),
        ("half-made layer", found.layers),
    )
    lines = [f"{kind} {name}: {what}" for kind, names in kinds for name in names]
    if found.no_engine:
        lines.append(f"no containers looked for: {found.no_engine}")
    return lines or ["nothing is left of dead processes"]
