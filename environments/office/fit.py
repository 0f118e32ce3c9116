"""Whether a meeting fits those who take part: their hours and their calendars."""

from collections.abc import Iterator

from gymsuite.worlds.rows import need
from gymsuite.worlds.state import State

from . import agenda, zones
from .asks import Ask, starts
from .lookups import owner_zone
from .policy import SATURDAY, Policy


class Fit:
    """Whether a meeting fits those who take part; their calendars are read once."""

    def __init__(
        self, state: State, policy: Policy, people: tuple[str, ...], begin: int, end: int
    ) -> None:
        around = zones.MINUTES_A_DAY
        self.people = people
        self._policy = policy
        self._owner = state.get("owner")
        self._owner_zone = owner_zone(state)
        self._zones = {key: str(need(state, "contacts", key)["zone"]) for key in people}
        self._spans = {key: agenda.busy(state, key, begin - around, end + around) for key in people}

    def in_hours(self, start: int, minutes: int) -> bool:
        """Whether it lies in the hours of all."""
        return next(self.out_of_hours(start, minutes), None) is None

    def free(self, start: int, minutes: int, without: agenda.Occasion | None = None) -> bool:
        """Whether all have time for it."""
        return next(self.taken(start, minutes, without), None) is None

    def out_of_hours(self, start: int, minutes: int) -> Iterator[str]:
        """Those for whom it does not lie in their hours."""
        _, first = zones.clock(self._owner_zone, start)
        policy = self._policy
        lunch_end = policy.lunch_start + policy.lunch_minutes
        if first + minutes > policy.lunch_start and first < lunch_end:
            yield self._owner
        fine: set[str] = set()
        for key, zone in self._zones.items():
            if zone in fine or self._works(zone, start, minutes):
                fine.add(zone)
            else:
                yield key

    def _works(self, zone: str, start: int, minutes: int) -> bool:
        day, first = zones.clock(zone, start)
        inside = self._policy.work_start <= first and first + minutes <= self._policy.work_end
        return day.weekday() < SATURDAY and inside

    def taken(
        self, start: int, minutes: int, without: agenda.Occasion | None = None
    ) -> Iterator[str]:
        """Those who have no time for it."""
        end, buffer = start + minutes, self._policy.buffer
        for key, spans in self._spans.items():
            if not agenda.is_free(spans, start, end, buffer, without):
                yield key


def fit_of(state: State, policy: Policy, ask: Ask) -> Fit:
    """What those who would take part in a meeting have in its way."""
    people = (state.get("owner"), *ask.people)
    if ask.subject:
        people = tuple(agenda.attendees(state, ask.subject))
    when = starts(state, ask)
    return Fit(state, policy, people, when[0], when[-1])
