"""An environment as the class that TRL's `GRPOTrainer(environment_factory=...)` takes.

TRL makes one instance per rollout and uses it again and again. It calls `reset` with a row of the
data set, shows the class's public methods to the model as tools, and `get_reward` at the end; it
knows no end of an episode, no close, and drops a rollout whose reward is None.
"""

import weakref
from collections.abc import Iterable, Mapping
from typing import Any

from gymsuite.adapters.functions import as_method
from gymsuite.adapters.seats import Host, Seat
from gymsuite.environment import Environment
from gymsuite.errors import DefinitionError, UsageError
from gymsuite.portal import LazyProvider, at_exit
from gymsuite.registry import Registry
from gymsuite.sandbox.protocol import OpenSandbox
from gymsuite.suite import default_cache
from gymsuite.types import Task
from gymsuite.worlds.procedural import find_task, places

__all__ = ["environment_class", "rows"]

_PROTOCOL = ("reset", "get_reward")


def rows(
    environment: Environment | str, *, split: str = "train", seeds: Iterable[int] = (0,)
) -> list[dict[str, Any]]:
    """One row for each task of a split and each seed, for `datasets.Dataset.from_list`.

    `prompt` is the conversation's beginning; `task_id` and `seed` are what `reset` needs. Raises
    `UsageError` for a split that has no task.
    """
    environment = _loaded(environment)
    known = places(environment.tasks)
    tasks = [environment.tasks[place.position] for place in known if place.split == split]
    if not tasks:
        there = ", ".join(sorted({place.split for place in known}))
        raise UsageError(f"{environment.id} has no split {split!r}; there is: {there}")
    system = environment.system_prompt
    head = [{"role": "system", "content": system}] if system else []
    return [
        {
            "prompt": [*head, {"role": "user", "content": task.prompt}],
            "task_id": task.id,
            "seed": seed,
        }
        for seed in seeds
        for task in tasks
    ]


def environment_class(
    environment: Environment | str,
    *,
    provider: str | None = None,
    open_sandbox: OpenSandbox | None = None,
) -> type:
    """Make the class; its name, under which TRL logs the reward, is made from the id.

    A failure of the world never reaches the trainer as an exception or a reward: it is logged, and
    `get_reward` is None. After 64 failures without a score in between `get_reward` raises, because
    nothing is learned on a broken machine. Raises `DefinitionError` for a tool that would shadow
    TRL's protocol.

    Args:
        environment: An environment, or the id of a registered one.
        provider: "local", "docker", or None for what this machine has.
        open_sandbox: Sandboxes of the caller's own, instead of a provider.
    """
    environment = _loaded(environment)
    if open_sandbox is None:
        lazy = LazyProvider(
            provider, image_roots=Registry.default().image_roots, cache=default_cache()
        )
        host = Host(environment, lazy.open, lazy)
    else:
        host = Host(environment, open_sandbox, None)
    made = type(_class_name(environment.id), (), _methods(environment, host))
    finalizer = weakref.finalize(made, host.close)
    finalizer.atexit = False  # that would be too late
    at_exit(finalizer)
    return made


def _loaded(environment: Environment | str) -> Environment:
    return Registry.default().load(environment) if isinstance(environment, str) else environment


def _class_name(name: str) -> str:
    return "".join(word.capitalize() for word in name.replace("/", "-").split("-"))


def _methods(environment: Environment, host: Host) -> dict[str, Any]:
    """The body of the class. All that is not a tool or TRL's own begins with an underscore."""

    def initialise(self: Any) -> None:  # noqa: ANN401 - an instance of the class being made
        self._seat = Seat(host)
        weakref.finalize(self, self._seat.leave).atexit = False  # the class ends them all then

    def reset(self: Any, **row: Any) -> str | None:  # noqa: ANN401 - TRL passes all columns
        task, seed = _task_and_seed(environment, row)
        self._seat.begin(task, seed)
        return None if _says_something(row.get("prompt")) else opening(task)

    def get_reward(self: Any) -> float | None:  # noqa: ANN401 - an instance, as above
        return self._seat.reward()  # type: ignore[no-any-return]  # a Seat's

    def call(self: Any, name: str, arguments: Mapping[str, Any]) -> str:  # noqa: ANN401 - as above
        return self._seat.call(name, arguments)  # type: ignore[no-any-return]  # a Seat's

    def opening(task: Task) -> str:
        texts = environment.system_prompt, task.prompt
        return "\n\n".join(text for text in texts if text)

    body: dict[str, Any] = {
        "__doc__": f"{environment.id} for TRL. {environment.description}",
        "__module__": __name__,
        "__init__": initialise,
        "reset": reset,
        "get_reward": get_reward,
    }
    for schema in environment.toolbox.schemas:
        if schema.name in _PROTOCOL or schema.name.startswith("_"):
            raise DefinitionError(
                f"{environment.id}: TRL cannot have a tool called {schema.name!r}; rename it "
                f"(not {' or '.join(_PROTOCOL)}, no leading underscore)"
            )
        body[schema.name] = as_method(schema, call)
    return body


def _task_and_seed(environment: Environment, row: Mapping[str, Any]) -> tuple[Task, int]:
    for column in ("task_id", "seed"):
        if row.get(column) is None:
            raise UsageError(
                f"the data set's row has no {column!r}; gymsuite.adapters.trl.rows makes such rows"
            )
    seed = row["seed"]
    if isinstance(seed, bool) or not isinstance(seed, int):
        raise UsageError(f"a seed is an integer, not {seed!r}")
    return find_task(environment, row["task_id"]), seed


def _says_something(prompt: Any) -> bool:  # noqa: ANN401 - a text or a list of messages
    """Whether the row's prompt goes to the model as it is; an empty one waits for `reset`'s."""
    return bool(prompt) and (isinstance(prompt, str) or bool(prompt[-1]["content"]))
