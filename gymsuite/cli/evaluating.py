"""`gymsuite eval`: rollouts of an agent over environments, into a run directory."""

import json
import os
import re
import sys
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

import typer

from gymsuite.agents import BUILT_IN, AgentOptions
from gymsuite.cli.options import (
    CacheOption,
    DatasetOption,
    JsonOption,
    ProviderOption,
    RegistryOption,
    SetOption,
    cache_folder,
    open_registry,
    with_options,
)
from gymsuite.cli.outcome import play_and_present
from gymsuite.errors import UsageError
from gymsuite.models.catalog import MODELS
from gymsuite.runs.evaluate import Request
from gymsuite.runs.plan import Choice
from gymsuite.runs.recordings import open_recordings
from gymsuite.runs.sandboxes import SandboxSource

_KEY = "OPENAI_API_KEY"
_MODEL, _HOW = "The model of --agent openai", "Where the run goes, and how"


def evaluate(
    environments: Annotated[
        list[str], typer.Argument(metavar="ENV", help="Ids, such as coding/pybugs-v1.")
    ],
    *,
    agent: Annotated[
        str,
        typer.Option("--agent", "-a", help=f"{', '.join(BUILT_IN)}, or your own as module:attr."),
    ],
    tasks: Annotated[
        int | None,
        typer.Option(
            "--tasks", "-n", min=1, metavar="N", help="So many tasks: a fixed sample, not all."
        ),
    ] = None,
    names: Annotated[
        list[str] | None,
        typer.Option("--task", metavar="ID", help="Only this task; may be repeated."),
    ] = None,
    repeats: Annotated[
        int, typer.Option("--repeats", "-k", min=1, metavar="K", help="Play each task K times.")
    ] = 1,
    split: Annotated[
        str | None, typer.Option(metavar="NAME", help="Only tasks of this split.")
    ] = None,
    seed: Annotated[
        int, typer.Option(metavar="N", help="What the seeds of all rollouts come from.")
    ] = 0,
    replay: Annotated[
        Path | None, typer.Option(metavar="RUN", help="The run that the agent `replay` repeats.")
    ] = None,
    model: Annotated[
        str | None, typer.Option("--model", "-m", metavar="NAME", rich_help_panel=_MODEL)
    ] = None,
    base_url: Annotated[
        str | None,
        typer.Option(
            metavar="URL",
            envvar="OPENAI_BASE_URL",
            help="Such as http://localhost:8000/v1.",
            rich_help_panel=_MODEL,
        ),
    ] = None,
    api_key_env: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help=f"The variable that holds the API key; {_KEY} if not given.",
            rich_help_panel=_MODEL,
        ),
    ] = None,
    temperature: Annotated[
        float | None, typer.Option(min=0, metavar="T", rich_help_panel=_MODEL)
    ] = None,
    max_tokens: Annotated[
        int | None,
        typer.Option(min=1, metavar="N", help="In one action.", rich_help_panel=_MODEL),
    ] = None,
    timeout: Annotated[
        float,
        typer.Option(
            min=1,
            metavar="SECONDS",
            help="For one action, retries and all.",
            rich_help_panel=_MODEL,
        ),
    ] = 600,
    body: Annotated[
        str | None,
        typer.Option(metavar="JSON", help="More fields for every request.", rich_help_panel=_MODEL),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            "-o",
            metavar="DIR",
            help="The run directory; a new one below ./runs.",
            rich_help_panel=_HOW,
        ),
    ] = None,
    resume: Annotated[
        bool,
        typer.Option("--resume", help="Do only what is missing from --out.", rich_help_panel=_HOW),
    ] = False,
    retry_failed: Annotated[
        bool,
        typer.Option(
            "--retry-failed",
            help="With --resume: try again what failed for good, too.",
            rich_help_panel=_HOW,
        ),
    ] = False,
    concurrency: Annotated[
        int | None,
        typer.Option(
            "--concurrency",
            "-c",
            min=1,
            metavar="N",
            help="Rollouts at once; 2 for each CPU.",
            rich_help_panel=_HOW,
        ),
    ] = None,
    attempts: Annotated[
        int,
        typer.Option(
            min=1,
            metavar="N",
            help="Tries at a rollout that fails for a passing reason.",
            rich_help_panel=_HOW,
        ),
    ] = 3,
    settings: SetOption = None,
    dataset: DatasetOption = None,
    provider: ProviderOption = None,
    cache: CacheOption = None,
    as_json: JsonOption = False,
    registry: RegistryOption = None,
) -> None:
    """Play tasks with an agent, and score what it leaves behind."""
    if resume and out is None:
        raise UsageError("--resume goes on with a run: name its directory with --out DIR")
    if retry_failed and not resume:
        raise UsageError("--retry-failed goes with --resume: a new run has no failures yet")
    if agent == "openai" and model in MODELS and not base_url:
        raise UsageError(
            f"--model {model} is served on this machine: run `gymsuite models serve {model}` in "
            "another terminal, and give the --base-url that it prints"
        )
    where = out or default_out(agent, environments)
    request = Request(
        environments=environments,
        agent=agent,
        out=where,
        options=AgentOptions(
            base_url=base_url,
            model=model,
            api_key=_api_key(api_key_env) if agent == "openai" else None,
            temperature=temperature,
            max_tokens=max_tokens,
            timeout_seconds=timeout,
            body=_body(body),
            recorded=open_recordings(replay) if replay else None,
        ),
        choice=Choice(tasks, split, tuple(dict.fromkeys(names or ()))),
        repeats=repeats,
        seed=seed,
        attempts=attempts,
        concurrency=concurrency or default_concurrency(),
        resume=resume,
        failed_too=retry_failed,
    )
    opened = with_options(open_registry(registry), settings, dataset)
    source = SandboxSource(provider, opened.image_roots, cache_folder(cache))
    make_importable()
    play_and_present(request, opened, source, as_json=as_json)


def default_out(agent: str, environments: Sequence[str]) -> Path:
    """A new directory below ./runs, named by the time, the agent and the environment."""
    stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%SZ")
    more = f"-and-{len(environments) - 1}-more" if len(environments) > 1 else ""
    name = re.sub(r"[^A-Za-z0-9.-]+", "-", f"{stamp}-{agent}-{environments[0]}{more}")
    path, number = Path("runs") / name, 1
    while path.exists():
        number += 1
        path = path.with_name(f"{name}-{number}")
    return path


def default_concurrency() -> int:
    """Two rollouts for each CPU: while one waits for its model another one works."""
    return 2 * (os.cpu_count() or 1)


def make_importable() -> None:
    """Let `--agent module:attr` find modules in the current directory, as `python -m` does."""
    if str(Path.cwd()) not in sys.path:
        sys.path.insert(0, str(Path.cwd()))


def _api_key(variable: str | None) -> str | None:
    key = os.environ.get(variable or _KEY)
    if variable and not key:
        raise UsageError(f"--api-key-env {variable}: that environment variable is not set")
    return key


def _body(text: str | None) -> Mapping[str, Any]:
    if text is None:
        return {}
    try:
        body = json.loads(text)
    except ValueError as error:
        raise UsageError(f"--body is not JSON: {error}") from error
    if not isinstance(body, dict):
        raise UsageError("--body is no JSON object; it would be like '{\"top_p\": 0.9}'")
    return body
