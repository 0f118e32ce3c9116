"""The encyclopaedia's pages: every fact is stated on one page, among other names and old news.

An entity has a main page with its other name and some facts, and notes with the rest. Towns have
editions of a register, of which only the latest is true today; organisations a list of leaders.
"""

import random
from collections.abc import Iterator

from gymsuite.search import Document

from .relations import LEADERS, RELATIONS
from .world import Entity, World

_FILLERS = (
    "Several letters from that time survive in private hands.",
    "Visitors often remark on the quiet mornings.",
    "The records of the preceding decade are incomplete.",
    "A short account of this appeared in a local almanac.",
    "Scholars disagree about the details.",
    "The weather of that year is described at length elsewhere.",
    "An inventory made later counts forty chairs and a clock that no longer runs.",
    "Of the original drawings only copies are known.",
    "The story is told differently in the south.",
    "A fire destroyed most of the older papers.",
    "Little of this was known before the archive was put in order.",
    "The spelling follows the older custom.",
)
_INTRO = {
    "person": "{title} is a {label}, known to friends as {alias}.",
    "town": "{title} is a town that older maps call {alias}.",
    "org": "{Title} is an organisation; its members say {alias} for short.",
    "work": "{Title} is a book; in the author's notebooks it is called {alias}.",
    "event": "{Title} was a public event, announced on posters as {alias}.",
    "region": "{Title} is a part of the country that its people call {alias}.",
}
_SHORT = {"person": "{last}", "town": "The town", "org": "The organisation", "work": "The book",
          "event": "The event", "region": "The province"}  # fmt: skip


def page_id(key: str, page: str) -> str:
    """The id of an entity's page."""
    return f"{key}/{page}"


def fact_page(world: World, key: str, relation: str) -> str:
    """The id of the one page that states a fact as it stands today."""
    page = RELATIONS[relation].page
    if page == "register":
        page = f"register-{world.register_year[key]}"
    return page_id(key, page)


def pages(world: World, rng: random.Random) -> Iterator[Document]:
    """All pages of a world."""
    for entity in world.entities.values():
        yield _page(entity, "main", [_intro(entity), *_stated(world, entity, "main", rng)], rng)
        notes = [f"More on {entity.mention}.", *_stated(world, entity, "notes", rng)]
        yield _page(entity, "notes", notes, rng)
        if entity.kind == "town":
            yield from _registers(world, entity, rng)
        if entity.kind == "org":
            yield _page(entity, "leaders", _leaders(world, entity, rng), rng)


def _page(entity: Entity, page: str, sentences: list[str], rng: random.Random) -> Document:
    head, *rest = sentences
    body = [*rest, *rng.sample(_FILLERS, 3)]
    rng.shuffle(body)
    heading = {
        "main": "", "notes": "Notes on ", "leaders": "Leaders of ",
    }.get(page, "Register of ")  # fmt: skip
    title = f"{heading}{entity.title}" if heading else _capital(entity.title)
    if heading == "Register of ":
        title += f", edition of {page.rpartition('-')[2]}"
    return Document(id=page_id(entity.key, page), title=title, text=" ".join([head, *body]))


def _intro(entity: Entity) -> str:
    title = entity.name
    return _INTRO[entity.kind].format(
        title=title, Title=_capital(title), label=entity.label, alias=entity.alias
    )


def _stated(world: World, entity: Entity, page: str, rng: random.Random) -> list[str]:
    short = _SHORT[entity.kind].format(last=entity.name.rpartition(" ")[2])
    sentences = [
        _sentence(rng.choice(relation.stated), short, surface(world, entity.key, name))
        for name, relation in RELATIONS.items()
        if relation.subject == entity.kind and relation.page == page
    ]
    rng.shuffle(sentences)
    return sentences


def _sentence(template: str, subject: str, value: str) -> str:
    inside = "t" + subject[1:] if subject.startswith("The ") else subject
    return _capital(template.format(e=inside, v=value))


def surface(world: World, key: str, relation: str) -> str:
    """How a fact's value is written on the page that states it."""
    value = world.facts[key, relation]
    entity = world.entities.get(value)
    if entity is None:
        return value
    return entity.alias if (key, relation) in world.aliased else entity.mention


def _registers(world: World, town: Entity, rng: random.Random) -> Iterator[Document]:
    latest = world.register_year[town.key]
    for year, mayor in (
        *world.former_mayors[town.key],
        (latest, world.facts[town.key, "mayor"]),
    ):
        current = year == latest
        who = surface(world, town.key, "mayor") if current else world.entities[mayor].mention
        lines = [
            f"This is the register of {town.name} as it stood in {year}.",
            f"The mayor is {who}.",
        ]
        yield _page(town, f"register-{year}", lines, rng)


def _leaders(world: World, org: Entity, rng: random.Random) -> list[str]:
    lines = [
        _capital(
            rng.choice(LEADERS).format(
                a=term.first,
                b=term.last,
                v=world.entities[term.person].mention,
                e="the organisation",
            )
        )
        for term in world.terms[org.key]
    ]
    return [f"Those who have led {org.name}.", *lines]


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]
