"""The world of the desk: its tools, how a task's state begins, and the customer on the line."""

from typing import Any

from gymsuite.types import Task
from gymsuite.worlds.server import Ended, World
from gymsuite.worlds.state import Row, State
from gymsuite.worlds.user import Script, hear

from .base import base
from .lookups import LOOKUPS
from .phrases import VOICES
from .schema import SCHEMA
from .writes import WRITES

LEAD = "The customer says: "


def begin(hidden: Row) -> State:
    """A task's state at the start of an episode."""
    start: Any = hidden["start"]
    state = State.load(SCHEMA, base(hidden["split"], start["universe"]))
    state.set("seed", start["seed"])
    state.set("now", start["now"])
    state.set("script", Script.model_validate(hidden["user"]).model_dump_json())
    for entry in start["rows"]:
        state.put(entry["table"], entry["row"])
    state.begin()
    return state


def tell_customer(state: State, text: str) -> object:
    """Say something to the customer and read the answer; it ends when the customer leaves."""
    script = Script.model_validate_json(state.get("script"))
    answer = hear(state, script, VOICES[script.voice], text)
    reply = f"{LEAD}{answer.text}"
    return Ended(f"{reply}\n[the customer has left]") if answer.leaves else reply


def _start(task: Task) -> State:
    return begin(task.hidden)


WORLD = World(SCHEMA, (tell_customer, *LOOKUPS), WRITES, _start)
