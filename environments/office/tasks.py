"""Tasks without end, each a pure function of version, split and index."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict
from datetime import date, timedelta
from typing import NamedTuple

from gymsuite.errors import DefinitionError
from gymsuite.types import Task, ToolCall
from gymsuite.worlds.beginning import start_of
from gymsuite.worlds.draws import Draws
from gymsuite.worlds.gold import Gold
from gymsuite.worlds.plans import ending
from gymsuite.worlds.rows import need
from gymsuite.worlds.server import perform
from gymsuite.worlds.state import State
from gymsuite.worlds.user import Script, unsaid

from . import zones
from .arrange import NoDrawError
from .base import UNIVERSES, base, free_titles
from .desk import WORLD, begin
from .facts import decision_on
from .families import FAMILIES, Draft
from .lookups import a_day, when
from .policy import draw_policy
from .rules import render
from .scene import Scene
from .schema import SCHEMA

VERSION = "1"
LEVELS = 5
_ATTEMPTS = 20
_DATED = ("create_event", "move_event", "move_occurrence")


class Drawn(NamedTuple):
    """A task before it is written down."""

    scene: Scene
    draft: Draft
    universe: int


def make(split: str, index: int) -> Task:
    """The task of this number; the same on every machine."""
    with _drawn(split, index) as drawn:
        return _task(drawn, split, index)


def naive_plan(split: str, index: int) -> list[ToolCall]:
    """What somebody does about the task of this number who heeds no rule."""
    with _drawn(split, index) as drawn:
        return [c for part in drawn.draft.parts for c in part.naive]


@contextmanager
def _drawn(split: str, index: int) -> Iterator[Drawn]:
    """The first draw of a task in which every decision stands, whatever else is done first."""
    universe = index // LEVELS % UNIVERSES
    for attempt in range(_ATTEMPTS):
        draws = Draws("office-v1", VERSION, split, index, attempt)
        state = State.load(SCHEMA, base(split, universe))
        try:
            state.set("seed", f"office-v1/{split}/{index}")
            scene = _scene(state, draws, split, universe)
            draft = _draft(scene, 1 + index % LEVELS)
            if draft is not None:
                yield Drawn(scene, draft, universe)
                return
        finally:
            state.close()
    raise DefinitionError(f"office-v1: task {split}-{index} cannot be drawn")


def _scene(state: State, draws: Draws, split: str, universe: int) -> Scene:
    """A day to begin with, often a little before clocks change somewhere."""
    day = date(2031, 2, 1) + timedelta(draws.below(1000))
    if draws.chance(60):
        people = state.find("contacts", {})
        places = sorted({p["zone"] for p in people if zones.ZONES[p["zone"]].summer})
        if places:
            switch = draws.choice(zones.summer_of(draws.choice(places), day.year))
            day = zones.clock("Europe/London", switch)[0] - timedelta(draws.between(2, 25))
    state.set("now", f"{day.isoformat()}T{draws.between(7, 16):02}:{draws.below(60):02}:00Z")
    titles = draws.shuffled(free_titles(split, universe))
    return Scene(state, draws, split, draw_policy(draws, split), titles)


def _draft(scene: Scene, level: int) -> Draft | None:
    with suppress(NoDrawError):
        draft = FAMILIES[level](scene)
        if _stands(scene, draft):
            return draft
    return None


def _stands(scene: Scene, draft: Draft) -> bool:
    """Whether each decision is the same before and after the other wishes are carried out."""
    state, now = scene.state, scene.state.now
    for part in draft.parts:
        others = [c for other in draft.parts if other is not part for c in other.calls]
        if not part.decided or not others:
            continue
        after = state.fork()
        try:
            for step in others:
                if step.name in _WRITES:
                    perform(WORLD, after, step.name, step.arguments)
            after.set("now", now)
            if any(decision_on(after, scene.policy, a) != decided for a, decided in part.decided):
                return False
        finally:
            after.close()
    return True


_WRITES = frozenset(tool.__name__ for tool in WORLD.writes)


def _task(drawn: Drawn, split: str, index: int) -> Task:
    scene, draft, universe = drawn
    state = scene.state
    user = Script(
        requests=unsaid([part.request for part in draft.parts], draft.opening),
        voice=split,
        seed=f"{split}/{index}",
    )
    hidden = {
        "split": split,
        "start": start_of(state, universe),
        "user": user.model_dump(mode="json"),
    }
    plan = [c for part in draft.parts for c in part.calls]
    tell = [fact for part in draft.parts for fact in part.tell]
    gold = Gold(
        accepted=(ending(WORLD, begin(hidden), plan, tell),),
        reads=tuple(dict.fromkeys(group for part in draft.parts for group in part.reads)),
        mines=(*draft.mines, *(mine for part in draft.parts for mine in part.mines)),
    )
    described = [e.model_dump(mode="json") for part in draft.parts for e in part.described]
    other = _elsewhere(scene, plan)
    return Task(
        id=f"{split}-{index}",
        prompt=_prompt(scene, draft),
        split=split,
        level=1 + index % LEVELS,
        solution=tuple(plan),
        hidden={
            **hidden,
            "gold": gold.model_dump(mode="json"),
            "described": described,
            "alternatives": [[c.model_dump(mode="json") for c in other]] if other != plan else [],
        },
        metadata={
            "family": draft.family,
            "version": VERSION,
            "employer": scene.owner,
            "policy": asdict(scene.policy),
        },
    )


def _elsewhere(scene: Scene, plan: Sequence[ToolCall]) -> list[ToolCall]:
    """The same plan with the times of single meetings by the clocks of another zone."""
    people = scene.state.find("contacts", {})
    others = sorted({row["zone"] for row in people})
    return [_by_clocks_of(others, step) if step.name in _DATED else step for step in plan]


def _by_clocks_of(others: Sequence[str], step: ToolCall) -> ToolCall:
    place = step.arguments
    zone = next((other for other in others if other != place["zone"]), place["zone"])
    minute = zones.minutes(place["start"])
    instant = zones.at(place["zone"], a_day(place["day"]), minute)
    day, start = when(zone, instant or 0).split()
    moved = {**place, "day": day, "start": start, "zone": zone}
    return step.model_copy(update={"arguments": moved})


def _prompt(scene: Scene, draft: Draft) -> str:
    """What the agent reads: the rules, the time, and the employer's first words."""
    state = scene.state
    owner = need(state, "contacts", scene.owner)
    now = when(scene.zone, zones.unstamp(state.now))
    return (
        f"# House rules\n\n{render(scene.policy)}\n\n# Time\n\n"
        f"It is {now} in my zone, {scene.zone}.\n\n"
        f"# Your employer, {owner['name']} ({owner['id']}), writes\n\n{' '.join(draft.opening)}"
    )
