"""The analyst's desk: read-only SQL, views, a typed answer."""

import json
import re
from collections.abc import Mapping
from typing import Annotated

from pydantic import Field, Strict

from gymsuite.tools import ToolError
from gymsuite.types import Task
from gymsuite.worlds.schema import Column, Schema, Table
from gymsuite.worlds.server import World
from gymsuite.worlds.sql import MOST_ROWS, QueryProcesses, Result
from gymsuite.worlds.state import Row, State
from gymsuite.worlds.text import Text

from .stars import Place, image, star_of

SCHEMA = Schema(
    (
        Table("views", "VIW", (Column("name"), Column("query", "derived")), natural=("name",)),
        Table("answers", "ANS", (Column("value", "casefold"),)),
    )
)
_QUERIES = QueryProcesses()
_NAME = re.compile(r"^[a-z][a-z0-9_]{0,30}$")
Whole = Annotated[int, Strict(), Field(ge=-(2**63), le=2**63 - 1)]
Item = Whole | Text
Answer = Item | Annotated[list[Item], Field(max_length=50)]


def place_of(state: State) -> Place:
    """The visible database of this episode."""
    return Place(**json.loads(state.get("place")))


def views_of(state: State) -> Mapping[str, str]:
    """The views by name."""
    return {row["name"]: row["query"] for row in state.find("views", {})}


def list_tables(state: State) -> dict[str, list[str]]:
    """List the tables and the views."""
    star = star_of(place_of(state).split, place_of(state).world)
    return {"tables": [star.fact, star.first, star.second], "views": sorted(views_of(state))}


async def describe_table(state: State, table: str) -> object:
    """Show the columns of a table or view, the number of rows, and three rows."""
    name = table.strip()
    if name not in (*list_tables(state)["tables"], *views_of(state)):
        raise ToolError(f"no table or view {name[:40]!r}; list_tables shows them")
    some = await _run(state, f'SELECT * FROM "{name}" LIMIT 3')  # noqa: S608 - a name that is there
    count = await _run(state, f'SELECT COUNT(*) FROM "{name}"')  # noqa: S608 - the same
    return {"columns": some.columns, "rows": count.rows[0][0], "some_rows": some.rows}


async def run_sql(state: State, sql: str) -> object:
    """Run one SELECT (SQLite's dialect); at most 200 rows are shown."""
    return _shown(await _run(state, sql))


async def create_view(state: State, name: str, sql: str) -> object:
    """Create a view, or replace it. The SELECT may use the tables, but no other view."""
    name = name.strip()
    star = star_of(place_of(state).split, place_of(state).world)
    if not _NAME.match(name) or name in (star.fact, star.first, star.second):
        raise ToolError("a view's name has lower-case letters, digits and _, and is no table's")
    text = sql.strip().rstrip(";")
    result = await shown_by_view(place_of(state), name, text)
    state.put("views", {"id": f"VIW-{name.upper()}", "name": name, "query": text})
    return {"created": name, **_shown(result)}


async def shown_by_view(place: Place, name: str, text: str) -> Result:
    """What a view of an agent shows in a database, when there is no other view."""
    return await _QUERIES.query(image(place), f'SELECT * FROM "{name}"', {name: text})  # noqa: S608 - a checked name


def drop_view(state: State, name: str) -> object:
    """Remove a view."""
    rows = state.find("views", {"name": name.strip()})
    if not rows:
        raise ToolError(f"no view {name.strip()[:40]!r}")
    state.delete("views", rows[0]["id"])
    return {"dropped": name.strip()}


def give_answer(state: State, value: Answer) -> object:
    """Give the answer: a whole number, a text, or a list of them. A second one replaces it."""
    text = json.dumps(value, ensure_ascii=False)
    state.put("answers", {"id": "ANS-1", "value": text})
    return {"answer": value}


async def _run(state: State, sql: str) -> Result:
    return await _QUERIES.query(image(place_of(state)), sql, views_of(state))


def _shown(result: Result) -> dict[str, object]:
    shown: dict[str, object] = {"columns": result.columns, "rows": result.rows}
    if result.cut:
        shown["note"] = f"only the first {MOST_ROWS} rows are shown"
    return shown


def begin(hidden: Row) -> State:
    """A task's state at the start: no view and no answer yet."""
    state = State.empty(SCHEMA, seed="tables-v1", now="2032-01-05T09:00:00Z")
    state.set("place", json.dumps(hidden["place"]))
    state.begin()
    return state


def _start(task: Task) -> State:
    return begin(task.hidden)


LOOKUPS = (list_tables, describe_table, run_sql)
WRITES = (create_view, drop_view, give_answer)
WORLD = World(SCHEMA, LOOKUPS, WRITES, _start)
