"""The world before a task: people, firms, deals, mails and tasks that no task is about."""

from datetime import date, timedelta
from functools import lru_cache
from itertools import product

from gymsuite.worlds.draws import Draws, mint
from gymsuite.worlds.splits import share
from gymsuite.worlds.state import State

from . import names
from .policy import TIERS
from .schema import SCHEMA
from .zones import ZONES

UNIVERSES = 8
"""How many worlds a split has; its tasks take turns in them."""

START = "2031-01-01T12:00:00Z"
LABELS = ("", "internal", "confidential", "legal")
_PEOPLE = 24
_COLLEAGUES = 10
_FIRMS = 10
_TITLES = 40
_TASKS = 12
_DEALS = 14


@lru_cache(maxsize=4 * UNIVERSES)
def base(split: str, universe: int) -> bytes:
    """The image of one world; a pure function of its name."""
    draws = Draws("office-v1", split, universe)
    state = State.empty(SCHEMA, seed=f"office-v1/{split}/{universe}", now=START)
    firms = _firms(draws, split)
    people = _people(state, draws, split, firms)
    state.set("owner", people[0])
    titles = list(_titles(split, universe)[:_TITLES])
    for name in firms[1:]:
        _account(state, draws, name)
    for _ in range(_DEALS):
        account = draws.choice(state.find("accounts", {}))["id"]
        put_deal(state, draws, account, titles.pop(), draws.choice(people[:_COLLEAGUES]))
    for _ in range(_TASKS):
        put_task(state, draws, titles.pop(), date(2031, 1, 1), draws.choice(people[:_COLLEAGUES]))
    while titles:
        sender = draws.choice(people[1:])
        put_mail(state, draws, sender, titles.pop(), "Only so that you know: all is on track.")
    state.begin()
    image = state.image
    state.close()
    return image


@lru_cache(maxsize=4 * UNIVERSES)
def free_titles(split: str, universe: int) -> tuple[str, ...]:
    """Titles that nothing has yet."""
    return _titles(split, universe)[_TITLES:]


@lru_cache(maxsize=4 * UNIVERSES)
def _titles(split: str, universe: int) -> tuple[str, ...]:
    draws = Draws("office-v1", "titles", split, universe)
    ways = product(share(split, names.TOPICS), names.EVENTS, map(str, range(10, 100)))
    return tuple(draws.sample([" ".join(way) for way in ways], 140))


def _firms(draws: Draws, split: str) -> list[str]:
    ways = [" ".join(way) for way in product(share(split, names.FIRMS), names.KINDS)]
    return draws.sample(ways, _FIRMS)


def _people(state: State, draws: Draws, split: str, firms: list[str]) -> list[str]:
    """The owner of the desk first, then the colleagues, then those of other firms."""
    ways = list(product(share(split, names.FIRST), share(split, names.LAST)))
    found = []
    for at, (first, last) in enumerate(draws.sample(ways, _PEOPLE)):
        firm = firms[0] if at < _COLLEAGUES else draws.choice(firms[1:])
        email = f"{first}.{last}@{firm.replace(' ', '-')}.test".lower()
        key = mint("CON", state.get("seed"), email)
        state.put(
            "contacts",
            {
                "id": key,
                "name": f"{first} {last}",
                "email": email,
                "firm": firm,
                "zone": draws.choice(share(split, tuple(ZONES))),
                "phone": phone(draws),
            },
        )
        found.append(key)
    return found


def phone(draws: Draws) -> str:
    """A number that nobody has."""
    return f"+{draws.between(900, 999)} {draws.below(1000):03} {draws.below(10_000):04}"


def bank(draws: Draws) -> str:
    """A bank account that nobody has."""
    return f"XX{draws.below(100):02} {draws.below(10_000):04} {draws.below(10_000):04}"


def _account(state: State, draws: Draws, name: str) -> None:
    key = mint("ACC", state.get("seed"), name)
    row = {"id": key, "name": name, "tier": draws.choice(TIERS), "bank": bank(draws)}
    state.put("accounts", row)
    kinds = ("email", "demo", "contract") if draws.chance(60) else ("email", "demo")
    for kind in kinds:
        put_activity(state, key, kind)


def put_activity(state: State, account: str, kind: str) -> None:
    """Something that happened with an account."""
    state.put(
        "activities",
        {
            "id": mint("ACT", account, kind),
            "account_id": account,
            "kind": kind,
            "note": f"Noted: {kind}.",
            "at": START,
        },
    )


def put_deal(state: State, draws: Draws, account: str, title: str, seller: str) -> str:
    """A deal with an account."""
    key = mint("DEA", state.get("seed"), title)
    state.put(
        "deals",
        {
            "id": key,
            "account_id": account,
            "title": title,
            "stage": "negotiation" if draws.chance(70) else draws.choice(("lead", "won", "lost")),
            "amount_cents": draws.between(200_000, 6_000_000),
            "seller_id": seller,
        },
    )
    return key


def put_task(state: State, draws: Draws, title: str, today: date, assignee: str) -> str:
    """An open task."""
    key = mint("TSK", state.get("seed"), title)
    due = today + timedelta(draws.between(1, 60))
    row = {"id": key, "title": title, "due_on": due.isoformat(), "assignee_id": assignee}
    state.put("tasks", {**row, "status": "open"})
    return key


def put_mail(  # noqa: PLR0913, PLR0917 - the parts of a mail
    state: State, draws: Draws, sender: str, subject: str, body: str, address: str = ""
) -> str:
    """A mail to the owner, from a contact's own address if no other is given."""
    who = state.row("contacts", sender) or {}
    owner = state.row("contacts", state.get("owner")) or {}
    key = mint("MSG", state.get("seed"), subject)
    state.put(
        "mails",
        {
            "id": key,
            "folder": "inbox",
            "sender": address or who["email"],
            "recipient": owner["email"],
            "subject": subject,
            "body": f"{body}\n\n{who['name']}",
            "label": draws.choice(LABELS) if draws.chance(60) else "",
            "at": state.now,
        },
    )
    return key
