"""Questions over a star: a small tree that becomes words, the right SQL and the naive SQL."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta

from gymsuite.worlds.draws import Draws
from gymsuite.worlds.splits import share

from .stars import UNKNOWN, YEAR, Star
from .wording import WAYS

Shape = str
"""total, by_group, top, at_least, share, change or never: what the question wants."""


@dataclass(frozen=True)
class Question:
    """What is asked. `value` filters the second attribute; the days are all included.

    `days` are those of the year, from 0: the first, the last of a first period, and the last.
    """

    star: Star
    shape: Shape
    measure: str
    group: str
    days: tuple[int, int, int]
    value: str = ""
    number: int = 0

    def sql(self) -> str:
        """The right query: what the notes say is heeded."""
        return self._query(_clean(self.star))

    def naive_sql(self) -> str:
        """The query that takes the data at its face."""
        return self._query(_raw(self.star))

    def half_clean(self) -> Sequence[str]:
        """Queries that heed all notes but one."""
        left_out = ("copies", "void", "case", "unknown")
        return [self._query(_clean(self.star, without=note)) for note in left_out]

    def _query(self, rows: str) -> str:
        measure = _MEASURES[self.measure]
        first, middle, last = self.days
        return _SHAPES[self.shape].format(
            rows=rows,
            group=self.group,
            measure=measure,
            where=self._where(first, last),
            before=self._where(first, middle),
            after=self._where(middle + 1, last),
            number=self.number,
            value=self.value,
        )

    def _where(self, first: int, last: int) -> str:
        test = f"day BETWEEN '{_day(first)}' AND '{_day(last)}'"
        return f"{test} AND second = '{self.value}'" if self.value else test

    def words(self, draws: Draws, split: str) -> str:
        """The question as a person asks it."""
        names = {"first": self.star.first_attribute, "second": self.star.second_attribute}
        measure = _MEASURE_WORDS[self.measure].format(star=self.star)
        first, middle, last = self.days
        of = f" of the {self.star.second_attribute} {self.value}" if self.value else ""
        way = draws.choice(share(split, WAYS[self.shape]))
        text = way.format(
            measure=measure,
            group=names.get(self.group, "month"),
            of=of,
            when=f"from {_day(first)} to {_day(last)}",
            early=f"{_day(first)} to {_day(middle)}",
            late=f"{_day(middle + 1)} to {_day(last)}",
            number=self.number,
            one=self.star.first.rstrip("s"),
            value=self.value,
        )
        return text[:1].upper() + text[1:]


def _day(number: int) -> str:
    return (date(YEAR, 1, 1) + timedelta(number)).isoformat()


_MEASURES: Mapping[str, str] = {
    "count": "COUNT(*)",
    "amount": "COALESCE(SUM(amount), 0)",
    "quantity": "COALESCE(SUM(quantity), 0)",
}
_MEASURE_WORDS: Mapping[str, str] = {
    "count": "the number of {star.fact}",
    "amount": "the sum of {star.amount} of the {star.fact}",
    "quantity": "the sum of {star.quantity} of the {star.fact}",
}


def _clean(star: Star, without: str = "") -> str:
    """The rows with the notes heeded, all but one of them if it is named."""
    distinct = "" if without == "copies" else "DISTINCT"
    kept = "1" if without == "void" else f"f.{star.void} = 0"
    case = "{}" if without == "case" else "lower(trim({}))"
    join = "JOIN" if without == "unknown" else "LEFT JOIN"
    first = case.format(f"a.{star.first_attribute}")
    second = case.format(f"b.{star.second_attribute}")
    return (
        f"SELECT {distinct} f.{star.key} AS key, f.{star.day} AS day, "  # noqa: S608 - a star's names
        f"COALESCE(f.{star.quantity}, 0) AS quantity, f.{star.amount} AS amount, "
        f"COALESCE({first}, '{UNKNOWN}') AS first, {second} AS second, a.name AS name "
        f"FROM {star.fact} f {join} {star.first} a ON a.{star.first_id} = f.{star.first_id} "
        f"JOIN {star.second} b ON b.{star.second_id} = f.{star.second_id} WHERE {kept}"
    )


def _raw(star: Star) -> str:
    """The rows as they are."""
    return (
        f"SELECT f.{star.key} AS key, f.{star.day} AS day, "  # noqa: S608 - a star's names
        f"f.{star.quantity} AS quantity, "
        f"f.{star.amount} AS amount, a.{star.first_attribute} AS first, "
        f"b.{star.second_attribute} AS second, a.name AS name "
        f"FROM {star.fact} f JOIN {star.first} a ON a.{star.first_id} = f.{star.first_id} "
        f"JOIN {star.second} b ON b.{star.second_id} = f.{star.second_id}"
    )


_SHAPES: Mapping[str, str] = {
    "total": "WITH r AS ({rows}) SELECT {measure} AS value FROM r WHERE {where}",
    "by_group": (
        "WITH r AS ({rows}) SELECT {group} AS grp, {measure} AS value FROM r WHERE {where} "
        "GROUP BY {group}"
    ),
    "top": (
        "WITH r AS ({rows}) SELECT {group} AS grp FROM r WHERE {where} GROUP BY {group} "
        "ORDER BY {measure} DESC, {group} LIMIT {number}"
    ),
    "at_least": (
        "WITH r AS ({rows}) SELECT {group} AS grp, {measure} AS value FROM r WHERE {where} "
        "GROUP BY {group} HAVING {measure} >= {number}"
    ),
    "share": (
        "WITH r AS ({rows}), t AS (SELECT {measure} AS all_of_it FROM r WHERE {where}) "
        "SELECT {group} AS grp, 100 * {measure} / (SELECT all_of_it FROM t) AS percent "
        "FROM r WHERE {where} GROUP BY {group}"
    ),
    "change": (
        "WITH r AS ({rows}), "
        "x AS (SELECT {group} AS grp, {measure} AS value FROM r WHERE {before} GROUP BY {group}), "
        "y AS (SELECT {group} AS grp, {measure} AS value FROM r WHERE {after} GROUP BY {group}) "
        "SELECT g.grp, COALESCE(y.value, 0) - COALESCE(x.value, 0) AS change "
        "FROM (SELECT grp FROM x UNION SELECT grp FROM y) g "
        "LEFT JOIN x ON x.grp = g.grp LEFT JOIN y ON y.grp = g.grp"
    ),
    "never": (
        "WITH r AS ({rows}) SELECT DISTINCT name FROM r WHERE name IS NOT NULL AND name NOT IN "
        "(SELECT name FROM r WHERE name IS NOT NULL AND {where}) ORDER BY name"
    ),
}
_NOTES = """\
- A {star.key} may be stored more than once; its copies are equal, and it counts once.
- Rows of {star.fact} with {star.void} = 1 are void and never count.
- Values of {star.first_attribute} and {star.second_attribute} that differ in case or in white \
space around them are the same; they are shown in lower case, trimmed.
- A missing {star.quantity} counts as 0.
- Rows without a known {star.first_id} count, as {star.first_attribute} {unknown}.
- Amounts are in cents. All days are of one year."""


def notes(star: Star) -> str:
    """What has to be known about the data."""
    return _NOTES.format(star=star, unknown=UNKNOWN)
