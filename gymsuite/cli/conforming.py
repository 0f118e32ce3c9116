"""`gymsuite sandbox check`: the promises of a provider of sandboxes, as a gate."""

import asyncio
import importlib
import json
import sys
import tempfile
from collections import Counter
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer
from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from gymsuite.cli.counting import counting
from gymsuite.cli.loop import run as run_in_loop
from gymsuite.cli.options import CacheOption, JsonOption, cache_folder
from gymsuite.cli.plain import plain
from gymsuite.errors import UsageError
from gymsuite.sandbox.conformance import CASES, IMAGE, Result, Verdict, run, write_recipe
from gymsuite.sandbox.conformance.abuse import ATTACKS, strike
from gymsuite.sandbox.protocol import OpenSandbox
from gymsuite.sandbox.provider import open_provider
from gymsuite.types import SandboxSpec

Opening = Callable[[Sequence[Path]], AbstractAsyncContextManager[OpenSandbox]]
Report = Callable[[Result], None]

_OURS = ("local", "docker")
_STYLES = {
    Verdict.PASSED: "green",
    Verdict.FAILED: "red",
    Verdict.NOT_OFFERED: "yellow",
    Verdict.NOT_ENFORCED: "yellow",
}


def check(
    *,
    provider: Annotated[
        str | None,
        typer.Option(
            "--provider",
            metavar="NAME",
            help="local, docker, docker:RUNTIME, or MODULE:ATTRIBUTE, which takes folders of images"
            " and opens what opens sandboxes.",
        ),
    ] = None,
    abuse: Annotated[
        bool, typer.Option("--abuse", help="Play the attacks too: some minutes of load.")
    ] = False,
    only: Annotated[
        str, typer.Option("--only", metavar="WORDS", help="Those with these words in their names.")
    ] = "",
    cache: CacheOption = None,
    as_json: JsonOption = False,
) -> None:
    """Check what a provider of sandboxes promises; exit code 1 if a promise is not kept.

    What the provider declares not to limit is "not enforced", and what it cannot
    do "not offered": neither is a failure, nor ever "passed".
    """
    cases = [case for case in CASES if only in f"{case.group}: {case.name}"]
    attacks = [attack for attack in ATTACKS if abuse and only in f"{attack.kind}: {attack.name}"]
    if not cases and not attacks:
        raise UsageError(f"nothing has {only!r} in its name; leave out --only to see all names")
    total = len(cases) + len(attacks)

    async def main(report: Report) -> list[Result]:
        spec = SandboxSpec(image=IMAGE)
        async with _opened(provider, cache_folder(cache)) as open_sandbox:
            results = await run(open_sandbox, spec, cases=cases, report=report)
            if attacks:
                results += await strike(open_sandbox, spec, attacks, report=report)
        return results

    results = _watched(main, total, Console(stderr=True, quiet=as_json))
    failed = any(result.verdict == Verdict.FAILED for result in results)
    if as_json:
        rows = [asdict(result) for result in results]
        typer.echo(json.dumps({"ok": not failed, "results": rows}))
    else:
        _show(results, Console(highlight=False))
    if failed:
        raise typer.Exit(1)


@asynccontextmanager
async def _opened(provider: str | None, cache: Path) -> AsyncIterator[OpenSandbox]:
    with tempfile.TemporaryDirectory() as folder:
        roots = (Path(folder),)
        await asyncio.to_thread(write_recipe, roots[0])
        if provider is not None and ":" in provider and provider.partition(":")[0] not in _OURS:
            async with _opening(provider, roots) as open_sandbox:
                yield open_sandbox
        else:
            async with open_provider(provider, image_roots=roots, cache=cache) as opened:
                yield opened.open


def _opening(provider: str, roots: Sequence[Path]) -> AbstractAsyncContextManager[OpenSandbox]:
    function = _named(provider)
    opening = function(roots) if callable(function) else function
    if not isinstance(opening, AbstractAsyncContextManager):
        raise UsageError(
            f"provider {provider!r} gives no async context manager, but {type(opening).__name__};"
            " right is a function of folders of images, below @asynccontextmanager"
        )
    return opening


def _named(provider: str) -> Opening:
    module, _, attribute = provider.partition(":")
    sys.path.insert(0, str(Path.cwd()))
    try:
        found: Opening = getattr(importlib.import_module(module), attribute)
    except (ImportError, AttributeError, ValueError) as error:
        raise UsageError(
            f"no provider {provider!r}: {error}; right is local, docker, or MODULE:ATTRIBUTE of"
            " something that can be imported from here"
        ) from error
    finally:
        sys.path.pop(0)
    return found


def _watched(
    main: Callable[[Report], Coroutine[None, None, list[Result]]], total: int, console: Console
) -> list[Result]:
    with counting(console, "check") as count:
        count.begin(total)

        def report(result: Result) -> None:
            count.step()
            count.say(result.name)

        return run_in_loop(main(report))


def _show(results: Sequence[Result], console: Console) -> None:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("")
    table.add_column("promise")
    table.add_column("verdict", no_wrap=True)
    table.add_column("seconds", justify="right")
    for result in results:
        says = Text(result.name)
        if result.reason:
            says.append_text(plain(f"\n{result.reason}", "dim"))
        verdict = Text(result.verdict, style=_STYLES[result.verdict])
        table.add_row(result.group, says, verdict, f"{result.seconds:.1f}")
    console.print(table)
    counts = Counter(result.verdict for result in results)
    console.print(
        ", ".join(f"{counts[verdict]} {verdict}" for verdict in Verdict if counts[verdict])
    )
