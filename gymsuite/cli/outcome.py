"""Plays a request on the screen, and ends the command: a table or JSON, an exit code, a way on."""

import json
import re
import shlex
import sys
from pathlib import Path

import typer
from rich.console import Console

from gymsuite.cli.loop import Interrupted, run
from gymsuite.cli.progress import open_screen
from gymsuite.cli.tables import print_reports
from gymsuite.registry import Registry
from gymsuite.runs.evaluate import Request, evaluate
from gymsuite.runs.report import RunReport
from gymsuite.runs.sandboxes import SandboxSource

_INCOMPLETE = 3


def play_and_present(
    request: Request, registry: Registry, sandboxes: SandboxSource, *, as_json: bool
) -> None:
    """Exit with 3 if a rollout is left without a score; raises `Interrupted` after Ctrl-C."""
    try:
        with open_screen(as_json=as_json, label=request.agent) as screen:
            report = run(evaluate(request, registry, sandboxes, screen))
    except Interrupted:
        _present_interrupted(screen.report, request.out, as_json=as_json)
        raise
    if as_json:
        typer.echo(json.dumps(report.flat()))
    else:
        print_reports(Console(), [report])
    if not report.complete:
        again = _resume_command(request.out, "--retry-failed" if report.total.failures else "")
        _say(f"incomplete: some rollouts have no score. To try them again: {again}")
        raise typer.Exit(_INCOMPLETE)


def _present_interrupted(report: RunReport | None, out: Path, *, as_json: bool) -> None:
    if report is not None and not as_json:
        print_reports(Console(stderr=True), [report])
    _say(f"interrupted; what was finished is kept. To go on: {_resume_command(out)}")


def _resume_command(out: Path, more: str = "") -> str:
    """This command again, with --out and --resume; secrets in a URL are left out."""
    arguments = [_without_secrets(part) for part in sys.argv[1:]]
    if not {"--out", "-o"} & {part.split("=")[0] for part in arguments}:
        arguments += ["--out", str(out)]
    arguments += [flag for flag in ("--resume", more) if flag and flag not in arguments]
    return shlex.join(["gymsuite", *arguments])


def _without_secrets(argument: str) -> str:
    """Leave out what may be a password or a token of a URL."""
    if "://" not in argument:
        return argument
    return re.sub(r"\?.*", "?***", re.sub(r"://[^/@\s]*@", "://***@", argument))


def _say(text: str) -> None:
    Console(stderr=True).print(text, markup=False, highlight=False, soft_wrap=True)
