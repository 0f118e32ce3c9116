"""Options that several commands share, and what they resolve to."""

import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from gymsuite.errors import UsageError
from gymsuite.registry import Registry
from gymsuite.suite import default_cache, using_cache


def _use_cache(context: typer.Context, folder: Path | None) -> Path | None:
    """Keep what environments build in the same place as images: they ask for no folder."""
    if folder is None:
        return None
    if folder.exists() and not folder.is_dir():
        raise UsageError(f"--cache {folder}: it is no folder; name one, which is made if need be")
    context.with_resource(using_cache(folder))
    return folder


RegistryOption = Annotated[
    Path | None,
    typer.Option("--registry", metavar="FILE", help="A registry.yaml instead of the suite's own."),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON object, nothing else.")]
CacheOption = Annotated[
    Path | None,
    typer.Option(
        "--cache",
        metavar="DIR",
        envvar="GYMSUITE_CACHE",
        callback=_use_cache,
        help=f"Where images and indexes are kept; {default_cache()} if not given.",
        show_default=False,
    ),
]
ProviderOption = Annotated[
    str | None,
    typer.Option(
        "--provider",
        metavar="NAME",
        help="What makes sandboxes: local, local:debian, docker or docker:RUNTIME; what works here"
        " if not given.",
    ),
]
SetOption = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="NAME=VALUE",
        help="An option of the environment, such as dataset=rows.jsonl.",
    ),
]
DatasetOption = Annotated[
    str | None,
    typer.Option("--dataset", metavar="ROWS", help="The same as --set dataset=ROWS."),
]
ConcurrencyOption = Annotated[
    int | None,
    typer.Option("--concurrency", "-c", min=1, metavar="N", help="At once; 2 for each CPU."),
]
EnvironmentArgument = Annotated[
    str, typer.Argument(metavar="ENV", help="An id, such as coding/pybugs-v1.")
]


def open_registry(path: Path | None) -> Registry:
    """The registry that is named, or the suite's; what it leaves out is said on stderr."""
    if path is not None:
        return Registry(path)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        registry = Registry.default()
    console = Console(stderr=True)
    for warning in caught:
        console.print(f"warning: {warning.message}", markup=False, highlight=False, soft_wrap=True)
    return registry


def with_options(
    registry: Registry, settings: Sequence[str] | None, dataset: str | None = None
) -> Registry:
    """The registry with the environments' own options; raises `UsageError` for a wrong one."""
    options = {} if dataset is None else {"dataset": dataset}
    for setting in settings or ():
        name, equals, value = setting.partition("=")
        if not equals:
            raise UsageError(f"--set {setting}: it would be NAME=VALUE, as in dataset=rows.jsonl")
        options[name] = value
    return registry.with_options(options)


def cache_folder(path: Path | None) -> Path:
    """Where images are kept."""
    return path if path is not None else default_cache()
