"""Questions without end, each a pure function of version, split and index."""

import json
import sqlite3
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, replace

from gymsuite.errors import DefinitionError
from gymsuite.types import Task, ToolCall
from gymsuite.worlds.draws import Draws, scatter
from gymsuite.worlds.gold import Ending, Gold
from gymsuite.worlds.sql import Result
from gymsuite.worlds.state import Change

from .questions import Question, notes
from .stars import Place, attributes, image, star_of

VERSION = "1"
LEVELS = 5
COPIES = 5
"""Databases that nobody sees, on which a view has to be right, too."""

VIEW = "report"
_WORLDS = 8
_CLEAN_LEVELS = 2
_ATTEMPTS = 40
_MOST_ROWS = 50
_FIRST_DAYS = 205
_SHORTEST, _LENGTHS = 40, 121
_PERIODS = _FIRST_DAYS * _LENGTHS
_SHAPES: Mapping[int, tuple[str, ...]] = {
    1: ("total",),
    2: ("by_group", "top"),
    3: ("total", "by_group", "top"),
    4: ("top", "at_least", "at_least"),
    5: ("share", "change", "never"),
}
_LISTS = ("top", "never")


def make(split: str, index: int) -> Task:
    """The task of this number; the same on every machine."""
    return _task(*_question(split, index), index)


def naive_query(split: str, index: int) -> str:
    """What the question of this number is if nobody reads the notes."""
    return _question(split, index)[0].naive_sql()


