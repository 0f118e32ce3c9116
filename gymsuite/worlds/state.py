"""The state of one world: an SQLite database that journals which rows were touched."""

import json
import sqlite3
import weakref
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime, timedelta
from typing import Any, Literal, Self

from gymsuite.types import Model
from gymsuite.worlds.draws import mint
from gymsuite.worlds.schema import Cell, Schema, normal

Row = Mapping[str, Any]
"""A row by column name; the names are the schema's."""


class Change(Model):
    """What became of one row since the episode began.

    An insert has all columns in `after`, a delete all in `before`, and an update in both only
    those that differ.
    """

    table: str
    id: str
    op: Literal["insert", "update", "delete"]
    before: Mapping[str, Cell] = {}
    after: Mapping[str, Any] = {}


class State:
    """Rows, journal, virtual clock and minted ids, all in one database of some 100 kB.

    Everything that an episode changes is in the database: `fork` copies it, and a file of its
    `image` is the state.
    """

    def __init__(self, schema: Schema, connection: sqlite3.Connection) -> None:
        self.schema = schema
        self._connection = connection
        # SQLite's memory is the process's own: whoever drops a state need not have closed it.
        weakref.finalize(self, connection.close)
        connection.row_factory = _as_dict

    @classmethod
    def empty(cls, schema: Schema, *, seed: str, now: str) -> Self:
        """A state without rows. `now` is UTC, such as 2031-05-04T12:00:00Z."""
        state = cls(schema, _connect())
        state._connection.executescript(schema.ddl)
        state.set("seed", seed)
        state.set("now", now)
        return state

    @classmethod
    def load(cls, schema: Schema, image: bytes) -> Self:
        """The state that `image` was taken from."""
        connection = _connect()
        connection.deserialize(image)
        return cls(schema, connection)

    @property
    def image(self) -> bytes:
        """All of it, as the bytes of an SQLite file."""
        return self._connection.serialize()

    def fork(self) -> "State":
        """A second state with the same content and its own future."""
        return State.load(self.schema, self.image)

    def close(self) -> None:
        """Let go of the database; may be called again."""
        self._connection.close()

    def all(self, sql: str, *values: Cell) -> list[dict[str, Any]]:
        """The rows that a query finds. Queries of agents do not come here."""
        return self._connection.execute(sql, values).fetchall()

    def one(self, sql: str, *values: Cell) -> dict[str, Any] | None:
        """The first row that a query finds."""
        row: dict[str, Any] | None = self._connection.execute(sql, values).fetchone()
        return row

    def row(self, table: str, key: str) -> dict[str, Any] | None:
        """The row with this id."""
        return self.one(f'SELECT * FROM "{table}" WHERE id = ?', key)  # noqa: S608 - a schema's name

    def find(self, table: str, where: Mapping[str, Cell]) -> list[dict[str, Any]]:
        """The rows whose columns have these values, by id."""
        test = " AND ".join(f'"{name}" IS ?' for name in where) or "1"
        sql = f'SELECT * FROM "{table}" WHERE {test} ORDER BY id'  # noqa: S608 - a schema's names
        return self.all(sql, *where.values())

    def find_folded(self, table: str, column: str, text: str) -> list[dict[str, Any]]:
        """The rows whose column is this text, but for case and white space."""
        wanted = normal("casefold", text)
        return [row for row in self.find(table, {}) if normal("casefold", row[column]) == wanted]

    def put(self, table: str, row: Row) -> None:
        """Insert a row, or replace the one with its id."""
        names = ", ".join(f'"{name}"' for name in row)
        marks = ", ".join("?" * len(row))
        sets = ", ".join(f'"{name}" = excluded."{name}"' for name in row if name != "id")
        sql = (  # not INSERT OR REPLACE, which would not tell the triggers what it replaced
            f'INSERT INTO "{table}" ({names}) VALUES ({marks}) '  # noqa: S608 - a schema's names
            f"ON CONFLICT (id) DO UPDATE SET {sets}"
        )
        self._connection.execute(sql, tuple(row.values()))

    def add(self, table: str, row: Row, *key: str) -> str:
        """Insert a row under an id that follows from the seed and its `key`; return the id."""
        new = self.mint(table, *(key or ("new",)))
        self.put(table, {"id": new, **row})
        return new

    def update(self, table: str, key: str, values: Row) -> None:
        """Change columns of one row."""
        sets = ", ".join(f'"{name}" = ?' for name in values)
        sql = f'UPDATE "{table}" SET {sets} WHERE id = ?'  # noqa: S608 - a schema's names
        self._connection.execute(sql, (*values.values(), key))

    def delete(self, table: str, key: str) -> None:
        """Remove one row."""
        self._connection.execute(f'DELETE FROM "{table}" WHERE id = ?', (key,))  # noqa: S608 - a schema's name

    def mint(self, table: str, *key: str) -> str:
        """An unused id that depends on the seed and the key, not on what was minted before."""
        number = 0
        while True:
            new = mint(self.schema.table[table].prefix, self.get("seed"), table, *key, number)
            if self.row(table, new) is None:
                return new
            number += 1

    @property
    def now(self) -> str:
        """The virtual time, in UTC."""
        return self.get("now")

    def advance(self, seconds: int) -> None:
        """Let virtual time pass."""
        at = datetime.fromisoformat(self.now) + timedelta(seconds=seconds)
        self.set("now", at.isoformat().replace("+00:00", "Z"))

    def get(self, name: str, default: str = "") -> str:
        """A note that travels with the state."""
        row = self.one("SELECT value FROM _meta WHERE name = ?", name)
        return default if row is None else str(row["value"])

    def set(self, name: str, value: str) -> None:
        """Keep a note with the state."""
        self._connection.execute("INSERT OR REPLACE INTO _meta VALUES (?, ?)", (name, value))

    def count(self, name: str) -> None:
        """Add one to a note that is a number."""
        self.set(name, str(int(self.get(name, "0")) + 1))

    def mark_read(self, table: str, key: str) -> None:
        """Note that the agent was shown this row."""
        self._connection.execute("INSERT OR IGNORE INTO _reads VALUES (?, ?)", (table, key))

    @property
    def reads(self) -> tuple[str, ...]:
        """The rows that the agent was shown, as `table:id`."""
        return tuple(f"{row['tbl']}:{row['id']}" for row in self.all("SELECT * FROM _reads"))

    def hear(self, text: str) -> None:
        """Note what the agent said to a user."""
        self._connection.execute("INSERT INTO _said (text) VALUES (?)", (text,))

    @property
    def said(self) -> tuple[str, ...]:
        """What the agent said, in order."""
        return tuple(row["text"] for row in self.all("SELECT text FROM _said ORDER BY seq"))

    def begin(self) -> None:
        """Forget the journal: the episode starts here."""
        self._connection.execute("DELETE FROM _journal")

    @contextmanager
    def unjournaled(self) -> Iterator[None]:
        """Write as the world, not as the agent: rows first touched inside stay out of the diff."""
        top = self.one("SELECT max(seq) AS top FROM _journal")
        yield
        self._connection.execute(
            "DELETE FROM _journal WHERE seq > ?", ((top["top"] if top else None) or 0,)
        )

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """All or nothing: an error inside leaves the state as it was."""
        self._connection.execute("SAVEPOINT call")
        try:
            yield
        except BaseException:
            self._connection.execute("ROLLBACK TO call")
            raise
        finally:
            self._connection.execute("RELEASE call")

    def changes(self) -> tuple[Change, ...]:
        """What differs from the beginning, at the cost of the rows that were touched."""
        found = (
            self._change(entry["tbl"], entry["id"], entry["before"])
            for entry in self.all("SELECT tbl, id, before FROM _journal ORDER BY tbl, id")
        )
        return tuple(change for change in found if change is not None)

    def _change(self, table: str, key: str, before_json: str | None) -> Change | None:
        before = None if before_json is None else json.loads(before_json)
        after = self.row(table, key)
        if before is None:
            return None if after is None else Change(table=table, id=key, op="insert", after=after)
        if after is None:
            return Change(table=table, id=key, op="delete", before=before)
        names = [name for name in after if after[name] != before[name]]
        if not names:
            return None
        return Change(
            table=table,
            id=key,
            op="update",
            before={name: before[name] for name in names},
            after={name: after[name] for name in names},
        )


def _connect() -> sqlite3.Connection:
    return sqlite3.connect(
        ":memory:", isolation_level=None, check_same_thread=False, cached_statements=256
    )


def _as_dict(cursor: sqlite3.Cursor, values: tuple[Any, ...]) -> dict[str, Any]:
    return {column[0]: value for column, value in zip(cursor.description, values, strict=True)}
