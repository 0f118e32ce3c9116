"""`gymsuite list` and `gymsuite show`: what environments there are, and what one is."""

import json
from collections import Counter
from collections.abc import Mapping
from typing import Any

import typer
from rich import box
from rich.console import Console, Group
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from gymsuite.cli.options import (
    DatasetOption,
    EnvironmentArgument,
    JsonOption,
    RegistryOption,
    SetOption,
    open_registry,
    with_options,
)
from gymsuite.cli.plain import plain
from gymsuite.environment import Environment
from gymsuite.types import Task, ToolSchema
from gymsuite.worlds.procedural import OnDemand, places

_PROMPT_CHARACTERS = 1500


def list_environments(*, as_json: JsonOption = False, registry: RegistryOption = None) -> None:
    """List the environments in the registry."""
    specs = open_registry(registry).specs
    if as_json:
        rows = [{"id": name, **spec.model_dump(mode="json")} for name, spec in specs.items()]
        typer.echo(json.dumps({"environments": rows}, indent=2))
        return
    table = Table(box=box.SIMPLE_HEAD)
    table.add_column("environment", no_wrap=True, style="bold")
    table.add_column("image", no_wrap=True)
    table.add_column("what it asks for")
    for name, spec in specs.items():
        image = spec.sandbox.image if spec.sandbox else "none"
        table.add_row(name, image, Text(spec.description))
    console = Console()
    console.print(table)
    console.print(f"{len(specs)} in all; `gymsuite show ENV` tells more of one", style="dim")


def show(
    environment: EnvironmentArgument,
    *,
    settings: SetOption = None,
    dataset: DatasetOption = None,
    as_json: JsonOption = False,
    registry: RegistryOption = None,
) -> None:
    """Show one environment: its tasks, tools, limits and an example prompt."""
    loaded = with_options(open_registry(registry), settings, dataset).load(environment)
    if as_json:
        typer.echo(json.dumps(_describe(loaded), indent=2))
    else:
        Console().print(_present(loaded))


def _describe(environment: Environment) -> Mapping[str, Any]:
    sandbox = environment.sandbox
    return {
        "id": environment.id,
        "description": environment.description,
        "tasks": len(environment.tasks),
        "splits": _splits(environment),
        "levels": _levels(environment),
        "tools": [tool.model_dump(mode="json") for tool in environment.toolbox.schemas],
        "limits": environment.limits.model_dump(mode="json"),
        "sandbox": sandbox.model_dump(mode="json") if sandbox else None,
        "system_prompt": environment.system_prompt,
        "example": {"id": environment.tasks[0].id, "prompt": environment.tasks[0].prompt},
    }


def _present(environment: Environment) -> Group:
    facts = Table.grid(padding=(0, 2))
    facts.add_column(style="dim", no_wrap=True)
    facts.add_column()
    facts.add_row("tasks", _count(environment))
    facts.add_row("sandbox", _sandbox(environment))
    limits = environment.limits
    facts.add_row(
        "limits",
        f"{limits.max_steps} steps, {limits.episode_seconds:g} s an episode, "
        f"{limits.command_seconds:g} s a command, {limits.verify_seconds:g} s to verify",
    )
    return Group(
        Text(environment.id, style="bold"),
        Text(environment.description),
        "",
        facts,
        "",
        Text("tools", style="bold"),
        *(_tool(schema) for schema in environment.toolbox.schemas),
        "",
        Text(f"example: {environment.tasks[0].id}", style="bold"),
        Padding(_prompt(environment, environment.tasks[0]), (0, 0, 0, 2)),
    )


def _count(environment: Environment) -> str:
    parts = [f"{len(environment.tasks)}"]
    parts.append(", ".join(f"{n} {split}" for split, n in _splits(environment).items()))
    levels = _levels(environment).items()
    parts.append(", ".join(f"{n} of level {level}" for level, n in levels) or "made on demand")
    return "; ".join(parts)


def _splits(environment: Environment) -> Mapping[str, int]:
    return Counter(place.split for place in places(environment.tasks))


def _levels(environment: Environment) -> Mapping[int, int]:
    """How many tasks have each level; empty where they would have to be made to know it."""
    if isinstance(environment.tasks, OnDemand):
        return {}
    return dict(sorted(Counter(task.level for task in environment.tasks).items()))


def _sandbox(environment: Environment) -> str:
    spec = environment.sandbox
    if spec is None:
        return "none: no tool needs one"
    return (
        f"image {spec.image}, {spec.cpus:g} CPU, {spec.memory_bytes / 2**20:.0f} MiB, "
        f"{spec.pids} processes, no network"
    )


def _tool(schema: ToolSchema) -> Padding:
    required = schema.parameters.get("required", ())
    arguments = ", ".join(
        f"{name}: {_type(form)}" + ("" if name in required else f" = {form.get('default')!r}")
        for name, form in schema.parameters.get("properties", {}).items()
    )
    signature = Text(f"{schema.name}({arguments})", style="cyan")
    paragraphs = [" ".join(part.split()) for part in schema.description.split("\n\n")]
    description = Padding(Text("\n".join(paragraphs)), (0, 0, 0, 2))
    return Padding(Group(signature, description), (0, 0, 0, 2))


def _type(form: Mapping[str, Any]) -> str:
    if "anyOf" in form:
        return " | ".join(_type(option) for option in form["anyOf"])
    return str(form.get("type", "any"))


def _prompt(environment: Environment, task: Task) -> Group:
    prompt = task.prompt
    if len(prompt) > _PROMPT_CHARACTERS:
        prompt = f"{prompt[:_PROMPT_CHARACTERS]}…"
    system = f"{environment.system_prompt}\n" if environment.system_prompt else ""
    return Group(plain(system, "dim"), plain(prompt))