def _question(split: str, index: int) -> tuple[Question, Place, Draws]:
    """The first drawn question that has a result which wrong readings have not."""
    level = 1 + index % LEVELS
    place = Place(split, index // LEVELS % _WORLDS, 0, dirty=level > _CLEAN_LEVELS)
    for attempt in range(_ATTEMPTS):
        draws = Draws("tables-v1", VERSION, split, index, attempt)
        question = _draw(draws, place, level, period_of(split, index, attempt))
        if _tells(question, place):
            return question, place, draws
    raise DefinitionError(f"tables-v1: question {split}-{index} cannot be drawn")


def known_results(sql: str, place: Place, copies: int = COPIES) -> list[Result]:
    """What a query of our own gives: no limits are needed."""
    found = []
    for copy in range(copies + 1):
        with closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
            connection.deserialize(image(replace(place, copy=copy)))
            cursor = connection.execute(sql)
            columns = tuple(column[0] for column in cursor.description)
            found.append(Result(columns, tuple(cursor.fetchall())))
    return found


def period_of(split: str, index: int, attempt: int) -> tuple[int, int]:
    """The first and the last day that a question is about: no two of the first 12,000 share them.

    Where nothing has come of them in half of the attempts, there are others in store.
    """
    spare = _PERIODS // 2 * (2 * attempt // _ATTEMPTS)
    place = scatter(index + spare, _PERIODS, "tables-v1", "periods", split)
    first, length = divmod(place, _LENGTHS)
    return first, first + _SHORTEST + length


def _draw(draws: Draws, place: Place, level: int, period: tuple[int, int]) -> Question:
    shape = draws.choice(_SHAPES[level])
    first, last = period
    middle = draws.between(first + _SHORTEST // 2, last - _SHORTEST // 2)
    value = draws.choice(attributes(place.split, place.world, "second"))
    filtered = shape == "never" or draws.chance(30 if level < 4 else 60)  # noqa: PLR2004 - a level
    group = "first" if filtered or draws.chance(60) else "second"
    question = Question(
        star_of(place.split, place.world),
        shape,
        draws.choice(("count", "amount", "quantity")),
        group,
        (first, middle, last),
        value if filtered else "",
    )
    if shape == "top":
        return replace(question, number=draws.between(2, 3))
    if shape == "at_least":
        return replace(question, number=_threshold(question, place))
    return question


def _threshold(question: Question, place: Place) -> int:
    """A limit that some groups reach and others do not."""
    values = known_results(replace(question, shape="by_group").sql(), place, 0)[0].rows
    ordered = sorted(int(str(row[1])) for row in values)
    return ordered[len(ordered) // 2] if ordered else 1


def _tells(question: Question, place: Place) -> bool:
    """Whether the question has a result, and one that wrong readings do not have."""
    (right,) = known_results(question.sql(), place, 0)
    if not 1 <= len(right.rows) <= _MOST_ROWS or not any(right.rows[0]):
        return False
    if not place.dirty:
        return True
    if _same(question, known_results(question.naive_sql(), place, 0)[0], right):
        return False
    wrong = [known_results(sql, place, 0)[0] for sql in question.half_clean()]
    return sum(not _same(question, one, right) for one in wrong) > 1


def _same(question: Question, one: Result, other: Result) -> bool:
    return equal(one, other, ordered=question.shape in _LISTS)


def equal(one: Result, other: Result, *, ordered: bool) -> bool:
    """Whether two results have the same rows, in the same order if that matters."""
    if len(one.columns) != len(other.columns) or one.cut != other.cut:
        return False
    if ordered:
        return one.rows == other.rows
    return sorted(map(repr, one.rows)) == sorted(map(repr, other.rows))


def _task(question: Question, place: Place, draws: Draws, index: int) -> Task:
    answered = question.shape in ("total", *_LISTS)
    sql = question.sql()
    rows = known_results(sql, place, 0)[0].rows
    value = rows[0][0] if question.shape == "total" else [row[0] for row in rows]
    looks = [
        ToolCall(name="list_tables"),
        ToolCall(name="describe_table", arguments={"table": question.star.fact}),
        ToolCall(name="run_sql", arguments={"sql": sql}),
    ]
    plan = [*looks, *_writes(value, sql, answered=answered)]
    other = [*looks, *_writes(value, _wrapped(sql), answered=answered)]
    return Task(
        id=f"{place.split}-{index}",
        prompt=_prompt(question, draws, place.split, answered=answered),
        split=place.split,
        level=1 + index % LEVELS,
        solution=tuple(plan),
        hidden={
            "place": asdict(place),
            "query": "" if answered else sql,
            "gold": Gold(
                accepted=(Ending(changes=(_change(value, answered=answered),)),)
            ).model_dump(mode="json"),
            "alternatives": [[call.model_dump(mode="json") for call in other]],
        },
        metadata={"family": question.shape, "version": VERSION},
    )


def _wrapped(sql: str) -> str:
    """Another query with the same rows."""
    return f"SELECT * FROM ({sql})"  # noqa: S608 - a query of our own


def _writes(value: object, sql: str, *, answered: bool) -> Sequence[ToolCall]:
    if answered:
        return [ToolCall(name="give_answer", arguments={"value": value})]
    return [ToolCall(name="create_view", arguments={"name": VIEW, "sql": sql})]


def _change(value: object, *, answered: bool) -> Change:
    if answered:
        text = json.dumps(value, ensure_ascii=False)
        return Change(table="answers", id="ANS-1", op="insert", after={"value": text})
    return Change(table="views", id="VIW-1", op="insert", after={"name": VIEW, "query": ""})


def _prompt(question: Question, draws: Draws, split: str, *, answered: bool) -> str:
    words = question.words(draws, split)
    if not answered:
        form = (
            f"Create a view named {VIEW} with two columns: the {_grouped(question)}, and the "
            "value. It is checked on other data of the same form, too."
        )
    elif question.shape == "total":
        form = "Give the answer with give_answer, as a whole number."
    else:
        form = (
            "Give the answer with give_answer, as a list of texts in that order; ties go by name."
        )
    return f"{words}\n\n{form} Leave no other view behind.\n\n# Notes on the data\n\n" + notes(
        question.star
    )


def _grouped(question: Question) -> str:
    star = question.star
    return star.first_attribute if question.group == "first" else star.second_attribute
