"""What tools do with a row: find it or say what is missing, show it, change it."""

from typing import Any

from gymsuite.tools import ToolError
from gymsuite.worlds.state import Row, State


def need(state: State, table: str, key: str) -> dict[str, Any]:
    """The row, or an error that says what was missing."""
    row = state.row(table, key)
    if row is None:
        raise ToolError(f"there is no {key!r} among the {table}; look the id up first")
    return row


def show(state: State, table: str, row: Row) -> dict[str, Any]:
    """What the agent sees of a row; that it was seen is noted."""
    state.mark_read(table, row["id"])
    return {name: value for name, value in row.items() if value is not None}


def change(state: State, table: str, key: str, values: Row) -> dict[str, Any]:
    """The row with other values."""
    need(state, table, key)
    state.update(table, key, values)
    return need(state, table, key)
