"""The real command line as a process, over a registry that needs no sandbox."""

import os
import subprocess
import sys
from pathlib import Path

ENVIRONMENT = '''
"""Say yes."""
import asyncio, os
from gymsuite import Context, OpenSandbox, Score, Submission, Task, ToolCall, submit

async def think(context: Context, thought: str) -> str:
    """Think about it."""
    await asyncio.sleep(float(os.environ.get("THINK_SECONDS", "0")))
    return "thought about " + thought

tools = (think, submit)
solution = (
    ToolCall(name="think", arguments={"thought": "x"}),
    ToolCall(name="submit", arguments={"answer": "yes"}),
)
tasks = tuple(
    Task(
        id=f"t{n}",
        prompt=f"Say yes, {n}.",
        solution=solution,
        level=n % 3,
        split="test" if n % 2 else "train",
        hidden={"key": "a long secret that nobody sees"},
    )
    for n in range(12)
)

async def verify(task: Task, submission: Submission, open_sandbox: OpenSandbox) -> Score:
    passed = submission.answer == "yes"
    return Score(reward=float(passed), passed=passed)
'''

REGISTRY = """
environments:
  test/yes-v1: {path: say_yes, description: Say yes.}
  test/also-v1: {path: say_yes, description: Say yes as well.}
"""


def make_suite(folder: Path, environment: str = ENVIRONMENT) -> Path:
    """Write a registry with two environments of the same code; return its path."""
    (folder / "say_yes").mkdir(parents=True, exist_ok=True)
    (folder / "say_yes" / "environment.py").write_text(environment)
    registry = folder / "registry.yaml"
    registry.write_text(REGISTRY)
    return registry


def command(*arguments: str | Path) -> list[str]:
    """The command line of `gymsuite ARGUMENTS`."""
    code = "from gymsuite.cli.main import main; main()"
    return [sys.executable, "-c", code, *map(str, arguments)]


def variables(**more: str) -> dict[str, str]:
    """An environment without keys of the developer's own, and with a known width."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("OPENAI_")}
    return {**kept, "COLUMNS": "100", "NO_COLOR": "1", **more}


def gymsuite(
    *arguments: str | Path, cwd: Path, stdin: str = "", **more: str
) -> subprocess.CompletedProcess[str]:
    """Run a command to its end; it must not print a traceback."""
    done = subprocess.run(
        command(*arguments),
        cwd=cwd,
        input=stdin,
        env=variables(**more),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert "Traceback" not in done.stderr, done.stderr
    return done
