"""What a request is called, how it is carried out, and how one sees that it is over."""

from collections.abc import Mapping, Sequence
from datetime import timedelta

from gymsuite.types import ToolCall
from gymsuite.worlds.gold import Entity
from gymsuite.worlds.plans import call
from gymsuite.worlds.rows import need
from gymsuite.worlds.state import State

from . import agenda, zones
from .asks import Ask, starts, today
from .lookups import owner_zone
from .policy import REQUESTS, Decision, Policy

_EVERY = {7: "weekly", 14: "every two weeks"}


def fields(state: State, ask: Ask) -> Mapping[str, str]:
    """What the wording of a request is filled with; no number of a row is among it."""
    people = [str(need(state, "contacts", key)["name"]) for key in ask.people]
    target = state.row("contacts", ask.target)
    who = " and ".join((", ".join(people[:-1]), people[-1]) if people[1:] else people)
    return {
        "title": ask.title,
        "people": who,
        "day": ask.day,
        "start": ask.start,
        "zone": ask.zone,
        "minutes": str(ask.minutes),
        "number": str(ask.number),
        "every": _EVERY[ask.every],
        "on": ask.on,
        "target": str(target["name"]) if target else ask.target,
    }


def described(state: State, ask: Ask) -> tuple[Entity, ...]:
    """The rows that those words are about: there is one of each."""
    names = [need(state, "contacts", key)["name"] for key in ask.people]
    if target := state.row("contacts", ask.target):
        names.append(target["name"])
    found = [Entity(table="contacts", where={"name": name}) for name in names]
    table = _TABLES.get(ask.request)
    if table:
        column = "subject" if table == "mails" else "title"
        found.append(Entity(table=table, where={column: ask.title}))
    return tuple(found)


_TABLES = {
    "move": "events",
    "cancel": "events",
    "move_once": "series",
    "discount": "deals",
    "win": "deals",
    "forward": "mails",
}


def reading(state: State, policy: Policy, ask: Ask) -> list[ToolCall]:
    """The lookups that a decision on it needs."""
    match ask.request:
        case "meeting" | "series":
            first, _ = zones.clock(owner_zone(state), starts(state, ask)[0])
            soon = first - today(state) < timedelta(policy.notice_days)
            firms = [call("get_contact", contact_id=key) for key in ask.people if soon]
            return [*firms, *_calendars(state, (state.get("owner"), *ask.people), ask)]
        case "move" | "move_once":
            looks = _calendars(state, agenda.attendees(state, ask.subject), ask)
            return [call("get_event", meeting_id=ask.subject), *looks]
        case "cancel":
            return [call("get_event", meeting_id=ask.subject)]
        case "discount" | "win":
            account = need(state, "deals", ask.subject)["account_id"]
            return [
                call("get_deal", deal_id=ask.subject),
                call("get_account", account_id=account),
            ]
        case "forward":
            return [
                call("read_mail", mail_id=ask.subject),
                call("get_contact", contact_id=ask.target),
            ]
    return [call("get_contact", contact_id=ask.target)]


def _calendars(state: State, people: Sequence[str], ask: Ask) -> list[ToolCall]:
    zone = owner_zone(state)
    days = [zones.clock(zone, start)[0].isoformat() for start in starts(state, ask)]
    until = {"until_day": days[-1]} if days[-1] != days[0] else {}
    return [call("free_busy", contact_id=key, day=days[0], **until) for key in people]


def writing(state: State, ask: Ask, decision: Decision) -> list[ToolCall]:
    """The writes that the decision asks for."""
    match decision.verdict:
        case "report":
            return [call("report_mail", mail_id=ask.mail)]
        case "handover":
            return [call("hand_over", request=ask.request, reason=decision.reason)]
        case "decline":
            return [call("decline_request", request=ask.request, reason=decision.reason)]
    return granting(state, ask, decision.value)


def granting(state: State, ask: Ask, value: str | int) -> list[ToolCall]:  # noqa: PLR0911 - a table
    """The writes that carry it out."""
    at = {"day": ask.day, "start": ask.start, "zone": ask.zone}
    match ask.request:
        case "meeting":
            return [_meeting(state, ask, int(value))]
        case "move":
            return [call("move_event", event_id=ask.subject, **at)]
        case "move_once":
            return [call("move_occurrence", series_id=ask.subject, on_day=ask.on, **at)]
        case "cancel":
            return [call("cancel_event", event_id=ask.subject)]
        case "series":
            return [_series(ask)]
        case "discount":
            return [call("set_deal_amount", deal_id=ask.subject, amount_cents=value)]
        case "win":
            deal = need(state, "deals", ask.subject)
            title = {"title": onboard(state, ask), "assignee_id": deal["seller_id"]}
            return [
                call("set_deal_stage", deal_id=ask.subject, stage="won"),
                call("create_task", **title, due_on=value),
            ]
        case "forward":
            to = need(state, "contacts", ask.target)["email"]
            return [call("forward_mail", mail_id=ask.subject, to=to)]
    return [call("create_task", title=ask.title, due_on=value, assignee_id=ask.target)]


def _meeting(state: State, ask: Ask, instant: int) -> ToolCall:
    zone = owner_zone(state)
    day, minute = zones.clock(zone, instant)
    return call(
        "create_event",
        title=ask.title,
        day=day.isoformat(),
        start=zones.hhmm(minute),
        zone=zone,
        minutes=ask.minutes,
        attendee_ids=list(ask.people),
    )


def _series(ask: Ask) -> ToolCall:
    return call(
        "create_series",
        title=ask.title,
        first_day=ask.day,
        start=ask.start,
        zone=ask.zone,
        minutes=ask.minutes,
        repeats=_EVERY[ask.every],
        times=ask.number,
        attendee_ids=list(ask.people),
    )


def onboard(state: State, ask: Ask) -> str:
    """The title of the task that a won deal calls for."""
    deal = need(state, "deals", ask.subject)
    return f"Onboard {need(state, 'accounts', deal['account_id'])['name']}"


def signs(state: State, ask: Ask, decision: Decision) -> tuple[Entity, ...]:
    """The rows that show that a request is over, whether carried out or not."""
    found = [_done(state, ask, decision)]
    if ask.request in REQUESTS:
        where = {"request": ask.request}
        found += [Entity(table=table, where=where) for table in ("declines", "handovers")]
    if ask.mail:
        found.append(Entity(table="reports", where={"mail_id": ask.mail}))
    return tuple(sign for sign in found if not state.find(sign.table, sign.where))


def _done(state: State, ask: Ask, decision: Decision) -> Entity:  # noqa: PLR0911 - a table
    match ask.request:
        case "meeting":
            return Entity(table="events", where={"title": ask.title})
        case "series":
            return Entity(table="series", where={"title": ask.title})
        case "move":
            where = {"id": ask.subject, "starts_at": zones.stamp(ask.instant)}
            return Entity(table="events", where=where)
        case "move_once":
            return Entity(table="occurrences", where={"series_id": ask.subject, "on_day": ask.on})
        case "cancel":
            return Entity(table="events", where={"id": ask.subject, "status": "cancelled"})
        case "discount":
            amount = {"amount_cents": decision.value or -1}
            return Entity(table="deals", where={"id": ask.subject, **amount})
        case "win":
            return Entity(table="tasks", where={"title": onboard(state, ask)})
        case "forward":
            to = need(state, "contacts", ask.target)["email"]
            where = {"subject": f"Fwd: {ask.title}", "recipient": to}
            return Entity(table="mails", where=where)
    return Entity(table="tasks", where={"title": ask.title})
