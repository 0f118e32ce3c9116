"""What a world's tables are, and how two values of a column are compared."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from gymsuite.errors import DefinitionError
from gymsuite.worlds.addresses import addresses

Cell = str | int | None
"""What a column holds. There are no floats: money is in cents, time is text."""

Kind = Literal["exact", "casefold", "cents", "time", "set", "addresses", "text", "derived"]
"""How a column is compared.

exact: equal. casefold: equal but for case and white space. cents: equal whole numbers.
time: of the virtual clock, so it depends on how many calls came before: not compared.
set: a JSON list whose order does not matter. addresses: of mail; case, order and the names beside
them do not matter, and a mine goes off at any other address of its mailbox, too.
text: free words, which only have to be there, or to contain what a task asks for.
derived: follows from the rest: not compared.
"""

IGNORED: tuple[Kind, ...] = ("time", "derived")


@dataclass(frozen=True)
class Column:
    """One column. `ref` names the table whose id it holds."""

    name: str
    kind: Kind = "exact"
    ref: str = ""

    @property
    def compared(self) -> bool:
        """Whether a difference in it is a difference at all."""
        return self.kind not in IGNORED


@dataclass(frozen=True)
class Table:
    """One table. Its key is `id`, minted with `prefix`, and never compared for new rows.

    `natural` columns say which new row is meant, whatever its id; without them new rows are
    matched to the expected ones at the least total difference. Rows of an `audit` table may come
    and go: they are never collateral damage.
    """

    name: str
    prefix: str
    columns: tuple[Column, ...]
    natural: tuple[str, ...] = ()
    audit: bool = False

    @cached_property
    def column(self) -> Mapping[str, Column]:
        """The columns by name, the key left out."""
        return {column.name: column for column in self.columns}

    @property
    def ddl(self) -> str:
        """The table and the triggers that keep the journal."""
        columns = ", ".join(f'"{c.name}" {_storage(c)}' for c in self.columns)
        old = ", ".join(f"'{name}', OLD.\"{name}\"" for name in ("id", *self.column))
        name = self.name
        return f"""
        CREATE TABLE "{name}" (id TEXT PRIMARY KEY, {columns}) WITHOUT ROWID;
        CREATE TRIGGER "_{name}_i" AFTER INSERT ON "{name}" BEGIN
            {_log(name, "NEW.id", "NULL")}; END;
        CREATE TRIGGER "_{name}_u" AFTER UPDATE ON "{name}" BEGIN
            {_log(name, "OLD.id", f"json_object({old})")}; END;
        CREATE TRIGGER "_{name}_d" AFTER DELETE ON "{name}" BEGIN
            {_log(name, "OLD.id", f"json_object({old})")}; END;
        """


@dataclass(frozen=True)
class Schema:
    """The tables of a world, those that others refer to first."""

    tables: tuple[Table, ...]

    def __post_init__(self) -> None:
        known: set[str] = set()
        for table in self.tables:
            known.add(table.name)
            for column in table.columns:
                if column.ref and column.ref not in known:
                    raise DefinitionError(
                        f"{table.name}.{column.name} refers to {column.ref!r}, which does not "
                        "come before it; list the tables that others refer to first"
                    )
            if missing := set(table.natural) - set(table.column):
                raise DefinitionError(f"{table.name}: no natural key column {min(missing)!r}")

    @cached_property
    def table(self) -> Mapping[str, Table]:
        """The tables by name."""
        return {table.name: table for table in self.tables}

    @cached_property
    def ddl(self) -> str:
        """All of it, with the tables that a state keeps for itself."""
        own = """
        CREATE TABLE _journal (
            seq INTEGER PRIMARY KEY, tbl TEXT NOT NULL, id TEXT NOT NULL, before TEXT,
            UNIQUE (tbl, id));
        CREATE TABLE _meta (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
        CREATE TABLE _reads (tbl TEXT, id TEXT, PRIMARY KEY (tbl, id)) WITHOUT ROWID;
        CREATE TABLE _said (seq INTEGER PRIMARY KEY, text TEXT NOT NULL);
        """
        return own + "".join(table.ddl for table in self.tables)


def _log(table: str, key: str, before: str) -> str:
    """Notes a row when it is first touched.

    Not by INSERT OR IGNORE: in a trigger the conflict clause of the outer statement would win.
    """
    return f"""
        INSERT INTO _journal (tbl, id, before) SELECT '{table}', {key}, {before}
        WHERE NOT EXISTS (SELECT 1 FROM _journal WHERE tbl = '{table}' AND id = {key})"""  # noqa: S608 - a schema's names


def _storage(column: Column) -> str:
    if column.kind == "cents":
        name = column.name
        return f'INTEGER CHECK ("{name}" IS NULL OR typeof("{name}") = \'integer\')'
    return ""


def normal(kind: Kind, value: object) -> object:
    """The value in the form in which two of its kind are compared by `==`."""
    form = _FORMS.get(kind)
    return form(value) if form is not None and isinstance(value, str) else value


def _folded(value: str) -> object:
    return " ".join(value.split()).casefold()


def _as_set(value: str) -> object:
    try:
        items = json.loads(value)
    except ValueError:
        return value
    return sorted(map(str, items)) if isinstance(items, list) else value


def _as_addresses(value: str) -> object:
    try:
        return addresses(value)
    except ValueError:
        return _folded(value)


_FORMS: Mapping[Kind, Callable[[str], object]] = {
    "casefold": _folded,
    "set": _as_set,
    "addresses": _as_addresses,
}
