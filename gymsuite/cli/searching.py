"""`gymsuite search`: index a folder of documents, ask it something, or serve it to a trainer."""

import asyncio
import importlib.util
import json
import time
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.markup import escape

from gymsuite.cli.counting import counting
from gymsuite.cli.loop import run
from gymsuite.cli.options import CacheOption, JsonOption, cache_folder
from gymsuite.errors import UsageError
from gymsuite.search.excerpts import escape as defuse
from gymsuite.search.excerpts import snippet, words_of
from gymsuite.search.folder import open_folder
from gymsuite.search.retriever import Retriever

app = typer.Typer(help="Search documents of your own, offline.", no_args_is_help=True)

_FolderArgument = Annotated[
    Path,
    typer.Argument(
        metavar="DIR",
        help="A folder of Markdown, reStructuredText, HTML or text, or a .jsonl or .parquet file.",
    ),
]


@app.command()
def index(folder: _FolderArgument, *, cache: CacheOption = None) -> None:
    """Index the documents; nothing is done if they have not changed since."""
    began = time.monotonic()
    found = run(_open(folder, cache))
    seconds = time.monotonic() - began
    console = Console(highlight=False)
    console.print(
        f"{_count(found)} searchable ({seconds:.1f} s). Try:\n"
        f"  gymsuite search query {escape(str(folder))} WORDS",
        soft_wrap=True,
    )


@app.command()
def query(
    folder: _FolderArgument,
    words: Annotated[list[str], typer.Argument(metavar="WORDS", help="What to search for.")],
    *,
    limit: Annotated[int, typer.Option("-n", min=1, max=100, help="How many hits.")] = 5,
    cache: CacheOption = None,
    as_json: JsonOption = False,
) -> None:
    """Search the documents, and index them first if need be."""
    asked = " ".join(words)

    async def search() -> list[dict[str, str | float]]:
        found = await _open(folder, cache)
        wanted = set(words_of(asked))
        return [
            {
                "id": hit.document.id,
                "title": hit.document.title,
                "snippet": snippet(hit.document.text, wanted),
                "score": round(hit.score, 3),
            }
            for hit in await found.search(asked, limit)
        ]

    hits = run(search())
    if as_json:
        typer.echo(json.dumps({"query": asked, "hits": hits}))
        return
    console = Console(highlight=False)
    for hit in hits:
        title, name, text = (escape(defuse(str(hit[key]))) for key in ("title", "id", "snippet"))
        console.print(f"[bold]{title}[/bold]  [dim]{name}  {hit['score']}[/dim]\n  {text}\n")
    if not hits:
        console.print("nothing found")


@app.command()
def serve(
    folder: _FolderArgument,
    *,
    host: Annotated[str, typer.Option(help="Where to listen.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="0 is any free port.")] = 8000,
    cache: CacheOption = None,
) -> None:
    """Serve the documents to trainers: POST /retrieve in every dialect, /search, /open, /find."""
    if importlib.util.find_spec("uvicorn") is None or importlib.util.find_spec("msgpack") is None:
        raise UsageError("serving needs the extra `serve`: pip install 'gymsuite[serve]'")
    from gymsuite.serve.listening import open_server  # noqa: PLC0415 - an extra
    from gymsuite.serve.retrieval import retrieval_app  # noqa: PLC0415 - an extra

    async def listen() -> None:
        found = await _open(folder, cache)
        served = retrieval_app(found)
        async with open_server(served, host=host, port=port) as address:
            typer.echo(f"{_count(found)} served at {address}/retrieve")
            await asyncio.Event().wait()

    run(listen())


def _count(found: Retriever) -> str:
    return "1 document is" if len(found) == 1 else f"{len(found)} documents are"


async def _open(folder: Path, cache: Path | None) -> Retriever:
    """The index, with a bar while it is built."""
    with counting(Console(stderr=True), "indexing") as count:
        count.begin(None)  # documents are read before they are counted

        def progress(done: int, total: int) -> None:
            count.begin(total)
            count.reach(done)

        library = open_folder(folder, lambda: cache_folder(cache), progress)
        return await library.open()
