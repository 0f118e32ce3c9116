"""`gymsuite`: finds the command, and turns what it raises into an exit code.

0    ok
1    a gate or check says no
2    usage: a wrong option, an unknown id, a broken definition
3    infrastructure failures left the work incomplete
130  interrupted
141  who read the output has gone
"""

import importlib
import sys
from collections.abc import Mapping, Sequence
from typing import Annotated

import typer
from rich.console import Console

from gymsuite import __version__
from gymsuite.cli.loop import Interrupted
from gymsuite.cli.plain import plain
from gymsuite.errors import GymsuiteError, InfrastructureError

_USAGE, _INFRASTRUCTURE, _INTERRUPTED, _UNREAD = 2, 3, 130, 141

COMMANDS: Mapping[str, str] = {
    "list": "gymsuite.cli.catalog:list_environments",
    "show": "gymsuite.cli.catalog:show",
    "eval": "gymsuite.cli.evaluating:evaluate",
    "verify": "gymsuite.cli.verifying:verify",
    "check": "gymsuite.cli.checking:check",
    "swebench": "gymsuite.cli.swebench:app",
    "play": "gymsuite.cli.playing:play",
    "cache": "gymsuite.cli.caching:app",
    "sandbox": "gymsuite.cli.sandbox:app",
    "doctor": "gymsuite.cli.doctor:doctor",
    "bench": "gymsuite.cli.benching:bench",
    "models": "gymsuite.cli.models:app",
    "search": "gymsuite.cli.searching:app",
    "mcp": "gymsuite.cli.mcp:app",
    "demo": "gymsuite.cli.demo:demo",
}
"""Imported when it is called, so that `gymsuite list` does not wait for an HTTP client."""


def main() -> None:
    """Run the command that the arguments name."""
    try:
        build(sys.argv[1:])(prog_name="gymsuite")
    except GymsuiteError as error:
        _complain(str(error))
        sys.exit(_INFRASTRUCTURE if isinstance(error, InfrastructureError) else _USAGE)
    except OSError as error:  # of this machine: a full disk behind the output, say
        _complain(f"{error.strerror or error}" + (f": {error.filename}" if error.filename else ""))
        sys.exit(_INFRASTRUCTURE)
    except (Interrupted, KeyboardInterrupt):
        sys.exit(_INTERRUPTED)
    except SystemExit as end:
        # click makes a 1 of a broken pipe, which means "no" here
        if isinstance(end.__context__, BrokenPipeError):
            sys.exit(_UNREAD)
        raise


def _complain(text: str) -> None:
    Console(stderr=True, highlight=False).print(plain(f"error: {text}"), soft_wrap=True)


def build(arguments: Sequence[str]) -> typer.Typer:
    """The application with the command that is called, or with all of them for the help text."""
    app = typer.Typer(
        name="gymsuite",
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback()(_root)
    called = [name for name in arguments[:1] if name in COMMANDS]
    wanted = () if "--version" in arguments[:1] else called or COMMANDS
    for name in wanted:
        module, _, attribute = COMMANDS[name].partition(":")
        command = getattr(importlib.import_module(module), attribute)
        if isinstance(command, typer.Typer):
            app.add_typer(command, name=name)
        else:
            app.command(name)(command)
    return app


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"gymsuite {__version__}")
        raise typer.Exit


def _root(
    _: Annotated[
        bool,
        typer.Option("--version", help="Print the version.", callback=_version, is_eager=True),
    ] = False,
) -> None:
    """Training environments for language-model agents: sandboxed episodes, verified rewards."""
