"""Star schemas with dirt in them: a fact table, two dimensions, and what the notes have to say."""

import sqlite3
from dataclasses import dataclass
from datetime import date, timedelta
from functools import lru_cache

from gymsuite.worlds.draws import Draws
from gymsuite.worlds.splits import share

_FACTS = 220
YEAR = 2031
UNKNOWN = "(unknown)"


@dataclass(frozen=True)
class Star:
    """The names of one schema: a fact with a key, two dimensions with an attribute each."""

    fact: str
    key: str
    first: str
    first_attribute: str
    second: str
    second_attribute: str
    day: str
    amount: str
    quantity: str
    void: str

    @property
    def first_id(self) -> str:
        """The column that refers to the first dimension."""
        return f"{self.first.rstrip('s')}_id"

    @property
    def second_id(self) -> str:
        """The column that refers to the second dimension."""
        return f"{self.second.rstrip('s')}_id"


def _star(text: str) -> Star:
    return Star(*text.split())


STARS = tuple(
    map(
        _star,
        (
            "sales receipt stores region products category sold_on amount_cents units voided",
            "tickets ticket agents team queues topic closed_on cost_cents minutes spam",
            "repairs job garages district parts family done_on price_cents pieces cancelled",
            "trips ride drivers fleet zones area ended_on fare_cents metres aborted",
            "lessons session teachers school subjects field held_on fee_cents hours dropped",
            "meals bill waiters hall dishes course served_on total_cents portions returned",
            "shipments parcel carriers network goods class sent_on freight_cents grams lost",
            "readings sample sites basin sensors kind taken_on cost_cents pulses faulty",
        ),
    )
)
_NAMES = """
amber basalt cedar dune ember fjord grove harbor iris jade kelp lagoon maple north onyx
pine quartz river slate tundra umber vale willow yarrow alpine birch coral delta east
flint glade heath inlet juniper knoll lunar meadow nova oak prairie quill ridge stone
terra upland vista west zephyr
"""
_WORDS = tuple(_NAMES.split())


@dataclass(frozen=True)
class Place:
    """Which database: a split's world, the copy (0 is the visible one), and whether it is dirty."""

    split: str
    world: int
    copy: int
    dirty: bool


def star_of(split: str, world: int) -> Star:
    """The schema of a world."""
    stars = share(split, STARS)
    return stars[world % len(stars)]


def attributes(split: str, world: int, which: str) -> tuple[str, ...]:
    """The four values that an attribute of a world has."""
    draws = Draws("tables-v1", split, world, which)
    return tuple(draws.sample(share(split, _WORDS), 4))


@lru_cache(maxsize=256)
def image(place: Place) -> bytes:
    """The database, as the bytes of an SQLite file; a pure function of its place."""
    star = star_of(place.split, place.world)
    draws = Draws("tables-v1", place.split, place.world, place.copy, int(place.dirty))
    connection = sqlite3.connect(":memory:", isolation_level=None)
    try:
        connection.executescript(_ddl(star))
        connection.execute("BEGIN")
        _fill_dimensions(connection, draws, star, place)
        _fill_facts(connection, draws, star, dirty=place.dirty)
        connection.execute("COMMIT")
        return connection.serialize()
    finally:
        connection.close()


def _ddl(star: Star) -> str:
    return f"""
    CREATE TABLE {star.first} ({star.first_id} TEXT PRIMARY KEY, name TEXT,
        {star.first_attribute} TEXT);
    CREATE TABLE {star.second} ({star.second_id} TEXT PRIMARY KEY, name TEXT,
        {star.second_attribute} TEXT);
    CREATE TABLE {star.fact} ({star.key} TEXT, {star.first_id} TEXT, {star.second_id} TEXT,
        {star.day} TEXT, {star.quantity} INTEGER, {star.amount} INTEGER, {star.void} INTEGER);
    """


def _fill_dimensions(
    connection: sqlite3.Connection, draws: Draws, star: Star, place: Place
) -> None:
    for table, which, count in ((star.first, "first", 8), (star.second, "second", 10)):
        values = attributes(place.split, place.world, which)
        names = draws.sample(share(place.split, _WORDS), min(count, 6))
        for number in range(count):
            value = values[number % len(values)]
            if place.dirty and draws.chance(60):
                value = draws.choice((value.upper(), value.title(), f" {value}", f"{value}  "))
            name = f"{names[number % len(names)]} {number + 1}"
            row = (f"{table[0].upper()}{number + 1}", name, value)
            connection.execute(f"INSERT INTO {table} VALUES (?, ?, ?)", row)  # noqa: S608 - a star's name


def _fill_facts(connection: sqlite3.Connection, draws: Draws, star: Star, *, dirty: bool) -> None:
    insert = f"INSERT INTO {star.fact} VALUES (?, ?, ?, ?, ?, ?, ?)"  # noqa: S608 - a star's name
    for number in range(_FACTS):
        first = f"{star.first[0].upper()}{draws.between(1, 8)}"
        second = f"{star.second[0].upper()}{draws.between(1, 10)}"
        day = date(YEAR, 1, 1) + timedelta(draws.below(365))
        quantity: int | None = draws.between(1, 40)
        void = 0
        if dirty:
            first = draws.choice((f"{star.first[0].upper()}99", "")) if draws.chance(6) else first
            quantity = None if draws.chance(6) else quantity
            void = int(draws.chance(9))
        key = f"{star.key[0].upper()}{10_000 + number}"
        amount = draws.between(100, 90_000)
        row = (key, first, second, day.isoformat(), quantity, amount, void)
        for _ in range(draws.between(2, 3) if dirty and draws.chance(12) else 1):
            connection.execute(insert, row)
