"""From the name of an agent to a source of them: a built-in one, or a user's `module:attr`."""

import difflib
import importlib
from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager, nullcontext
from types import ModuleType
from typing import Any, cast

from gymsuite.agents.source import AgentOptions, AgentSource
from gymsuite.errors import UsageError
from gymsuite.rollout import AgentFactory

_Open = Callable[[AgentOptions], AbstractAsyncContextManager[AgentSource]]

BUILT_IN: Mapping[str, str] = {
    "oracle": "gymsuite.agents.scripted:oracle",
    "noop": "gymsuite.agents.scripted:noop",
    "random": "gymsuite.agents.scripted:random_agent",
    "replay": "gymsuite.agents.scripted:replay",
    "openai": "gymsuite.agents.openai:openai",
}
"""Resolved on use, so that only `openai` imports an HTTP client."""


def open_agent(
    name: str, options: AgentOptions | None = None
) -> AbstractAsyncContextManager[AgentSource]:
    """Open the source of the agents called `name`, to be closed after the run.

    `module:attr` is a user's own: `attr` is an `AgentFactory`, a class that takes the task for one.
    Raises `UsageError` for a name that stands for nothing.
    """
    if name in BUILT_IN:
        module, _, attribute = BUILT_IN[name].partition(":")
        open_built_in = cast("_Open", getattr(importlib.import_module(module), attribute))
        return open_built_in(options or AgentOptions())
    if not all(name.partition(":")):
        near = difflib.get_close_matches(name, BUILT_IN, n=1)
        hint = f"; did you mean {near[0]!r}?" if near else f"; there are: {', '.join(BUILT_IN)}"
        raise UsageError(f"no agent {name!r}{hint} (one of your own is module:attr)")
    factory = _attribute(name)
    return nullcontext(AgentSource(name, {}, lambda _: factory))


def _attribute(name: str) -> AgentFactory:
    module_name, _, attribute = name.partition(":")
    module = _module(name, module_name)
    found: Any = module
    for part in attribute.split("."):
        if not hasattr(found, part):
            near = difflib.get_close_matches(part, dir(found), n=1)
            hint = f"; did you mean {near[0]!r}?" if near else ""
            raise UsageError(f"agent {name!r}: {module_name} has no {part!r}{hint}")
        found = getattr(found, part)
    if not callable(found):
        raise UsageError(
            f"agent {name!r} is no function or class but {type(found).__name__}; it is called "
            "with the task and returns an agent"
        )
    return cast("AgentFactory", found)


def _module(name: str, module_name: str) -> ModuleType:
    try:
        return importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{module_name}.".startswith(f"{error.name}."):
            raise UsageError(
                f"agent {name!r}: {module_name} needs {error.name!r}, which is not installed"
            ) from error
        raise UsageError(
            f"agent {name!r}: no module {error.name!r}; it must be installed, or lie in the "
            "current directory"
        ) from error
    except (Exception, SystemExit) as error:  # a user's module may raise anything
        raise UsageError(
            f"agent {name!r}: importing {module_name} raised {type(error).__name__}: {error}"
        ) from error
