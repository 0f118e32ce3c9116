"""`gymsuite play`: a person plays an environment in the terminal."""

import difflib
import json
import sys
from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.rule import Rule
from rich.text import Text

from gymsuite.cli.loop import Interrupted, run
from gymsuite.cli.options import (
    CacheOption,
    DatasetOption,
    EnvironmentArgument,
    ProviderOption,
    RegistryOption,
    SetOption,
    cache_folder,
    open_registry,
    with_options,
)
from gymsuite.cli.plain import plain
from gymsuite.cli.typing_in import Typed
from gymsuite.environment import Environment
from gymsuite.episode import Episode
from gymsuite.runs.sandboxes import SandboxSource, images_of, open_sandboxes
from gymsuite.sandbox.protocol import OpenSandbox
from gymsuite.types import Message, Task, ToolCall, ToolSchema
from gymsuite.worlds.procedural import find_task

_BLOCK = '"""'
_HELP = (
    "TOOL asks for what it needs (a line of three quotes begins and ends a longer text), "
    "TOOL {json} gives all, TOOL TEXT gives the only one; anything else is said as text; "
    "? lists the tools; Ctrl-D leaves"
)


def play(
    environment: EnvironmentArgument,
    *,
    task: Annotated[
        str | None, typer.Option(metavar="ID", help="Which task; the first one if not given.")
    ] = None,
    seed: Annotated[int, typer.Option(help="Of the episode.")] = 0,
    settings: SetOption = None,
    dataset: DatasetOption = None,
    provider: ProviderOption = None,
    cache: CacheOption = None,
    registry: RegistryOption = None,
) -> None:
    """Play a task yourself, with the tools that an agent has."""
    opened = with_options(open_registry(registry), settings, dataset)
    loaded = opened.load(environment)
    chosen = loaded.tasks[0] if task is None else find_task(loaded, task)
    source = SandboxSource(provider, opened.image_roots, cache_folder(cache))
    console = Console(highlight=False)

    def ask(prompt: str) -> None:
        console.print(prompt, end="", style="bold", markup=False)
        console.file.flush()

    player = _Player(console, Typed(sys.stdin.fileno(), ask))
    try:
        run(_play(loaded, chosen, seed, source, player))
    except Interrupted:
        console.print()  # the prompt's line is not a place for the shell's
        raise


async def _play(
    environment: Environment, task: Task, seed: int, source: SandboxSource, player: "_Player"
) -> None:
    images = sorted(images_of(environment, [task]))
    async with open_sandboxes(source, images, player.note) as sandboxes:
        await _episode(environment, task, seed, sandboxes.open, player)


async def _episode(
    environment: Environment, task: Task, seed: int, open_sandbox: OpenSandbox, player: "_Player"
) -> None:
    async with Episode(environment, open_sandbox) as episode:
        observation, _ = await episode.reset(task, seed)
        player.show(observation.messages)
        player.list_tools(observation.tools)
        while not episode.done:
            try:
                action = await player.act()
            except EOFError:
                player.note("\nleft before the end: no score")
                return
            step = await episode.step(action)
            player.show(step.observation.messages)
        player.conclude(episode)


class _Player:
    """Shows observations, and turns what is typed into actions."""

    def __init__(self, console: Console, typed: Typed) -> None:
        self._console = console
        self._typed = typed
        self._tools: Mapping[str, ToolSchema] = {}
        self._calls = 0

    def note(self, text: str) -> None:
        """Say something of the game itself."""
        self._console.print(text, style="dim", markup=False)

    def show(self, messages: Sequence[Message]) -> None:
        """Show what the agent would see."""
        for message in messages:
            self._console.print(Rule(message.role, align="left", style="dim"))
            self._console.print(plain(message.text))

    def list_tools(self, tools: Sequence[ToolSchema]) -> None:
        """Show which tools there are, and remember them."""
        self._tools = {tool.name: tool for tool in tools} or self._tools
        self._console.print(Rule("tools", align="left", style="dim"))
        for tool in self._tools.values():
            arguments = ", ".join(_parameters(tool))
            self._console.print(Text(f"{tool.name}({arguments})", style="cyan"))
        self.note(_HELP)

    def conclude(self, episode: Episode) -> None:
        """Show how it ended."""
        score = episode.score
        self._console.print(Rule("score", align="left", style="dim"))
        if episode.truncation:
            self.note(f"ended by a limit: {episode.truncation}")
        if score is not None:
            verdict = "passed" if score.passed else "not passed"
            style = "green" if score.passed else "red"
            self._console.print(Text(f"reward {score.reward:g}, {verdict}", style=style))
            self._console.print(plain(score.details))

    async def act(self) -> Message:
        """Ask for the next action; raises `EOFError` when there is none."""
        while True:
            line = await self._typed.line("> ")
            name, _, rest = line.strip().partition(" ")
            if name == "?":
                self.list_tools(())
            elif name in self._tools:
                arguments = await self._arguments(self._tools[name], rest.strip())
                self._calls += 1
                call = ToolCall(id=f"call_{self._calls}", name=name, **arguments)
                return Message(role="assistant", tool_calls=(call,))
            elif near := difflib.get_close_matches(name, self._tools, n=1, cutoff=0.7):
                self.note(f"no tool {name!r}; did you mean {near[0]!r}?")
            elif line.strip():
                return Message(role="assistant", content=line)

    async def _arguments(self, tool: ToolSchema, rest: str) -> dict[str, Any]:
        properties = _parameters(tool)
        if rest.startswith("{"):
            return _from_json(rest)
        if rest and len(properties) == 1:
            (name,) = properties
            return {"arguments": {name: _value(properties[name], rest)}}
        given = {}
        for name in tool.parameters.get("required", ()):
            text = await self._typed.line(f"  {name}: ")
            if text.strip() == _BLOCK:
                text = await self._block()
            given[name] = _value(properties[name], text)
        return {"arguments": given}

    async def _block(self) -> str:
        lines = []
        while (line := await self._typed.line("  … ")).strip() != _BLOCK:
            lines.append(line)
        return "\n".join(lines) + "\n"


def _parameters(tool: ToolSchema) -> Mapping[str, Any]:
    properties: Mapping[str, Any] = tool.parameters.get("properties", {})
    return properties


def _from_json(text: str) -> dict[str, Any]:
    try:
        return {"arguments": json.loads(text)}
    except ValueError as error:
        return {"error": f"they are not JSON ({error})"}


def _value(schema: Mapping[str, Any], text: str) -> object:
    """What was typed, as the kind of value that the tool takes; else as it was typed."""
    if schema.get("type") == "string":
        return text
    try:
        return json.loads(text)
    except ValueError:
        return text
