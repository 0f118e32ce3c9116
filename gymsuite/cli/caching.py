"""`gymsuite cache`: what images take on disk, and how to have it back."""

import difflib
import json
from typing import Annotated

import typer
from rich import box
from rich.console import Console
from rich.table import Table

from gymsuite.cli.loop import run
from gymsuite.cli.options import CacheOption, JsonOption, cache_folder
from gymsuite.errors import UsageError
from gymsuite.sandbox.collecting import Cleaned, shrink, usage
from gymsuite.sandbox.collecting import clean as clean_store
from gymsuite.sandbox.disk import limit_of, read_size, set_limit, show_size
from gymsuite.sandbox.records import ImageRecord, records

app = typer.Typer(help="Say what built images take on disk, or remove them.", no_args_is_help=True)


@app.command()
def info(*, cache: CacheOption = None, as_json: JsonOption = False) -> None:
    """List the images, and what they take."""
    folder = cache_folder(cache)
    used = usage(folder)
    if as_json:
        images = [
            {"name": i.record.name, "base": i.record.base, "digest": i.record.digest,
             "size_bytes": i.size_bytes}
            for i in used.images
        ]  # fmt: skip
        typer.echo(
            json.dumps({"cache": str(folder), "size_bytes": used.size_bytes, "images": images})
        )
        return
    console = Console()
    if used.images:
        table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
        table.add_column("image", style="bold")
        table.add_column("base")
        table.add_column("digest")
        table.add_column("size", justify="right", no_wrap=True)
        for image in used.images:
            record = image.record
            size = show_size(image.size_bytes)
            table.add_row(record.name, record.base, record.digest[:12], size)
        console.print(table)
    console.print(
        f"{folder}: {_count(len(used.images), 'image')}, {show_size(used.size_bytes)} "
        "(layers that images share are counted once)",
        soft_wrap=True,
        highlight=False,
    )


@app.command()
def limit(
    size: Annotated[
        str | None, typer.Argument(metavar="SIZE", help="Such as 20G; what it is if not given.")
    ] = None,
    *,
    cache: CacheOption = None,
    as_json: JsonOption = False,
) -> None:
    """Say or set how much the images may take; what was used least lately goes first."""
    folder = cache_folder(cache)
    if size is not None:
        set_limit(folder, read_size(size))
        cleaned = shrink(folder, limit_of(folder))
        if cleaned.removed and not as_json:
            typer.echo(_removed(cleaned))
    used = usage(folder).size_bytes
    if as_json:
        typer.echo(json.dumps({"size_bytes": used, "limit_bytes": limit_of(folder)}))
        return
    typer.echo(f"{folder}: {show_size(used)} of at most {show_size(limit_of(folder))}")


@app.command()
def clean(
    *,
    keep: Annotated[
        list[str] | None, typer.Option(metavar="IMAGE", help="An image to keep; may be repeated.")
    ] = None,
    imported: Annotated[
        bool, typer.Option("--imported", help="Images that were imported, too.")
    ] = False,
    docker: Annotated[
        bool, typer.Option("--docker", help="Their copies in the Docker Engine, too.")
    ] = False,
    cache: CacheOption = None,
    as_json: JsonOption = False,
) -> None:
    """Remove built images; those that a running command uses stay, and those that were imported."""
    folder, kept = cache_folder(cache), set(keep or ())
    _check_kept(kept, {record.name for _, record in records(folder)})

    def keeps(record: ImageRecord) -> bool:
        return record.name in kept or (record.origin == "imported" and not imported)

    copies = _clean_docker() if docker else []
    cleaned = clean_store(folder, keep=keeps)
    if as_json:
        typer.echo(json.dumps({**cleaned._asdict(), "docker": copies}))
        return
    if docker:
        typer.echo(f"{_count(len(copies), 'image')} removed from Docker")
    line = _removed(cleaned)
    if cleaned.in_use:
        line += f"; in use by another process, and kept: {_count(len(cleaned.in_use), 'layer')}"
    typer.echo(line)


def _removed(cleaned: Cleaned) -> str:
    return f"{_count(len(cleaned.removed), 'layer')} removed, {show_size(cleaned.size_bytes)}"


def _count(number: int, what: str) -> str:
    return f"1 {what}" if number == 1 else f"{number} {what}s"


def _check_kept(kept: set[str], known: set[str]) -> None:
    """Raise `UsageError` for a name that no image has: the one that was meant would be removed."""
    for name in sorted(kept - known):
        close = difflib.get_close_matches(name, known, n=1)
        hint = f"did you mean {close[0]!r}?" if close else "`gymsuite cache info` lists them"
        raise UsageError(f"--keep {name}: no image of that name is here; {hint}")


def _clean_docker() -> list[str]:
    # docker-py costs a tenth of a second, and most commands never need it.
    from gymsuite.sandbox.reaper import remove_images  # noqa: PLC0415 - see above

    return run(remove_images())
