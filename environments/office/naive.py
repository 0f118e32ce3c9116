"""What somebody does about a wish who understands it and heeds none of the rules."""

from datetime import date

from gymsuite.worlds.rows import need
from gymsuite.worlds.state import State

from . import agenda, zones
from .asks import GRID, Ask
from .lookups import owner_zone
from .policy import Decision

_MORNING, _EVENING = 9 * 60, 17 * 60


def naive_decision(state: State, ask: Ask) -> Decision:
    """Carries it out: at the first time that everybody has, at the date and amount that is said."""
    match ask.request:
        case "meeting":
            return Decision("grant", "", _slot(state, ask))
        case "move" | "move_once" | "series":
            return Decision("grant", "", ask.instant)
        case "discount":
            cents = need(state, "deals", ask.subject)["amount_cents"]
            return Decision("grant", "", cents * (100 - ask.number) // 100)
        case "new_task":
            return Decision("grant", "", ask.day)
        case "win":
            return Decision("grant", "", zones.stamp(zones.unstamp(state.now))[:10])
    return Decision("grant")


def _slot(state: State, ask: Ask) -> int:
    """The first time within the owner's usual day at which nobody has anything else."""
    zone = owner_zone(state)
    begin, end = agenda.day_of(zone, date.fromisoformat(ask.day))
    people = (state.get("owner"), *ask.people)
    spans = [span for key in people for span in agenda.busy(state, key, begin, end)]
    starts = [
        start
        for start in range(begin, end, GRID)
        if _MORNING <= zones.clock(zone, start)[1] <= _EVENING - ask.minutes
    ]
    free = (s for s in starts if agenda.is_free(spans, s, s + ask.minutes, 0))
    return next(free, starts[0])
