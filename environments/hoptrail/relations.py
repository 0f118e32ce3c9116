"""What can be said of whom: the relations of the encyclopaedia and the words for them.

Pages say it in one way and questions in others, so that a question's words do not find the page.
"""

from collections.abc import Mapping
from typing import NamedTuple


class Relation(NamedTuple):
    """One kind of fact.

    `page` is where it is stated ("main" or "notes"), `stated` how, with the subject's short name
    {e} and the value {v}. `asked` and `asked_ood` are noun phrases with the subject {x}. `query`
    is what one would search for.
    """

    subject: str
    value: str
    page: str
    stated: tuple[str, ...]
    asked: tuple[str, ...]
    asked_ood: str
    query: str


RELATIONS: Mapping[str, Relation] = {
    "birthplace": Relation(
        "person", "town", "main",
        ("{e} was born in {v}.", "{e} came into the world in {v}."),
        ("the native town of {x}", "the place where {x} first saw the light of day"),
        "the settlement from which {x} hails", "born",
    ),
    "birth": Relation(
        "person", "year", "main",
        ("{e}'s birth is recorded for {v}.", "The year of {e}'s birth is {v}."),
        ("the birth year of {x}",), "the calendar year that brought {x} to life", "birth year",
    ),
    "employer": Relation(
        "person", "org", "notes",
        ("{e} has been on the staff of {v} for many years.", "{e} draws a salary from {v}."),
        ("the organisation that employs {x}", "the employer of {x}"),
        "the body that {x} works for", "staff salary",
    ),
    "mentor": Relation(
        "person", "person", "notes",
        ("{e} studied under {v}.", "{e} learned the craft from {v}."),
        ("the teacher of {x}", "the mentor of {x}"), "the one who trained {x}", "teacher",
    ),
    "medal": Relation(
        "person", "thing", "notes",
        ("{e} was decorated with the {v}.", "The {v} went to {e}."),
        ("the award that {x} received",), "the honour bestowed on {x}", "decorated medal",
    ),
    "residence": Relation(
        "person", "town", "notes",
        ("{e} lives in {v}.", "{e} keeps a house in {v}."),
        ("the town where {x} resides", "the home town, nowadays, of {x}"),
        "the settlement that {x} calls home today", "lives house",
    ),
    "region": Relation(
        "town", "region", "main",
        ("{e} lies in {v}.", "{e} is one of the market towns of {v}."),
        ("the province to which {x} belongs",), "the administrative area around {x}", "lies in",
    ),
    "charter": Relation(
        "town", "year", "main",
        ("{e} was chartered in {v}.", "The charter of {e} dates from {v}."),
        ("the year in which {x} received its town rights",),
        "the date from which {x} has been a town", "charter",
    ),
    "river": Relation(
        "town", "thing", "notes",
        ("The {v} runs through {e}.", "{e} stands on the banks of the {v}."),
        ("the river that crosses {x}",), "the stream on which {x} is built", "banks runs through",
    ),
    "sister": Relation(
        "town", "town", "notes",
        ("{e} is twinned with {v}.", "A treaty of friendship joins {e} to {v}."),
        ("the sister town of {x}",), "the partner municipality of {x}", "twinned friendship",
    ),
    "seat": Relation(
        "org", "town", "main",
        ("The head office of {e} is in {v}.", "{e} has its main building in {v}."),
        ("the town where {x} is headquartered",), "the settlement out of which {x} is run",
        "head office main building",
    ),
    "founder": Relation(
        "org", "person", "main",
        ("{e} was set up by {v}.", "{e} owes its existence to {v}."),
        ("the founder of {x}", "the person who established {x}"),
        "the one who called {x} into being", "founder",
    ),
    "opened": Relation(
        "org", "year", "notes",
        ("{e} opened its doors in {v}.", "The first working year of {e} was {v}."),
        ("the year in which {x} began its work",), "the date of the inauguration of {x}",
        "opened doors",
    ),
    "author": Relation(
        "work", "person", "main",
        ("{e} was written by {v}.", "The author of {e} is {v}."),
        ("the writer of {x}",), "the pen behind {x}", "written author",
    ),
    "published": Relation(
        "work", "year", "main",
        ("{e} came out in {v}.", "{e} was first printed in {v}."),
        ("the year in which {x} was published",), "the date on which {x} reached the public",
        "printed",
    ),
    "setting": Relation(
        "work", "town", "notes",
        ("{e} plays in {v}.", "The plot of {e} unfolds in {v}."),
        ("the town in which {x} is set",), "the settlement that is the scene of {x}", "plot plays",
    ),
    "publisher": Relation(
        "work", "org", "notes",
        ("{e} was brought out by {v}.", "The rights to {e} are held by {v}."),
        ("the publisher of {x}",), "the house that issued {x}", "publisher",
    ),
    "host": Relation(
        "event", "town", "main",
        ("{e} took place in {v}.", "{e} was celebrated in {v}."),
        ("the town that hosted {x}",), "the settlement in which {x} was staged", "host",
    ),
    "organiser": Relation(
        "event", "org", "notes",
        ("{e} was arranged by {v}.", "{v} paid for and ran {e}."),
        ("the organiser of {x}",), "the body behind {x}", "arranged",
    ),
    "guest": Relation(
        "event", "person", "notes",
        ("The guest of honour at {e} was {v}.", "{v} gave the opening speech at {e}."),
        ("the guest of honour of {x}",), "the most prominent visitor of {x}", "guest speech",
    ),
    "held": Relation(
        "event", "year", "main",
        ("{e} was held in {v}.", "{e} fell in {v}."),
        ("the year of {x}",), "the date of {x}", "held",
    ),
    "capital": Relation(
        "region", "town", "main",
        ("{e} is governed from {v}.", "The administration of {e} sits in {v}."),
        ("the capital of {x}",), "the first town of {x}", "governed administration",
    ),
    "governor": Relation(
        "region", "person", "notes",
        ("{e} is administered by {v}.", "{v} holds the governorship of {e}."),
        ("the governor of {x}",), "the highest official of {x}", "administered",
    ),
    "area": Relation(
        "region", "number", "notes",
        ("{e} covers {v} square kilometres.", "The surface of {e} measures {v} square kilometres."),
        ("the size of {x} in km2",), "the extent of {x} in km2",
        "square kilometres",
    ),
    "mayor": Relation(
        "town", "person", "register",
        ("The mayor of {e} is {v}.",),
        ("the mayor of {x} according to the latest edition of its register",),
        "the head of the council of {x} by the newest register", "register mayor",
    ),
}  # fmt: skip

LEADERS = (
    "From {a} until {b}, {v} was at the head of {e}.",
    "{v} led {e} between {a} and {b}.",
)
LEADER_QUERY = "leaders"
