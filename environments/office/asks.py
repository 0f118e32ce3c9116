"""One wish of the owner, and the times that it is about."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date

from gymsuite.worlds.rows import need
from gymsuite.worlds.state import State

from . import agenda, zones
from .lookups import owner_zone

GRID = 15
"""Meetings without a given time start on a multiple of so many minutes."""


@dataclass(frozen=True)
class Ask:
    """One wish: what it is, about which row, and what should become of it.

    `people` are contacts besides the owner. `start` is a time of `zone` on `day`; `number` a
    percentage or how often; `on` the day of an occurrence; `target` a contact, label or text.
    """

    request: str
    subject: str = ""
    title: str = ""
    people: tuple[str, ...] = ()
    day: str = ""
    start: str = ""
    zone: str = ""
    minutes: int = 0
    number: int = 0
    every: int = 7
    on: str = ""
    target: str = ""
    mail: str = ""

    @property
    def instant(self) -> int:
        """When it should start."""
        found = zones.at(self.zone, date.fromisoformat(self.day), zones.minutes(self.start))
        if found is None:
            raise ValueError(f"the clocks of {self.zone} skip {self.start} on {self.day}")
        return found


def today(state: State) -> date:
    """The day that the owner has."""
    return zones.clock(owner_zone(state), zones.unstamp(state.now))[0]


def starts(state: State, ask: Ask) -> Sequence[int]:
    """When what is asked for would start: each occurrence, or each quarter of an hour to choose."""
    match ask.request:
        case "meeting":
            begin, end = agenda.day_of(owner_zone(state), date.fromisoformat(ask.day))
            return range(begin, end, GRID)
        case "series":
            row = {"first_day": ask.day, "start": ask.start, "zone": ask.zone, "times": ask.number}
            return [start for _, start in agenda.occurrences({**row, "every_days": ask.every})]
    return [ask.instant]


def occasion(state: State, ask: Ask) -> agenda.Occasion | None:
    """What is to be moved, which is not in its own way."""
    match ask.request:
        case "move":
            return ask.subject, zones.unstamp(need(state, "events", ask.subject)["starts_at"])
        case "move_once":
            return ask.subject, dict(agenda.occurrences(need(state, "series", ask.subject)))[ask.on]
    return None
