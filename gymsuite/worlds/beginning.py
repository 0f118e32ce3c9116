"""How a task with a user begins: a universe that many share, its own rows, clock and script."""

from typing import Any

from gymsuite.worlds.schema import Schema
from gymsuite.worlds.state import Row, State
from gymsuite.worlds.user import Script


def start_of(state: State, universe: int) -> dict[str, Any]:
    """The `start` of a task whose state was set up over a universe: what was put in since."""
    rows = [
        {"table": change.table, "row": state.row(change.table, change.id)}
        for change in state.changes()
    ]
    return {"universe": universe, "now": state.now, "seed": state.get("seed"), "rows": rows}


def begin_with_user(schema: Schema, universe: bytes, hidden: Row) -> State:
    """Load the universe, and put in what a task's `hidden` says of its `start` and its `user`."""
    start: Any = hidden["start"]
    state = State.load(schema, universe)
    state.set("seed", start["seed"])
    state.set("now", start["now"])
    state.set("script", Script.model_validate(hidden["user"]).model_dump_json())
    for entry in start["rows"]:
        state.put(entry["table"], entry["row"])
    state.begin()
    return state
