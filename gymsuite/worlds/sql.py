"""Queries of an agent over a database that it may read and nothing else, within limits."""

import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import NamedTuple

from gymsuite.tools import ToolError

MOST_STEPS = 1_000_000
"""Steps of SQLite's virtual machine that one query may take."""

MOST_ROWS = 200
MOST_CELL_BYTES = 100_000
_STEPS_AT_ONCE = 10_000
_NAMES = """
abs avg ceil ceiling coalesce count cume_dist date datetime dense_rank first_value floor
group_concat ifnull iif instr julianday lag last_value lead length like lower ltrim max min
mod nth_value ntile nullif percent_rank rank replace round row_number rtrim sign
strftime substr substring sum time total trim typeof unicode upper
"""
_FUNCTIONS = frozenset(_NAMES.split())
_ALLOWED = frozenset((sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_RECURSIVE))


class Result(NamedTuple):
    """The rows of a query, and whether there were more than are kept."""

    columns: tuple[str, ...]
    rows: tuple[tuple[object, ...], ...]
    cut: bool = False


@contextmanager
def opened(image: bytes, views: Mapping[str, str]) -> Iterator[sqlite3.Connection]:
    """A copy of a database with these views, that can only be read."""
    connection = sqlite3.connect(":memory:", isolation_level=None)
    try:
        connection.deserialize(image)
        for name, query in views.items():
            connection.execute(f'CREATE VIEW "{name}" AS {query}')
        connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, MOST_CELL_BYTES)
        connection.setlimit(sqlite3.SQLITE_LIMIT_EXPR_DEPTH, 100)
        connection.setlimit(sqlite3.SQLITE_LIMIT_COMPOUND_SELECT, 20)
        connection.set_authorizer(_authorize)
        yield connection
    finally:
        connection.close()


def query(connection: sqlite3.Connection, text: str, *, most_rows: int = MOST_ROWS) -> Result:
    """The result of one SELECT; raises `ToolError` with what SQLite says is wrong."""
    left = MOST_STEPS // _STEPS_AT_ONCE

    def tick() -> int:
        nonlocal left
        left -= 1
        return left < 0

    connection.set_progress_handler(tick, _STEPS_AT_ONCE)
    try:
        cursor = connection.execute(text)
        if cursor.description is None:
            raise ToolError("that is no SELECT")
        rows: Sequence[tuple[object, ...]] = cursor.fetchmany(most_rows + 1)
    except (sqlite3.Error, sqlite3.Warning, ValueError) as error:
        if left < 0:
            raise ToolError(f"the query took more than {MOST_STEPS:,} steps") from None
        raise ToolError(f"SQL: {error}") from None
    finally:
        connection.set_progress_handler(None, 0)
    columns = tuple(column[0] for column in cursor.description)
    return Result(columns, tuple(rows[:most_rows]), cut=len(rows) > most_rows)


def _authorize(action: int, _: str | None, function: str | None, *__: object) -> int:
    """Reading is allowed, with functions that are always the same and never large."""
    if action in _ALLOWED:
        return sqlite3.SQLITE_OK
    if action == sqlite3.SQLITE_FUNCTION and (function or "").lower() in _FUNCTIONS:
        return sqlite3.SQLITE_OK
    return sqlite3.SQLITE_DENY
