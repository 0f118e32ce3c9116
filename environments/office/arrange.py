"""Draws the rows of a request until the rules decide on it as wanted."""

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from datetime import date, timedelta

from gymsuite.worlds.rows import need

from . import zones
from .asks import Ask
from .facts import decision_on
from .papers import discount, forward, new_task, win
from .scene import Scene, crowd, put_event, put_series

_TRIES = 60
_VARIATIONS = 20
_LENGTHS = (30, 45, 60, 75, 90)


class NoDrawError(Exception):
    """Nothing that was drawn came out as wanted."""


def arrange(scene: Scene, request: str, wanted: str) -> Ask:
    """A request about new rows, on which the rules' decision is the wanted one.

    `wanted` is "grant" or a reason code; raises `NoDrawError` when no draw comes out so.
    """
    for _ in range(_TRIES):
        with suppress(NoDrawError), scene.state.transaction():
            ask = _ARRANGERS[request](scene, scene.titles[-1], wanted)
            decision = decision_on(scene.state, scene.policy, ask)
            if wanted not in (decision.verdict, decision.reason):
                raise NoDrawError(wanted)
            scene.titles.pop()
            return ask
    raise NoDrawError(f"no draw of a {request} request comes out as {wanted!r}")


def _people(scene: Scene, wanted: str, count: int) -> list[str]:
    """So many contacts, in the order of their ids."""
    inside, outside = scene.colleagues(), scene.outsiders()
    if wanted not in ("no_slot", "outside_hours") or scene.draws.chance(60):
        inside, outside = scene.near(inside), scene.near(outside)
    chosen = scene.draws.sample(inside, min(count, len(inside)))
    if wanted == "short_notice" or scene.draws.chance(50):
        chosen[0] = scene.draws.choice(outside)
    return sorted(chosen)


def _length(scene: Scene, wanted: str) -> int:
    longest = scene.policy.longest
    if wanted == "too_long":
        return longest + 5 * scene.draws.between(1, 6)
    return scene.draws.choice([length for length in _LENGTHS if length <= longest])


def _count(scene: Scene, wanted: str) -> int:
    if wanted == "too_many_people":
        return scene.policy.most_people + scene.draws.below(2)
    return scene.draws.between(1, 2 if wanted == "grant" else 3)


def _day(scene: Scene, wanted: str) -> date:
    if wanted == "short_notice":
        soon = scene.policy.notice_days - 1
        return scene.today + timedelta(scene.draws.between(1, max(1, soon)))
    return scene.day(focus=wanted == "focus_day", low=scene.policy.notice_days)


def _quarter(scene: Scene, wanted: str) -> int:
    """A minute of the day on which something may start."""
    if wanted == "outside_hours":
        return scene.draws.between(7 * 4, 20 * 4) * 15
    return scene.draws.between(9 * 4, 16 * 4) * 15


def _meeting(scene: Scene, title: str, wanted: str) -> Ask:
    people = _people(scene, wanted, _count(scene, wanted))
    day = _day(scene, wanted)
    crowd(scene, [scene.owner, *people], day, 5 if wanted == "no_slot" else 3)
    return Ask(
        "meeting",
        title=title,
        people=tuple(people),
        day=day.isoformat(),
        minutes=_length(scene, wanted),
    )


def _series(scene: Scene, title: str, wanted: str) -> Ask:
    draws, policy = scene.draws, scene.policy
    people = _people(scene, wanted, _count(scene, wanted))
    day = _day(scene, wanted)
    zone = _zone(scene, people)
    times = draws.between(3, policy.most_times)
    if wanted == "too_many_times":
        times = policy.most_times + draws.between(1, 3)
    every = draws.choice((7, 14))
    crowd(scene, people, day + timedelta(every * draws.below(times)), 2)
    return Ask(
        "series",
        title=title,
        people=tuple(people),
        day=day.isoformat(),
        start=zones.hhmm(_quarter(scene, wanted)),
        zone=zone,
        minutes=_length(scene, wanted),
        number=times,
        every=every,
    )


