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

from gymsuite.agents import AgentOptions
from gymsuite.cli import eval_options as options
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


def evaluate(
    environments: Annotated[
        list[str], typer.Argument(metavar="ENV", help="Ids, such as coding/pybugs-v1.")
    ],
    *,
    agent: options.AgentOption,
    tasks: options.CountOption = None,
    names: options.NamesOption = None,
    repeats: options.RepeatsOption = 1,
    split: options.SplitOption = None,
    seed: options.SeedOption = 0,
    replay: options.ReplayOption = None,
    model: options.ModelOption = None,
    base_url: options.BaseUrlOption = None,
    api_key_env: options.KeyOption = None,
    temperature: options.TemperatureOption = None,
    max_tokens: options.MaxTokensOption = None,
    timeout: options.TimeoutOption = 600,
    body: options.BodyOption = None,
    out: options.OutOption = None,
    resume: options.ResumeOption = False,
    retry_failed: options.RetryOption = False,
    concurrency: options.ConcurrencyOption = None,
    attempts: options.AttemptsOption = 3,
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
    request = Request(
        environments=environments,
        agent=agent,
        out=out or default_out(agent, environments),
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
    key = os.environ.get(variable or options.KEY_VARIABLE)
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
