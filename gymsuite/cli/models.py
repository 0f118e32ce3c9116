"""`gymsuite models`: a small model on this machine, to try everything with."""

import json
import os
import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer
from rich import box
from rich.console import Console
from rich.table import Table

from gymsuite.cli.loop import run
from gymsuite.cli.options import CacheOption, JsonOption, cache_folder
from gymsuite.errors import UsageError
from gymsuite.models.catalog import MODELS, LocalModel, find
from gymsuite.models.fetch import Report, fetch, is_whole
from gymsuite.models.server import ModelServer, check, open_server
from gymsuite.models.settings import CONTEXT_STEP, ServerSettings

app = typer.Typer(help="Fetch a small model, and serve it on this machine.", no_args_is_help=True)

_PORT = 8080
_MEBIBYTE = 1 << 20
_EXAMPLE = "coding/warmup-v1"

ModelArgument = Annotated[str, typer.Argument(metavar="NAME", help=f"One of: {', '.join(MODELS)}.")]


@app.command("list")
def list_models(*, cache: CacheOption = None, as_json: JsonOption = False) -> None:
    """List the models that can be served here, and which are fetched."""
    rows = [(model, model.path(cache_folder(cache))) for model in MODELS.values()]
    if as_json:
        models = [
            {"name": model.name, "about": model.about, "license": model.license,
             "size_bytes": model.size_bytes, "path": str(path), "fetched": is_whole(model, path)}
            for model, path in rows
        ]  # fmt: skip
        typer.echo(json.dumps({"models": models}))
        return
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("model", style="bold")
    table.add_column("MiB", justify="right")
    table.add_column("fetched")
    table.add_column("license")
    table.add_column("what it is")
    for model, path in rows:
        size = f"{model.size_bytes / _MEBIBYTE:.0f}"
        fetched = "yes" if is_whole(model, path) else "no"
        table.add_row(model.name, size, fetched, model.license, model.about)
    console = Console()
    console.print(table)
    console.print("`gymsuite models serve NAME` fetches and serves one", style="dim")


@app.command("fetch")
def fetch_model(name: ModelArgument, *, cache: CacheOption = None) -> None:
    """Download a model into the cache, and print where it lies."""
    typer.echo(run(_fetch(find(name), cache_folder(cache))))


@app.command()
def serve(
    name: ModelArgument,
    *,
    port: Annotated[
        int, typer.Option(min=0, max=65535, metavar="N", help="0 takes a free one.")
    ] = _PORT,
    host: Annotated[
        str, typer.Option(metavar="HOST", help="Beyond this machine only with --api-key-env.")
    ] = "127.0.0.1",
    threads: Annotated[
        int, typer.Option(min=1, metavar="N", help="More are faster only on idle CPUs.")
    ] = 1,
    context: Annotated[
        int | None,
        typer.Option(
            min=CONTEXT_STEP,
            metavar="TOKENS",
            help=f"Of one conversation, in steps of {CONTEXT_STEP}.",
        ),
    ] = None,
    api_key_env: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="The variable with the key that clients must send."),
    ] = None,
    cache: CacheOption = None,
) -> None:
    """Serve a model by OpenAI's protocol until Ctrl-C, fetching it first if need be."""
    model, folder = find(name), cache_folder(cache)
    if context is not None and (context % CONTEXT_STEP or context > model.largest_context):
        raise UsageError(
            f"--context {context}: for {name} it is a multiple of {CONTEXT_STEP}, up to "
            f"{model.largest_context}"
        )
    settings = ServerSettings(
        path=model.path(folder),
        name=model.name,
        host=host,
        port=port,
        context=context or model.context,
        longest_answer=model.longest_answer,
        slots=model.slots,
        threads=threads,
        api_key=_key(api_key_env),
    )
    check(settings)
    run(_serve(model, settings, folder, api_key_env))


async def _serve(
    model: LocalModel, settings: ServerSettings, cache: Path, key_name: str | None
) -> None:
    await _fetch(model, cache)
    async with open_server(settings) as server:
        typer.echo(_invitation(model, server, key_name))
        raise await server.ended()


def _invitation(model: LocalModel, server: ModelServer, key_name: str | None) -> str:
    words = ["gymsuite", "eval", _EXAMPLE, "--agent", "openai", "--base-url", server.base_url]
    words += ["--model", model.name, "-n", "3"]
    words += ["--api-key-env", key_name] if key_name else []
    return f"{model.name} listens at {server.base_url}; to stop it: Ctrl-C\n\n{shlex.join(words)}\n"


async def _fetch(model: LocalModel, cache: Path) -> Path:
    with _reporting() as report:
        return await fetch(model, cache, report)


@contextmanager
def _reporting() -> Iterator[Report]:
    """One line that changes where a person looks, a line for each step elsewhere."""
    console = Console(stderr=True, highlight=False)
    if not console.is_terminal:
        yield lambda text: console.print(text, markup=False, soft_wrap=True)
        return
    with console.status("") as status:
        yield status.update


def _key(variable: str | None) -> str:
    key = os.environ.get(variable, "") if variable else ""
    if variable and not key:
        raise UsageError(f"--api-key-env {variable}: that environment variable is not set")
    return key
