"""What a decision rests on, and so has to have been looked at before it: that, and no more."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from gymsuite.worlds.rows import need
from gymsuite.worlds.rules import weighed
from gymsuite.worlds.state import State

from . import zones
from .asks import Ask, occasion, starts
from .facts import facts_of, is_outsider
from .fit import Fit, fit_of
from .lookups import owner_zone
from .policy import TIERS, Facts, Policy
from .rules import RULES

Group = tuple[str, ...]
"""Reads of which one is enough."""


@dataclass(frozen=True)
class _Case:
    """A request, what the rules see of it, and whether the one in question forbids it."""

    state: State
    policy: Policy
    ask: Ask
    facts: Facts
    holds: bool = False

    @property
    def fit(self) -> Fit:
        """What those who take part have in its way."""
        return fit_of(self.state, self.policy, self.ask)

    @property
    def starts(self) -> Sequence[int]:
        """When it would start."""
        return starts(self.state, self.ask)

    @property
    def owner(self) -> str:
        """Whose hours and zone the prompt tells."""
        return self.state.get("owner")

    def seen(self, table: str, key: str, column: str) -> Group:
        """The reads that show a column of a row: the row, or a list with that column."""
        return (f"{table}:{key}", f"{table}.{column}:{key}")

    def calendar(self, key: str, start: int) -> str:
        """The read that shows what somebody has to do on the owner's day of this start."""
        day, _ = zones.clock(owner_zone(self.state), start)
        return f"calendars.{day.isoformat()}:{key}"


def grounds(state: State, policy: Policy, ask: Ask) -> tuple[Group, ...]:
    """Groups of reads: one of each tells which rule is the first to apply, or that none does."""
    case = _Case(state, policy, ask, facts_of(state, policy, ask))
    found: list[Group] = []
    for rule, holds in weighed(RULES, ask.request, policy, case.facts):
        if rule.reason in _GROUNDS:
            found += _GROUNDS[rule.reason](replace(case, holds=holds))
    return _least(found)


def _least(groups: Sequence[Group]) -> tuple[Group, ...]:
    """The same demand without groups that another one implies."""
    sets = {frozenset(group) for group in groups}
    least = [one for one in sets if not any(other < one for other in sets)]
    return tuple(sorted(tuple(sorted(group)) for group in least))


def _sender(case: _Case) -> list[Group]:
    mail = case.ask.mail
    if not mail:
        return []
    shown = case.seen("mails", mail, "sender") if case.holds else (f"mails:{mail}",)
    return [shown, (f"contacts:{case.state.get('writer')}",)]


def _meeting(case: _Case) -> list[Group]:
    table = "events" if case.state.row("events", case.ask.subject) else "series"
    return [(f"{table}:{case.ask.subject}",)]


def _firms(case: _Case) -> list[Group]:
    if case.facts.days_ahead >= case.policy.notice_days:
        return []
    firms = {key: case.seen("contacts", key, "firm") for key in case.ask.people}
    if not case.holds:
        return [*firms.values()]
    outside = [firm for key, firm in firms.items() if is_outsider(case.state, key)]
    return [tuple(read for firm in outside for read in firm)]


def _hours(case: _Case) -> list[Group]:
    fit = case.fit
    if not case.holds:
        return [_zone(case, key) for key in fit.people if key != case.owner]
    out = {key for start in case.starts for key in fit.out_of_hours(start, case.ask.minutes)}
    return [] if case.owner in out else [tuple(read for key in out for read in _zone(case, key))]


def _zone(case: _Case, key: str) -> Group:
    return case.seen("contacts", key, "zone")


def _time(case: _Case) -> list[Group]:
    fit, moved = case.fit, occasion(case.state, case.ask)
    if not case.holds:
        return [(case.calendar(key, start),) for key in fit.people for start in case.starts]
    return [
        tuple(
            case.calendar(key, start)
            for start in case.starts
            for key in fit.taken(start, case.ask.minutes, moved)
        )
    ]


def _slot(case: _Case) -> list[Group]:
    fit, minutes = case.fit, case.ask.minutes
    if not case.holds:
        return [(case.calendar(key, case.starts[0]),) for key in fit.people]
    found = []
    for start in case.starts:
        out = [*fit.out_of_hours(start, minutes)]
        if case.owner not in out:
            zones_out = [read for key in out for read in _zone(case, key)]
            taken = [case.calendar(key, start) for key in fit.taken(start, minutes)]
            found.append((*zones_out, *taken))
    return found


def _stage(case: _Case) -> list[Group]:
    return [case.seen("deals", case.ask.subject, "stage")]


def _tier(case: _Case) -> list[Group]:
    above = {case.ask.number > case.policy.most_percent(tier) for tier in TIERS}
    return _account(case) if len(above) > 1 else []


def _amount(case: _Case) -> list[Group]:
    return [(f"deals:{case.ask.subject}",)]


def _account(case: _Case) -> list[Group]:
    return [(f"accounts:{need(case.state, 'deals', case.ask.subject)['account_id']}",)]


def _label(case: _Case) -> list[Group]:
    return [case.seen("mails", case.ask.subject, "label")]


def _receiver(case: _Case) -> list[Group]:
    confidential = case.facts.label == "confidential"
    return [case.seen("contacts", case.ask.target, "firm")] if confidential else []


_GROUNDS: Mapping[str, Callable[[_Case], list[Group]]] = {
    "wrong_sender": _sender,
    "not_organizer": _meeting,
    "too_late": _meeting,
    "short_notice": _firms,
    "outside_hours": _hours,
    "conflict": _time,
    "no_slot": _slot,
    "wrong_stage": _stage,
    "above_limit": _tier,
    "needs_approval": _amount,
    "no_contract": _account,
    "legal_hold": _label,
    "confidential": _receiver,
}
"""By the reason of a rule; the other rules need nothing but what was written."""
