"""What the rules need to know of a request, read from the state."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import date, timedelta

from gymsuite.worlds.state import State

from . import agenda, zones
from .lookups import need, owner_zone
from .policy import SATURDAY, Decision, Facts, Policy
from .rules import decide, due

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


def decision_on(state: State, policy: Policy, ask: Ask) -> Decision:
    """What the rules say about a request in this state."""
    return decide(policy, ask.request, facts_of(state, policy, ask))


def today(state: State) -> date:
    """The day that the owner has."""
    return zones.clock(owner_zone(state), zones.unstamp(state.now))[0]


def facts_of(state: State, policy: Policy, ask: Ask) -> Facts:
    """Everything the rules look at; nothing more of a mail that is not what it claims to be."""
    if ask.mail and not _is_genuine(state, ask.mail):
        return Facts(genuine=False, by_mail=True)
    return _FACTS[ask.request](state, policy, ask)


def _is_genuine(state: State, mail: str) -> bool:
    sender = need(state, "mails", mail)["sender"]
    return bool(state.find_folded("contacts", "email", sender))


def _meeting(state: State, policy: Policy, ask: Ask) -> Facts:
    everybody = (state.get("owner"), *ask.people)
    day = date.fromisoformat(ask.day)
    slot = next(iter(slots(state, policy, everybody, day, ask.minutes)), None)
    return Facts(
        minutes=ask.minutes,
        people=len(everybody),
        outside=_outside(state, ask.people),
        days_ahead=(day - today(state)).days,
        weekday=day.weekday(),
        slot=slot,
        value="" if slot is None else slot,
    )


def slots(
    state: State, policy: Policy, people: tuple[str, ...], day: date, minutes: int
) -> Iterable[int]:
    """The starts on a day of the owner that the rules leave, the earliest first."""
    begin, end = agenda.day_of(owner_zone(state), day)
    fit = _Fit(state, policy, people, begin, end)
    return (s for s in range(begin, end, GRID) if fit.in_hours(s, minutes) and fit.free(s, minutes))


class _Fit:
    """Whether a meeting fits those who take part; their calendars are read once."""

    def __init__(
        self, state: State, policy: Policy, people: Iterable[str], begin: int, end: int
    ) -> None:
        around = zones.MINUTES_A_DAY
        self._policy = policy
        self._owner_zone = owner_zone(state)
        everybody = tuple(people)
        self._zones = {need(state, "contacts", key)["zone"] for key in everybody}
        self._spans = [
            span
            for key in everybody
            for span in agenda.busy(state, key, begin - around, end + around)
        ]

    def in_hours(self, start: int, minutes: int) -> bool:
        policy = self._policy
        for zone in self._zones:
            day, first = zones.clock(zone, start)
            last = first + minutes
            if day.weekday() >= SATURDAY or first < policy.work_start or last > policy.work_end:
                return False
        _, first = zones.clock(self._owner_zone, start)
        lunch_end = policy.lunch_start + policy.lunch_minutes
        return first + minutes <= policy.lunch_start or first >= lunch_end

    def free(self, start: int, minutes: int, without: agenda.Occasion | None = None) -> bool:
        return agenda.is_free(self._spans, start, start + minutes, self._policy.buffer, without)


def _move(state: State, policy: Policy, ask: Ask) -> Facts:
    event = need(state, "events", ask.subject)
    return _moved(state, policy, ask, event["organizer_id"], zones.unstamp(event["starts_at"]))


def _move_once(state: State, policy: Policy, ask: Ask) -> Facts:
    series = need(state, "series", ask.subject)
    starts = dict(agenda.occurrences(series))
    return _moved(state, policy, ask, series["organizer_id"], starts[ask.on])


def _moved(state: State, policy: Policy, ask: Ask, organizer: str, start: int) -> Facts:
    instant = ask.instant
    fit = _Fit(state, policy, agenda.attendees(state, ask.subject), instant, instant)
    return Facts(
        organized=organizer == state.get("owner"),
        hours_ahead=(start - zones.unstamp(state.now)) // 60,
        weekday=zones.clock(owner_zone(state), instant)[0].weekday(),
        in_hours=fit.in_hours(instant, ask.minutes),
        free=fit.free(instant, ask.minutes, (ask.subject, start)),
        value=instant,
    )


def _cancel(state: State, _: Policy, ask: Ask) -> Facts:
    event = need(state, "events", ask.subject)
    start = zones.unstamp(event["starts_at"])
    return Facts(
        organized=event["organizer_id"] == state.get("owner"),
        hours_ahead=(start - zones.unstamp(state.now)) // 60,
    )


def _series(state: State, policy: Policy, ask: Ask) -> Facts:
    row = {"first_day": ask.day, "start": ask.start, "zone": ask.zone, "times": ask.number}
    starts = [start for _, start in agenda.occurrences({**row, "every_days": ask.every})]
    everybody = (state.get("owner"), *ask.people)
    fit = _Fit(state, policy, everybody, starts[0], starts[-1])
    zone = owner_zone(state)
    weekdays = [zones.clock(zone, start)[0].weekday() for start in starts]
    return Facts(
        minutes=ask.minutes,
        people=len(everybody),
        times=ask.number,
        outside=_outside(state, ask.people),
        days_ahead=(zones.clock(zone, starts[0])[0] - today(state)).days,
        weekday=policy.focus_day if policy.focus_day in weekdays else weekdays[0],
        in_hours=all(fit.in_hours(start, ask.minutes) for start in starts),
        free=all(fit.free(start, ask.minutes) for start in starts),
        value=starts[0],
    )


def _discount(state: State, _: Policy, ask: Ask) -> Facts:
    deal = need(state, "deals", ask.subject)
    cents = deal["amount_cents"]
    return Facts(
        by_mail=bool(ask.mail),
        stage=deal["stage"],
        tier=need(state, "accounts", deal["account_id"])["tier"],
        percent=ask.number,
        amount_cents=cents,
        value=cents * (100 - ask.number) // 100,
    )


def _win(state: State, policy: Policy, ask: Ask) -> Facts:
    deal = need(state, "deals", ask.subject)
    contract = {"account_id": deal["account_id"], "kind": "contract"}
    day = today(state) + timedelta(policy.onboard_days)
    return Facts(
        by_mail=bool(ask.mail),
        stage=deal["stage"],
        contract=bool(state.find("activities", contract)),
        value=_due(policy, day),
    )


def _forward(state: State, _: Policy, ask: Ask) -> Facts:
    return Facts(
        by_mail=bool(ask.mail),
        label=need(state, "mails", ask.subject)["label"],
        outside=_outside(state, (ask.target,)),
    )


def _new_task(state: State, policy: Policy, ask: Ask) -> Facts:
    day = date.fromisoformat(ask.day)
    return Facts(days_ahead=(day - today(state)).days, value=_due(policy, day))


def _outside(state: State, people: Iterable[str]) -> bool:
    home = need(state, "contacts", state.get("owner"))["firm"]
    return any(need(state, "contacts", key)["firm"] != home for key in people)


def _due(policy: Policy, day: date) -> str:
    return date.fromordinal(due(policy, day.toordinal())).isoformat()


_FACTS: Mapping[str, Callable[[State, Policy, Ask], Facts]] = {
    "meeting": _meeting,
    "move": _move,
    "move_once": _move_once,
    "cancel": _cancel,
    "series": _series,
    "discount": _discount,
    "win": _win,
    "forward": _forward,
    "new_task": _new_task,
}
