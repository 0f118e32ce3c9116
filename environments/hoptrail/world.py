"""An invented world: who there is, and what is true of them."""

import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from gymsuite.search.invented import Words

from .relations import RELATIONS

PROFESSIONS = (
    "botanist", "surveyor", "poet", "clockmaker", "physician", "engraver", "jurist", "composer",
    "cartographer", "chemist", "bookbinder", "astronomer",
)  # fmt: skip
KINDS = ("person", "town", "org", "work", "event", "region")
_ORG_KINDS = ("Institute", "Foundry", "Guild", "Observatory", "Press", "Archive")
_WORK_KINDS = ("Chronicle", "Ballad", "Atlas", "Letters", "Herbal", "Diary")
_EVENT_KINDS = ("Congress", "Fair", "Regatta", "Exhibition", "Festival")
_THINGS = {"medal": "Medal", "river": "River"}
_RECENT = (1920, 2015)
_RANGES = {"area": (1200, 98000), "charter": (1105, 1695), "birth": (1890, 1985),
           "opened": (1701, 1899)}  # fmt: skip
_ALIAS_CHANCE = 0.3
_TWIN_CHANCE = 0.25


class Entity(NamedTuple):
    """Someone or something with a page. `label` tells namesakes apart; `alias` is another name."""

    key: str
    kind: str
    name: str
    alias: str
    label: str = ""

    @property
    def title(self) -> str:
        """The heading of its page."""
        return f"{self.name} ({self.label})" if self.label else self.name

    @property
    def mention(self) -> str:
        """How others write of it."""
        return f"the {self.label} {self.name}" if self.label else self.name


class Term(NamedTuple):
    """Someone at the head of an organisation, from one year to another."""

    person: str
    first: int
    last: int


class Size(NamedTuple):
    """How many of each kind a world has."""

    people: int
    towns: int
    orgs: int
    works: int
    events: int
    regions: int


@dataclass
class World:
    """Entities by key; facts by (entity, relation); which facts name their value by its alias.

    Values are keys of entities, or literals for the kinds "year", "number" and "thing".
    """

    split: str
    entities: dict[str, Entity] = field(default_factory=dict)
    facts: dict[tuple[str, str], str] = field(default_factory=dict)
    aliased: set[tuple[str, str]] = field(default_factory=set)
    terms: dict[str, tuple[Term, ...]] = field(default_factory=dict)
    former_mayors: dict[str, tuple[tuple[int, str], ...]] = field(default_factory=dict)
    register_year: dict[str, int] = field(default_factory=dict)

    def of_kind(self, kind: str) -> list[Entity]:
        """The entities of one kind, in their order."""
        return [entity for entity in self.entities.values() if entity.kind == kind]

    def inverse(self, relation: str) -> Mapping[str, list[str]]:
        """For each value of a relation its subjects, in their order."""
        found: dict[str, list[str]] = {}
        for (subject, name), value in self.facts.items():
            if name == relation:
                found.setdefault(value, []).append(subject)
        return found


@dataclass(frozen=True)
class Atlas:
    """A finished world, and what one looks up in it again and again."""

    world: World
    by_kind: Mapping[str, list[Entity]]
    works: Mapping[str, list[str]]
    born_and_employed: Mapping[tuple[str, str], list[Entity]]

    @staticmethod
    def of(world: World) -> "Atlas":
        """Sort a world's entities and facts."""
        both: dict[tuple[str, str], list[Entity]] = {}
        for person in world.of_kind("person"):
            key = (world.facts[person.key, "birthplace"], world.facts[person.key, "employer"])
            both.setdefault(key, []).append(person)
        kinds = {kind: world.of_kind(kind) for kind in KINDS}
        return Atlas(world, kinds, world.inverse("author"), both)


def make_world(split: str, size: Size, words: Words, rng: random.Random) -> World:
    """Invent a world; the same from the same state of `words` and `rng`."""
    world = World(split)
    for entity in _invent(split, size, words, rng):
        world.entities[entity.key] = entity
    _state_facts(world, words, rng)
    _appoint(world, rng)
    return world


def _invent(split: str, size: Size, words: Words, rng: random.Random) -> Iterator[Entity]:
    firsts = [words.draw(2) for _ in range(40)]
    name = ""
    for n in range(size.people):
        # A namesake of the one before, in another profession.
        name = name if n % 2 and rng.random() < _TWIN_CHANCE else _person(firsts, words, rng)
        label = PROFESSIONS[n % len(PROFESSIONS)]
        yield Entity(f"{split}/p{n}", "person", name, words.draw(3), label)
    root = ""
    for n in range(size.towns):
        if n % 2 and rng.random() < _TWIN_CHANCE:
            town = f"Lower {root}"
        else:
            root = words.draw(3)
            town = f"Upper {root}" if rng.random() < _TWIN_CHANCE else root
        yield Entity(f"{split}/t{n}", "town", town, words.draw(3))
    for kind, count, nouns in (
        ("org", size.orgs, _ORG_KINDS),
        ("work", size.works, _WORK_KINDS),
        ("event", size.events, _EVENT_KINDS),
        ("region", size.regions, ("Province",)),
    ):
        for n in range(count):
            noun = rng.choice(nouns)
            yield Entity(
                f"{split}/{kind[0]}{n}", kind, f"the {words.draw(3)} {noun}", words.draw(3)
            )


def _person(firsts: list[str], words: Words, rng: random.Random) -> str:
    return f"{rng.choice(firsts)} {words.draw(2)}"


def _state_facts(world: World, words: Words, rng: random.Random) -> None:
    keys = {kind: [e.key for e in world.of_kind(kind)] for kind in KINDS}
    authors = keys["person"][: len(keys["person"]) // 3]
    for entity in world.entities.values():
        for name, relation in RELATIONS.items():
            if relation.subject != entity.kind:
                continue
            fact = (entity.key, name)
            if relation.value in keys:
                pool = authors if name == "author" else keys[relation.value]
                value = rng.choice(pool)
                while value == entity.key:
                    value = rng.choice(pool)
                if name not in _BY_NAME and rng.random() < _ALIAS_CHANCE:
                    world.aliased.add(fact)
            else:
                value = _literal(name, words, rng)
            world.facts[fact] = value


_BY_NAME = ("author", "birthplace", "employer")
"""Facts that always use the full name: questions look these up from the other side."""


def _literal(name: str, words: Words, rng: random.Random) -> str:
    if name in _THINGS:
        return f"{words.draw(3)} {_THINGS[name]}"
    return str(rng.randint(*_RANGES.get(name, _RECENT)))


def _appoint(world: World, rng: random.Random) -> None:
    people = [person.key for person in world.of_kind("person")]
    for org in world.of_kind("org"):
        a, b, c = sorted(rng.sample(range(1925, 2005), 3))
        bounds = ((1910, a), (a, b), (b, c), (c, 2020))
        leaders = rng.sample(people, len(bounds))
        world.terms[org.key] = tuple(
            Term(person, *years) for person, years in zip(leaders, bounds, strict=True)
        )
    for town in world.of_kind("town"):
        first, second, latest = sorted(rng.sample(range(1961, 2018), 3))
        others = [p for p in rng.sample(people, 3) if p != world.facts[town.key, "mayor"]]
        world.former_mayors[town.key] = ((first, others[0]), (second, others[1]))
        world.register_year[town.key] = latest
