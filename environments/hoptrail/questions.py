"""The kinds of question, each with its typed answer and the pages that prove it."""

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import NamedTuple

from gymsuite.verify.qa_typed import Gold, NumberGold, TextGold

from .relations import RELATIONS
from .trail import Known, Trail, find, follow, gold_of, leader, spellings, walk
from .world import KINDS, Atlas, Entity, World

_ALIAS_ANCHOR_CHANCE = 0.3
_FEWEST, _MOST = 2, 6


class Question(NamedTuple):
    """A question; `anchors` are the names in it, `cut` the pages from which on it has no answer."""

    kind: str
    text: str
    gold: Gold
    trail: Trail
    anchors: tuple[str, ...]
    hops: int
    cut: int = 0


@dataclass(frozen=True)
class Asker:
    """Draws questions about one world, in the wording of its split."""

    atlas: Atlas
    rng: random.Random
    anchors: list[str] = field(default_factory=list)

    @property
    def world(self) -> World:
        """The world that is asked about."""
        return self.atlas.world

    def start(self, entity: Entity) -> Known:
        """An entity to begin with, by its full name or another."""
        name = entity.alias if self.rng.random() < _ALIAS_ANCHOR_CHANCE else entity.mention
        self.anchors.append(name)
        return Known(entity, name)

    def phrase(self, name: str, relations: Sequence[str]) -> str:
        """A noun phrase for what is at the end of a path."""
        for relation in relations:
            known = RELATIONS[relation]
            ways = (known.asked_ood,) if self.world.split == "ood" else known.asked
            name = self.rng.choice(ways).format(x=name)
        return name

    def any_of(self, kind: str) -> Entity:
        """Any entity of a kind."""
        return self.rng.choice(self.atlas.by_kind[kind])

    def path(self, kind: str, length: int, end: str | None = None) -> list[str] | None:
        """Relations from a kind of entity to an end of some kind, or to any end."""
        relations: list[str] = []
        for step in range(length):
            last = step == length - 1
            options = [
                name
                for name, relation in RELATIONS.items()
                if relation.subject == kind
                and name not in relations
                and (last or relation.value in _OPEN)
                and (not last or end is None or relation.value == end)
            ]
            if not options:
                return None
            if last and end is None:
                closed = [name for name in options if RELATIONS[name].value not in _OPEN]
                options = closed if closed and self.rng.random() < _CLOSED_CHANCE else options
            relations.append(self.rng.choice(options))
            kind = RELATIONS[relations[-1]].value
        return relations


_OPEN = ("person", "town", "org", "region")
_CLOSED_CHANCE = 0.5


def _path_to(asker: Asker, end: str | None, length: int) -> tuple[Known, list[str]] | None:
    kind = asker.rng.choice(KINDS)
    relations = asker.path(kind, length, end)
    return None if relations is None else (asker.start(asker.any_of(kind)), relations)


def _asked(asker: Asker, known: Known, relations: Sequence[str]) -> str:
    return asker.phrase(known.name, relations)


def bridge(asker: Asker, hops: int) -> Question | None:
    """What is the R of the S of X?"""
    drawn = _path_to(asker, None, hops)
    if drawn is None:
        return None
    known, relations = drawn
    trail, cut = Trail(), 0
    at: Known | str = known
    seen = {known.entity.key}
    for number, relation in enumerate(relations):
        if isinstance(at, str):
            return None
        if number == hops - 1:
            cut = len(trail.steps)
        at = follow(asker.world, at, relation, trail)
        if isinstance(at, Known):
            if at.entity.key in seen:
                return None
            seen.add(at.entity.key)
    what = _asked(asker, known, relations)
    word = "Who" if RELATIONS[relations[-1]].value == "person" else "What"
    return Question(
        "bridge", f"{word} is {what}?", gold_of(at, relations[-1]), trail,
        tuple(asker.anchors), hops, cut,
    )  # fmt: skip


class _Comparable(NamedTuple):
    kind: str
    relation: str
    earlier: str
    later: str


_COMPARABLE = (
    _Comparable("town", "charter", "received its town rights earlier", "became a town later"),
    _Comparable("person", "birth", "was born first", "was born later"),
    _Comparable("org", "opened", "began its work earlier", "was the later to begin its work"),
    _Comparable("region", "area", "is smaller in area", "is larger in area"),
)


