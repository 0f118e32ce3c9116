"""Which actual change answers which expected one, whatever ids new rows were given."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from gymsuite.worlds.assignment import assign
from gymsuite.worlds.schema import Column, Schema, Table, normal
from gymsuite.worlds.state import Change


@dataclass(frozen=True)
class Pairing:
    """Expected changes with what answers them, and the actual changes that nobody asked for.

    `new_ids` maps the id of a new actual row to the id of the row it stands for.
    """

    pairs: tuple[tuple[Change, Change | None], ...]
    uncalled: tuple[Change, ...]
    new_ids: Mapping[str, str]


def pair(schema: Schema, expected: Sequence[Change], actual: Sequence[Change]) -> Pairing:
    """Match changes of old rows by id, and new rows by natural key or least total difference."""
    new_ids: dict[str, str] = {}
    by_id = {(c.table, c.id): c for c in actual if c.op != "insert"}
    pairs = [
        (change, by_id.pop((change.table, change.id), None))
        for change in expected
        if change.op != "insert"
    ]
    wanted, given = _new_rows(expected), _new_rows(actual)
    uncalled = list(by_id.values())
    for table in schema.tables:  # a table comes after those it refers to: their ids are known then
        rows = given.get(table.name, [])
        for change, answer in _pair_rows(table, wanted.get(table.name, []), rows, new_ids):
            pairs.append((change, answer))
            if answer is not None:
                new_ids[answer.id] = change.id
                rows.remove(answer)
        uncalled += rows
    return Pairing(tuple(pairs), tuple(uncalled), new_ids)


def agrees(column: Column, wanted: object, given: object, new_ids: Mapping[str, str]) -> bool:
    """Whether a value is what was expected of its column."""
    if column.kind == "text":
        return _says(wanted, given)
    if column.ref and isinstance(given, str):
        given = new_ids.get(given, given)
    return normal(column.kind, wanted) == normal(column.kind, given)


def _says(wanted: object, given: object) -> bool:
    """Free text: anything will do, but the words that are asked for are in it."""
    text = given if isinstance(given, str) else ""
    if isinstance(wanted, Mapping):
        folded = " ".join(text.split()).casefold()
        return all(str(words).casefold() in folded for words in wanted.get("contains", ()))
    return bool(text.strip()) or not wanted


def _new_rows(changes: Sequence[Change]) -> dict[str, list[Change]]:
    found: dict[str, list[Change]] = defaultdict(list)
    for change in changes:
        if change.op == "insert":
            found[change.table].append(change)
    return found


def _pair_rows(
    table: Table, wanted: list[Change], given: list[Change], new_ids: Mapping[str, str]
) -> list[tuple[Change, Change | None]]:
    if not wanted:
        return []
    compared = [
        table.column[name]
        for name in (table.natural or table.column)
        if table.column[name].compared
    ]
    costs = [
        [_difference(compared, change, other, new_ids) for other in given]
        + [len(compared)] * len(wanted)
        for change in wanted
    ]
    limit = 0 if table.natural else max(0, len(compared) - 1)
    return [
        (
            change,
            given[column] if column < len(given) and costs[row][column] <= limit else None,
        )
        for row, (change, column) in enumerate(zip(wanted, assign(costs), strict=True))
    ]


def _difference(
    compared: Sequence[Column], wanted: Change, given: Change, new_ids: Mapping[str, str]
) -> int:
    return sum(
        not agrees(column, wanted.after.get(column.name), given.after.get(column.name), new_ids)
        for column in compared
    )
