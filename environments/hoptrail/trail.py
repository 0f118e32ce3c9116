"""What proves an answer: the pages that state its facts, and a query that finds each of them."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from decimal import Decimal

from gymsuite.verify.qa_typed import DateGold, Gold, NumberGold, TextGold

from .pages import fact_page, page_id, surface
from .relations import LEADER_QUERY, RELATIONS
from .world import Entity, World


@dataclass
class Trail:
    """Pages in the order in which one would find them, with the query for each."""

    steps: list[tuple[str, str]] = field(default_factory=list)

    def add(self, query: str, page: str) -> None:
        """Note a page, once."""
        if page not in self.pages:
            self.steps.append((query, page))

    @property
    def pages(self) -> list[str]:
        """The pages alone."""
        return [page for _, page in self.steps]


@dataclass(frozen=True)
class Known:
    """An entity, and the name by which it is known so far."""

    entity: Entity
    name: str

    @staticmethod
    def by_mention(entity: Entity) -> "Known":
        """Known by its full name."""
        return Known(entity, entity.mention)

    @property
    def by_alias(self) -> bool:
        """Whether its full name is yet to be learned."""
        return self.name == self.entity.alias


def follow(world: World, known: Known, relation: str, trail: Trail) -> Known | str:
    """Take one step: note the pages that it needs, and return what is at its end."""
    key = known.entity.key
    page = fact_page(world, key, relation)
    find(known, page, RELATIONS[relation].query, trail)
    value = world.facts[key, relation]
    entity = world.entities.get(value)
    return value if entity is None else Known(entity, surface(world, key, relation))


def find(known: Known, page: str, words: str, trail: Trail) -> None:
    """Note a page of an entity; only its main page knows its other name."""
    main = page_id(known.entity.key, "main")
    if known.by_alias and page != main:
        trail.add(f"{known.name} {known.entity.kind}", main)
        known = Known.by_mention(known.entity)
    trail.add(f"{known.name} {words}", page)


def leader(world: World, org: Known, year: int, trail: Trail) -> Known | None:
    """Who led an organisation in a year; None in a year when the lead changed hands."""
    find(org, page_id(org.entity.key, "leaders"), LEADER_QUERY, trail)
    for term in world.terms[org.entity.key]:
        if term.first < year < term.last:
            return Known.by_mention(world.entities[term.person])
    return None


def walk(world: World, start: Known, relations: Sequence[str], trail: Trail) -> Known | str:
    """Take several steps; all but the last lead to entities."""
    at: Known | str = start
    for relation in relations:
        if isinstance(at, str):
            raise TypeError(f"{at!r} is the end of a path, but {relation!r} is yet to come")
        at = follow(world, at, relation, trail)
    return at


def spellings(entity: Entity) -> tuple[str, ...]:
    """All that an entity may be called in an answer."""
    return tuple(dict.fromkeys((entity.name, entity.title, entity.mention, entity.alias)))


def gold_of(value: Known | str, relation: str) -> Gold:
    """The typed answer at the end of a path whose last step is `relation`."""
    if isinstance(value, Known):
        return TextGold(answers=spellings(value.entity))
    match RELATIONS[relation].value:
        case "year":
            return DateGold(value=value)
        case "number":
            return NumberGold(value=Decimal(value), unit="square kilometres")
        case _:
            return TextGold(answers=(value,))


def said_by(gold: Gold) -> Iterator[str]:
    """Every text whose presence on a page would give the answer away."""
    match gold:
        case TextGold():
            yield from gold.answers
        case DateGold():
            yield gold.value
        case NumberGold():
            yield f"{gold.value:f}"
