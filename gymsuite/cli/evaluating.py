"""`gymsuite eval`: rollouts of an agent over environments, into a run directory."""

import json
import os
import re
import shlex
import sys
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from gymsuite.agents import BUILT_IN, AgentOptions
from gymsuite.cli.loop import Interrupted, run
from gymsuite.cli.options import (
    CacheOption,
    JsonOption,
    ProviderOption,
    RegistryOption,
    cache_folder,
    open_registry,
)
from gymsuite.cli.progress import choose_screen
from gymsuite.cli.tables import print_reports
from gymsuite.errors import UsageError
from gymsuite.runs.evaluate import Request
from gymsuite.runs.evaluate import evaluate as carry_out
from gymsuite.runs.recordings import open_recordings
from gymsuite.runs.sandboxes import SandboxSource

_INCOMPLETE = 3
_KEY = "OPENAI_API_KEY"


def evaluate(
    environments: Annotated[
        list[str], typer.Argument(metavar="ENV...", help="Ids, such as coding/pybugs-v1.")
    ],
    *,
    agent: Annotated[
        str,
        typer.Option("--agent", "-a", help=f"{', '.join(BUILT_IN)}, or your own as module:attr."),
    ],
    base_url: Annotated[
        str | None,
        typer.Option(
            metavar="URL", envvar="OPENAI_BASE_URL", help="openai: such as http://localhost:8000/v1"
        ),
    ] = None,
    model: Annotated[str | None, typer.Option("--model", "-m", help="openai: its name.")] = None,
    api_key_env: Annotated[
        str | None,
        typer.Option(metavar="NAME", help=f"openai: the variable with the API key; {_KEY}."),
    ] = None,
    temperature: Annotated[float | None, typer.Option(min=0, help="openai: of sampling.")] = None,
    max_tokens: Annotated[int | None, typer.Option(min=1, help="openai: per action.")] = None,
    timeout: Annotated[float, typer.Option(min=1, help="openai: seconds per action.")] = 600,
    body: Annotated[
        str | None, typer.Option(metavar="JSON", help="openai: more fields for every request.")
    ] = None,
    replay: Annotated[
        Path | None, typer.Option(metavar="RUN", help="replay: the run directory to repeat.")
    ] = None,
    tasks: Annotated[
        int | None,
        typer.Option(
            "--tasks", "-n", min=1, help="How many tasks; always the same ones, from all parts."
        ),
    ] = None,
    split: Annotated[str | None, typer.Option(help="Only tasks of this split.")] = None,
    repeats: Annotated[int, typer.Option("--repeats", "-k", min=1, help="Times each task.")] = 1,
    concurrency: Annotated[
        int | None,
        typer.Option("--concurrency", "-c", min=1, help="Rollouts at once; 2 for each CPU."),
    ] = None,
    seed: Annotated[int, typer.Option(help="Rollouts get seeds of their own from it.")] = 0,
    attempts: Annotated[
        int, typer.Option(min=1, help="Tries at a rollout that failed for a passing reason.")
    ] = 3,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", metavar="DIR", help="Where the run goes.")
    ] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Do what --out lacks.")] = False,
    retry_failed: Annotated[
        bool, typer.Option("--retry-failed", help="With --resume: also what failed for good.")
    ] = False,
    provider: ProviderOption = None,
    cache: CacheOption = None,
    as_json: JsonOption = False,
    registry: RegistryOption = None,
) -> None:
    """Play tasks with an agent, and score what it leaves behind."""
    if resume and out is None:
        raise UsageError("--resume goes on with a run: name its directory with --out DIR")
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
        count=tasks,
        split=split,
        repeats=repeats,
        seed=seed,
        attempts=attempts,
        concurrency=concurrency or default_concurrency(),
        resume=resume,
        failed_too=retry_failed,
    )
    opened = open_registry(registry)
    source = SandboxSource(provider, opened.image_roots, cache_folder(cache))
    screen = choose_screen(as_json=as_json, label=agent)
    make_importable()
    try:
        run(carry_out(request, opened, source, screen))
    except Interrupted:
        if screen.report is not None and not as_json:
            print_reports(Console(stderr=True), [screen.report])
        _say(f"interrupted; what was finished is kept. To go on: {_resume_command(where)}")
        raise
    report = screen.report
    if report is None:
        return
    if as_json:
        typer.echo(json.dumps(report.flat()))
    else:
        print_reports(Console(), [report])
    if not report.complete:
        again = _resume_command(where, "--retry-failed" if report.total.failures else "")
        _say(f"incomplete: some rollouts have no score. To try them again: {again}")
        raise typer.Exit(_INCOMPLETE)


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


def _resume_command(where: Path, more: str = "") -> str:
    """This command again, with --out and --resume; secrets in a URL are left out."""
    arguments = [_without_secrets(part) for part in sys.argv[1:]]
    if not {"--out", "-o"} & {part.split("=")[0] for part in arguments}:
        arguments += ["--out", str(where)]
    arguments += [flag for flag in ("--resume", more) if flag and flag not in arguments]
    return shlex.join(["gymsuite", *arguments])


def _without_secrets(argument: str) -> str:
    """Leave out what may be a password or a token of a URL."""
    if "://" not in argument:
        return argument
    return re.sub(r"\?.*", "?***", re.sub(r"://[^/@\s]*@", "://***@", argument))


def _say(text: str) -> None:
    Console(stderr=True).print(text, markup=False, highlight=False, soft_wrap=True)