def comparison(asker: Asker, hops: int) -> Question | None:
    """Which of two, each at the end of a path, is the earlier or the greater?"""
    what = asker.rng.choice(_COMPARABLE)
    trail = Trail()
    ends: list[tuple[Known, int]] = []
    phrases: list[str] = []
    for _ in range(2):
        drawn = _path_to(asker, what.kind, max(2, hops - 1))
        if drawn is None:
            return None
        end = walk(asker.world, *drawn, trail)
        if isinstance(end, str):
            return None
        value = follow(asker.world, end, what.relation, trail)
        ends.append((end, int(str(value))))
        phrases.append(_asked(asker, *drawn))
    (one, first), (two, second) = ends
    if first == second or one.entity.name == two.entity.name:
        return None
    wants_less = asker.rng.random() < 0.5  # noqa: PLR2004 - a coin
    winner = one if (first < second) == wants_less else two
    text = (
        f"Which {'of them ' if what.kind == 'person' else ''}"
        f"{what.earlier if wants_less else what.later}: {phrases[0]}, or {phrases[1]}? "
        "Give its name."
    )
    gold = TextGold(answers=spellings(winner.entity))
    return Question("comparison", text, gold, trail, tuple(asker.anchors), max(2, hops - 1) + 1)


def _writer(asker: Asker, hops: int, trail: Trail) -> tuple[Entity, str, list[str]] | None:
    """Someone at the end of a path who has written several books, with the books' keys."""
    drawn = _path_to(asker, "person", hops)
    if drawn is None:
        return None
    end = walk(asker.world, *drawn, trail)
    if isinstance(end, str):
        return None
    works = asker.atlas.works.get(end.entity.key, [])
    if not _FEWEST <= len(works) <= _MOST:
        return None
    if end.by_alias:
        find(end, f"{end.entity.key}/main", end.entity.kind, trail)
    for key in works:
        trail.add(f"{end.entity.mention} book", f"{key}/main")
    return end.entity, _asked(asker, *drawn), works


def count(asker: Asker, hops: int) -> Question | None:
    """How many books has the one at the end of a path written?"""
    trail = Trail()
    found = _writer(asker, hops, trail)
    if found is None:
        return None
    _, phrase, works = found
    text = f"How many books in this encyclopaedia were written by {phrase}?"
    gold = NumberGold(value=Decimal(len(works)), unit="books")
    return Question("count", text, gold, trail, tuple(asker.anchors), hops + 1)


def superlative(asker: Asker, hops: int) -> Question | None:
    """Which of the books of the one at the end of a path came last, or first?"""
    trail = Trail()
    found = _writer(asker, hops, trail)
    if found is None:
        return None
    _, phrase, works = found
    years = {key: int(asker.world.facts[key, "published"]) for key in works}
    if len(set(years.values())) < len(works):
        return None
    last = asker.rng.random() < 0.5  # noqa: PLR2004 - a coin
    key = (max if last else min)(works, key=years.__getitem__)
    text = f"Of the books written by {phrase}, which was published {'last' if last else 'first'}?"
    gold = TextGold(answers=spellings(asker.world.entities[key]))
    return Question("superlative", text, gold, trail, tuple(asker.anchors), hops + 1)


def intersection(asker: Asker, hops: int) -> Question | None:
    """Who was born in the one place and works for the other?"""
    world, trail = asker.world, Trail()
    drawn = (_path_to(asker, "town", max(1, hops - 2)), _path_to(asker, "org", max(1, hops - 2)))
    if drawn[0] is None or drawn[1] is None:
        return None
    town, org = (walk(world, *path, trail) for path in drawn if path)
    if isinstance(town, str) or isinstance(org, str):
        return None
    both = asker.atlas.born_and_employed.get((town.entity.key, org.entity.key), [])
    if len(both) != 1:
        return None
    for known in (town, org):
        if known.by_alias:
            find(known, f"{known.entity.key}/main", known.entity.kind, trail)
    person = both[0]
    trail.add(f"{person.mention} born in {town.entity.mention}", f"{person.key}/main")
    trail.add(f"{person.mention} staff of {org.entity.mention}", f"{person.key}/notes")
    where, who = (_asked(asker, *path) for path in drawn if path)
    text = f"Who was born in {where} and is employed by {who}?"
    gold = TextGold(answers=spellings(person))
    return Question("intersection", text, gold, trail, tuple(asker.anchors), hops)


def temporal(asker: Asker, hops: int) -> Question | None:
    """Who led an organisation in the year of something else?"""
    world, trail = asker.world, Trail()
    drawn = _path_to(asker, "org", max(1, hops - 2))
    if drawn is None:
        return None
    org = walk(world, *drawn, trail)
    if isinstance(org, str):
        return None
    kind, relation, happened = asker.rng.choice(
        (("event", "held", "{x} was held"), ("work", "published", "{x} was published"))
    )
    moment = asker.start(asker.any_of(kind))
    year = int(str(follow(world, moment, relation, trail)))
    who = leader(world, org, year, trail)
    if who is None:
        return None
    text = f"Who led {_asked(asker, *drawn)} in the year when {happened.format(x=moment.name)}?"
    gold = TextGold(answers=spellings(who.entity))
    return Question("temporal", text, gold, trail, tuple(asker.anchors), max(2, hops))


ASKED: Mapping[str, Callable[[Asker, int], Question | None]] = {
    "bridge": bridge,
    "comparison": comparison,
    "count": count,
    "superlative": superlative,
    "intersection": intersection,
    "temporal": temporal,
}
