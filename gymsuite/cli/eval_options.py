"""The options of `gymsuite eval`: which tasks, which model, and where the run goes."""

from pathlib import Path
from typing import Annotated

import typer

from gymsuite.agents import BUILT_IN

KEY_VARIABLE = "OPENAI_API_KEY"
_MODEL, _HOW = "The model of --agent openai", "Where the run goes, and how"

AgentOption = Annotated[
    str, typer.Option("--agent", "-a", help=f"{', '.join(BUILT_IN)}, or your own as module:attr.")
]
CountOption = Annotated[
    int | None,
    typer.Option(
        "--tasks", "-n", min=1, metavar="N", help="So many tasks: a fixed sample, not all."
    ),
]
NamesOption = Annotated[
    list[str] | None, typer.Option("--task", metavar="ID", help="Only this task; may be repeated.")
]
RepeatsOption = Annotated[
    int, typer.Option("--repeats", "-k", min=1, metavar="K", help="Play each task K times.")
]
SplitOption = Annotated[str | None, typer.Option(metavar="NAME", help="Only tasks of this split.")]
SeedOption = Annotated[
    int, typer.Option(metavar="N", help="What the seeds of all rollouts come from.")
]
ReplayOption = Annotated[
    Path | None, typer.Option(metavar="RUN", help="The run that the agent `replay` repeats.")
]
ModelOption = Annotated[
    str | None, typer.Option("--model", "-m", metavar="NAME", rich_help_panel=_MODEL)
]
BaseUrlOption = Annotated[
    str | None,
    typer.Option(
        metavar="URL",
        envvar="OPENAI_BASE_URL",
        help="Such as http://localhost:8000/v1.",
        rich_help_panel=_MODEL,
    ),
]
KeyOption = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help=f"The variable that holds the API key; {KEY_VARIABLE} if not given.",
        rich_help_panel=_MODEL,
    ),
]
TemperatureOption = Annotated[
    float | None, typer.Option(min=0, metavar="T", rich_help_panel=_MODEL)
]
MaxTokensOption = Annotated[
    int | None, typer.Option(min=1, metavar="N", help="In one action.", rich_help_panel=_MODEL)
]
TimeoutOption = Annotated[
    float,
    typer.Option(
        min=1, metavar="SECONDS", help="For one action, retries and all.", rich_help_panel=_MODEL
    ),
]
BodyOption = Annotated[
    str | None,
    typer.Option(metavar="JSON", help="More fields for every request.", rich_help_panel=_MODEL),
]
OutOption = Annotated[
    Path | None,
    typer.Option(
        "--out",
        "-o",
        metavar="DIR",
        help="The run directory; a new one below ./runs.",
        rich_help_panel=_HOW,
    ),
]
ResumeOption = Annotated[
    bool,
    typer.Option("--resume", help="Do only what is missing from --out.", rich_help_panel=_HOW),
]
RetryOption = Annotated[
    bool,
    typer.Option(
        "--retry-failed",
        help="With --resume: try again what failed for good, too.",
        rich_help_panel=_HOW,
    ),
]
ConcurrencyOption = Annotated[
    int | None,
    typer.Option(
        "--concurrency",
        "-c",
        min=1,
        metavar="N",
        help="Rollouts at once; 2 for each CPU.",
        rich_help_panel=_HOW,
    ),
]
AttemptsOption = Annotated[
    int,
    typer.Option(
        min=1,
        metavar="N",
        help="Tries at a rollout that fails for a passing reason.",
        rich_help_panel=_HOW,
    ),
]
