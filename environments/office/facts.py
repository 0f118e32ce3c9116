"""What the rules need to know of a request, read from the state."""

from collections.abc import Callable, Iterable, Mapping
from datetime import date, timedelta

from gymsuite.worlds.rows import need
from gymsuite.worlds.state import State

from . import zones
from .asks import Ask, occasion, starts, today
from .fit import Fit, fit_of
from .lookups import owner_zone
from .policy import Decision, Facts, Policy
from .rules import decide, due


def decision_on(state: State, policy: Policy, ask: Ask) -> Decision:
    """What the rules say about a request in this state."""
    return decide(policy, ask.request, facts_of(state, policy, ask))


def facts_of(state: State, policy: Policy, ask: Ask) -> Facts:
    """Everything the rules look at; nothing more of a mail that is not what it claims to be."""
    if ask.mail and not _is_genuine(state, ask.mail):
        return Facts(genuine=False, by_mail=True)
    return _FACTS[ask.request](state, policy, ask)


def _is_genuine(state: State, mail: str) -> bool:
    sender = need(state, "mails", mail)["sender"]
    return bool(state.find_folded("contacts", "email", sender))


def _meeting(state: State, policy: Policy, ask: Ask) -> Facts:
    fit = fit_of(state, policy, ask)
    day = date.fromisoformat(ask.day)
    slot = next(iter(slots(state, fit, ask)), None)
    return Facts(
        minutes=ask.minutes,
        people=len(fit.people),
        outside=_outside(state, ask.people),
        days_ahead=(day - today(state)).days,
        weekday=day.weekday(),
        slot=slot,
        value="" if slot is None else slot,
    )


def slots(state: State, fit: Fit, ask: Ask) -> Iterable[int]:
    """The starts on its day that the rules leave for a meeting, the earliest first."""
    return (
        start
        for start in starts(state, ask)
        if fit.in_hours(start, ask.minutes) and fit.free(start, ask.minutes)
    )


def _move(state: State, policy: Policy, ask: Ask) -> Facts:
    moved = occasion(state, ask)
    if moved is None:
        raise ValueError(f"{ask} moves nothing")
    meeting, start = moved
    row = state.row("events", meeting) or need(state, "series", meeting)
    instant = ask.instant
    fit = fit_of(state, policy, ask)
    return Facts(
        organized=row["organizer_id"] == state.get("owner"),
        hours_ahead=(start - zones.unstamp(state.now)) // 60,
        weekday=zones.clock(owner_zone(state), instant)[0].weekday(),
        in_hours=fit.in_hours(instant, ask.minutes),
        free=fit.free(instant, ask.minutes, moved),
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
    fit, when = fit_of(state, policy, ask), starts(state, ask)
    days = [zones.clock(owner_zone(state), start)[0] for start in when]
    weekdays = [day.weekday() for day in days]
    return Facts(
        minutes=ask.minutes,
        people=len(fit.people),
        times=ask.number,
        outside=_outside(state, ask.people),
        days_ahead=(days[0] - today(state)).days,
        weekday=policy.focus_day if policy.focus_day in weekdays else weekdays[0],
        in_hours=all(fit.in_hours(start, ask.minutes) for start in when),
        free=all(fit.free(start, ask.minutes) for start in when),
        value=when[0],
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
    return any(is_outsider(state, key) for key in people)


def is_outsider(state: State, contact: str) -> bool:
    """Whether somebody is of another firm than the owner."""
    home = need(state, "contacts", state.get("owner"))["firm"]
    return bool(need(state, "contacts", contact)["firm"] != home)


def _due(policy: Policy, day: date) -> str:
    return date.fromordinal(due(policy, day.toordinal())).isoformat()


_FACTS: Mapping[str, Callable[[State, Policy, Ask], Facts]] = {
    "meeting": _meeting,
    "move": _move,
    "move_once": _move,
    "cancel": _cancel,
    "series": _series,
    "discount": _discount,
    "win": _win,
    "forward": _forward,
    "new_task": _new_task,
}
