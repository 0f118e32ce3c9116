"""Tasks without end, each a pure function of version, split and index."""

from contextlib import suppress
from dataclasses import asdict
from datetime import date, timedelta

from gymsuite.errors import DefinitionError
from gymsuite.types import Task, ToolCall
from gymsuite.worlds.beginning import start_of
from gymsuite.worlds.draws import Draws, scatter
from gymsuite.worlds.gold import Fact, Gold
from gymsuite.worlds.plans import call, ending
from gymsuite.worlds.splits import pick
from gymsuite.worlds.state import Row, State
from gymsuite.worlds.user import Script, unsaid

from . import phrases
from .arrange import NoDrawError, decoys
from .base import UNIVERSES, base, free_products
from .desk import WORLD, begin
from .families import FAMILIES, Draft
from .policy import draw_policy
from .rules import render
from .scene import Scene, open_scene
from .schema import SCHEMA

VERSION = "1"
LEVELS = 5
OPENING = "# The customer writes\n\n"
"""What the customer's first words follow, at the end of a prompt."""

_ATTEMPTS = 8
_DAYS, _HOURS = 1000, 16


def make(split: str, index: int) -> Task:
    """The task of this number; the same on every machine."""
    for attempt in range(_ATTEMPTS):
        with suppress(NoDrawError):
            return _make(split, index, attempt)
    raise DefinitionError(f"shop-v1: task {split}-{index} cannot be drawn")


def _make(split: str, index: int, attempt: int) -> Task:
    draws = Draws("shop-v1", VERSION, split, index, attempt)
    level = 1 + index % LEVELS
    universe = index // LEVELS % UNIVERSES
    state = State.load(SCHEMA, base(split, universe))
    try:
        state.set("seed", f"shop-v1/{split}/{index}")
        state.set("now", moment_of(split, index))
        scene = open_scene(
            state, draws, split, draw_policy(draws, split), free_products(split, universe)
        )
        draft = FAMILIES[level](scene)
        decoys(scene)
        return _task(scene, draft, split, index, universe)
    finally:
        state.close()


def moment_of(split: str, index: int) -> str:
    """The hour of a day at which a task begins: no two of 16,000 in a row share it."""
    day, hour = divmod(scatter(index, _DAYS * _HOURS, "shop-v1", "moments", split), _HOURS)
    return f"{(date(2031, 2, 1) + timedelta(day)).isoformat()}T{6 + hour:02}:00:00Z"


def _task(scene: Scene, draft: Draft, split: str, index: int, universe: int) -> Task:
    state = scene.state
    who = state.row("customers", scene.customer) or {}
    user = Script(
        requests=unsaid([part.request for part in draft.parts], draft.opening),
        known={"email": who["email"], "name": who["name"], "zip": who["zip"]},
        voice=split,
        seed=f"{split}/{index}",
    )
    hidden = {
        "split": split,
        "start": start_of(state, universe),
        "user": user.model_dump(mode="json"),
    }
    plans = _plans(draft, who)
    looks = [read for part in draft.parts for read in part.reads]
    gold = Gold(
        accepted=tuple(ending(WORLD, begin(hidden), plan, tell) for plan, tell in plans),
        reads=tuple((read,) for read in dict.fromkeys((f"customers:{who['id']}", *looks))),
        mines=tuple(mine for part in draft.parts for mine in part.mines),
    )
    described = [e.model_dump(mode="json") for part in draft.parts for e in part.described]
    described.append({"table": "customers", "where": {"email": who["email"]}})
    described.append({"table": "customers", "where": {"name": who["name"], "zip": who["zip"]}})
    return Task(
        id=f"{split}-{index}",
        prompt=_prompt(scene, draft, who),
        split=split,
        level=1 + index % LEVELS,
        solution=tuple(plans[0][0]),
        hidden={
            **hidden,
            "gold": gold.model_dump(mode="json"),
            "described": described,
            "alternatives": [[c.model_dump(mode="json") for c in plan] for plan, _ in plans[1:]],
        },
        metadata={"family": draft.family, "version": VERSION, "policy": asdict(scene.policy)},
    )


def _plans(draft: Draft, who: Row) -> list[tuple[list[ToolCall], tuple[Fact, ...]]]:
    """The solution, and the other registered ways, with the facts that each has to tell."""
    opening = _identify(draft, who)
    ways = [draft.parts, *([other, *draft.parts[1:]] for other in draft.parts[0].others)]
    return [
        (
            [*opening, *(c for part in parts for c in part.calls)],
            tuple(fact for part in parts for fact in part.tell),
        )
        for parts in ways
    ]


def _identify(draft: Draft, who: Row) -> list[ToolCall]:
    shown = call("get_customer", customer_id=who["id"])
    if draft.says_who and len(draft.parts) > 1:
        name, code = who["name"], who["zip"]
        return [call("find_customer_by_name_and_zip", name=name, zip_code=code), shown]
    find = [call("find_customer_by_email", email=who["email"]), shown]
    if draft.says_who:
        return find
    return [call("tell_customer", text="Please give me your e-mail address."), *find]


def _prompt(scene: Scene, draft: Draft, who: Row) -> str:
    """What the agent reads: the policy, the time, and the customer's first words."""
    draws, split = scene.draws, scene.split
    words = [pick(draws, split, phrases.GREETINGS)]
    if not draft.says_who:
        words.append(pick(draws, split, phrases.NAMED).format(who["name"].split()[0]))
    elif len(draft.parts) > 1:
        words.append(pick(draws, split, phrases.NAMED).format(who["name"]))
        words.append(pick(draws, split, phrases.WITH_ZIP).format(who["zip"]))
    else:
        words.append(pick(draws, split, phrases.WITH_EMAIL).format(who["email"]))
    return (
        f"# Policy\n\n{render(scene.policy)}\n\n# Time\n\nIt is {scene.state.now}.\n\n"
        f"{OPENING}{' '.join((*words, *draft.opening))}"
    )
