"""An environment's folder -> what its author defined, with every slip named before it is used."""

import importlib.util
import inspect
import json
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

from pydantic import ValidationError

from gymsuite.complaints import complaints
from gymsuite.environment import Collect, Prepare, Respond, Solve, TaskGate, Verifier
from gymsuite.errors import DefinitionError, GymsuiteError, describe
from gymsuite.tools import Tool, submit
from gymsuite.types import Task


class Definition(NamedTuple):
    """The parts of an environment that its folder defines, by their names in `Environment`."""

    tasks: Sequence[Task]
    verifier: Verifier
    tools: tuple[Tool, ...]
    system_prompt: str
    prepare: Prepare | None
    collect: Collect | None
    respond: Respond | None
    solve: Solve | None
    gate: TaskGate | None


def read_definition(folder: Path, name: str, options: Mapping[str, str] = {}) -> Definition:
    """Import the folder's environment.py and read its tasks.

    Where it defines `configure(options)`, what that returns is read in place of the module.
    Raises `DefinitionError` for what is missing, of a wrong type, or raises.
    """
    where = folder / "environment.py"
    module: object = _import_folder(folder, name)
    configure = _function(module, "configure", where)
    if configure is not None:
        module = _configured(configure, options, where)
    verifier = _async_function(module, "verify", where)
    if verifier is None:
        raise DefinitionError(
            f"{where}: defines no `async def verify(task, submission, open_sandbox)`"
        )
    system_prompt = getattr(module, "system_prompt", "")
    if not isinstance(system_prompt, str):
        raise DefinitionError(f"{where}: `system_prompt` is {_kind(system_prompt)}, not str")
    tools = getattr(module, "tools", (submit,))
    if not isinstance(tools, tuple | list):
        raise DefinitionError(
            f"{where}: `tools` is {_kind(tools)}; it would be a tuple, such as (bash, submit)"
        )
    return Definition(
        tasks=_tasks(module, folder, name),
        verifier=verifier,
        tools=tuple(tools),
        system_prompt=system_prompt,
        prepare=_async_function(module, "prepare", where),
        collect=_async_function(module, "collect", where),
        respond=_async_function(module, "respond", where),
        solve=_async_function(module, "solve", where),
        gate=_gate(module, where),
    )


def _import_folder(folder: Path, name: str) -> ModuleType:
    """Import environment.py by its path, as a package of its own so that siblings resolve."""
    path = folder / "environment.py"
    if not path.is_file():
        raise DefinitionError(f"{name}: no file {path}; registry.yaml's `path` is its folder")
    alias = "_gymsuite_" + re.sub(r"\W", "_", f"{name}_{folder}")
    if alias in sys.modules:
        return sys.modules[alias]
    spec = importlib.util.spec_from_file_location(
        alias, path, submodule_search_locations=[str(folder)]
    )
    if spec is None or spec.loader is None:
        raise DefinitionError(f"{path}: cannot be imported")
    module = importlib.util.module_from_spec(spec)
    sys.modules[alias] = module
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:  # an author's code may raise anything
        del sys.modules[alias]
        raise DefinitionError(f"{path}: {describe(error)}") from error
    return module


def _configured(
    configure: Callable[[Mapping[str, str]], object], options: Mapping[str, str], where: Path
) -> object:
    try:
        return configure(options)
    except GymsuiteError:
        raise
    except (Exception, SystemExit) as error:  # an author's code may raise anything
        raise DefinitionError(f"{where}: configure(): {describe(error)}") from error


def _function(module: object, part: str, where: Path) -> Any:  # noqa: ANN401 - each its own
    found = getattr(module, part, None)
    if found is not None and not callable(found):
        raise DefinitionError(f"{where}: `{part}` is {_kind(found)}, not a function")
    return found


def _async_function(module: object, part: str, where: Path) -> Any:  # noqa: ANN401 - each its own
    found = _function(module, part, where)
    if inspect.isfunction(found) and not inspect.iscoroutinefunction(found):
        raise DefinitionError(f"{where}: `{part}` is a plain function; it would be `async def`")
    return found


def _gate(module: object, where: Path) -> Any:  # noqa: ANN401 - an author's, to be checked
    found = getattr(module, "gate", None)
    if isinstance(found, ModuleType):  # a sibling gate.py that was imported, and no more than that
        return None
    if found is not None and not callable(getattr(found, "faults", None)):
        raise DefinitionError(
            f"{where}: `gate` is {_kind(found)}; it would have an `async def "
            "faults(environment, task, open_sandbox)`, as gymsuite.worlds.gate.Gate has"
        )
    return found


def _tasks(module: object, folder: Path, name: str) -> Sequence[Task]:
    source = getattr(module, "tasks", None)
    if source is None:
        tasks: Any = _read_tasks(folder / "tasks.jsonl")
    else:
        tasks = _given_tasks(source, folder / "environment.py")
    if not tasks:
        raise DefinitionError(f"{folder}: {name} has no tasks")
    return tasks  # type: ignore[no-any-return]


def _given_tasks(source: Any, where: Path) -> Any:  # noqa: ANN401 - an author's, to be checked
    try:
        tasks = source() if callable(source) else source
    except (Exception, SystemExit) as error:  # an author's code may raise anything
        raise DefinitionError(f"{where}: tasks(): {describe(error)}") from error
    if not isinstance(tasks, Sequence) or isinstance(tasks, str | bytes):
        raise DefinitionError(f"{where}: `tasks` is {_kind(tasks)}; it would be a tuple of Task")
    if not isinstance(tasks, tuple | list):
        return tasks  # one that makes its tasks when they are asked for
    if others := [task for task in tasks if not isinstance(task, Task)]:
        raise DefinitionError(f"{where}: `tasks` has {_kind(others[0])} in it, not only Task")
    ids = [task.id for task in tasks]
    if len(set(ids)) < len(ids):
        twice = next(i for at, i in enumerate(ids) if i in set(ids[:at]))
        raise DefinitionError(f"{where}: a second task {twice!r}")
    return tasks


def _read_tasks(path: Path) -> tuple[Task, ...]:
    try:
        lines = path.read_text(encoding="utf-8").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise DefinitionError(
            f"{path}: {error}; an environment has a tasks.jsonl or defines `tasks`"
        ) from error
    tasks: dict[str, Task] = {}
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            task = Task.model_validate(json.loads(line))
        except ValidationError as error:
            raise DefinitionError(f"{path}:{number}: {complaints(error)}") from error
        except ValueError as error:
            raise DefinitionError(f"{path}:{number}: not JSON: {error}") from error
        if task.id in tasks:
            raise DefinitionError(f"{path}:{number}: a second task {task.id!r}")
        tasks[task.id] = task
    return tuple(tasks.values())


def _kind(value: object) -> str:
    return type(value).__name__