def _zone(scene: Scene, people: list[str]) -> str:
    """The zone in which somebody thinks of a time."""
    keys = [scene.owner, *people]
    return str(need(scene.state, "contacts", scene.draws.choice(keys))["zone"])


def _planned(scene: Scene, title: str, wanted: str) -> tuple[str, int, list[str], int]:
    """A meeting that is there: its id, start, people and length."""
    draws = scene.draws
    people = [scene.owner, *_people(scene, wanted, draws.between(1, 2))]
    if wanted == "not_organizer":
        people.reverse()
    minutes = draws.choice(_LENGTHS[:3])
    if wanted == "too_late":
        hours = draws.between(6, scene.policy.change_hours - 1)
        start = zones.unstamp(scene.state.now) + 60 * hours
    else:
        low = 2 + scene.policy.change_hours // 24
        start = zones.at(scene.zone, scene.day(low=low), draws.between(9 * 4, 16 * 4) * 15) or 0
    return put_event(scene, title, start, minutes, people), start, people, minutes


def _move(scene: Scene, title: str, wanted: str) -> Ask:
    event, start, people, minutes = _planned(scene, title, wanted)
    day = scene.day(focus=wanted == "focus_day")
    crowd(scene, people, day, 4 if wanted == "conflict" else 2)
    ask = Ask(
        "move",
        event,
        title,
        day=day.isoformat(),
        start=zones.hhmm(_quarter(scene, wanted)),
        zone=_zone(scene, people[1:]),
        minutes=minutes,
    )
    if ask.instant == start:
        raise NoDrawError("it is there already")
    return ask


def _cancel(scene: Scene, title: str, wanted: str) -> Ask:
    event, *_ = _planned(scene, title, wanted)
    return Ask("cancel", event, title)


def _move_once(scene: Scene, title: str, wanted: str) -> Ask:
    draws = scene.draws
    people = [scene.owner, *_people(scene, wanted, draws.between(1, 2))]
    if wanted == "not_organizer":
        people.reverse()
    first = scene.day(low=1 if wanted == "too_late" else 1 + scene.policy.change_hours // 24)
    minutes = draws.choice(_LENGTHS[:3])
    minute = draws.between(9 * 4, 16 * 4) * 15
    zone = _zone(scene, people[1:])
    key = put_series(
        scene, title, first=first, start=minute, zone=zone, minutes=minutes, people=people
    )
    on = first if wanted == "too_late" else first + timedelta(7 * draws.below(6))
    to = scene.day(focus=wanted == "focus_day")
    crowd(scene, people, to, 4 if wanted == "conflict" else 2)
    return Ask(
        "move_once",
        key,
        title,
        day=to.isoformat(),
        start=zones.hhmm(_quarter(scene, wanted)),
        zone=_zone(scene, people[1:]),
        minutes=minutes,
        on=on.isoformat(),
    )


_ARRANGERS: Mapping[str, Callable[[Scene, str, str], Ask]] = {
    "meeting": _meeting,
    "move": _move,
    "move_once": _move_once,
    "cancel": _cancel,
    "series": _series,
    "discount": discount,
    "win": win,
    "forward": forward,
    "new_task": new_task,
}


def variation(scene: Scene, ask: Ask, wanted: str) -> Ask:
    """The same wish at another time or by another number, which comes out as wanted."""
    for _ in range(_VARIATIONS):
        other = _vary(scene, ask)
        decision = decision_on(scene.state, scene.policy, other)
        if other != ask and wanted in (decision.verdict, decision.reason):
            return other
    raise NoDrawError(f"no variation of {ask.request} comes out as {wanted!r}")


def _vary(scene: Scene, ask: Ask) -> Ask:
    if ask.request == "discount":
        return replace(ask, number=scene.draws.between(1, 20))
    if ask.request == "new_task":
        ahead = timedelta(scene.draws.between(2, scene.policy.horizon_days))
        return replace(ask, day=(scene.today + ahead).isoformat())
    day = scene.day(low=scene.policy.notice_days).isoformat()
    if ask.request == "meeting":
        return replace(ask, day=day)
    return replace(ask, day=day, start=zones.hhmm(_quarter(scene, "grant")))
