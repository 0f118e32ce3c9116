"""The tools that only look. What they show is noted, so that a decision can be proven informed."""

import re
from datetime import date, timedelta
from typing import Any, Literal

from gymsuite.tools import ToolError
from gymsuite.worlds.rows import need, show
from gymsuite.worlds.state import State
from gymsuite.worlds.text import Identifier

from . import agenda, zones

MOST_RESULTS = 20
MOST_DAYS = 200
Folder = Literal["inbox", "archive", "sent", "trash"]
_LAST_YEAR = 2100
_TIME = re.compile(r"([01]?[0-9]|2[0-3]):[0-5][0-9]")


def owner_zone(state: State) -> str:
    """The zone of the person whose office it is."""
    return str(need(state, "contacts", state.get("owner"))["zone"])


def a_day(text: str) -> date:
    """The day that a text such as 2031-05-04 means."""
    try:
        day = date.fromisoformat(text.strip())
    except ValueError:
        raise ToolError(f"{text.strip()[:40]!r} is no day; write it as 2031-05-04") from None
    if not zones.midnight(date(1971, 1, 1)) < zones.midnight(day) or day.year > _LAST_YEAR:
        raise ToolError(f"{day} is too far from today")
    return day


def an_instant(day: str, start: str, zone: str) -> int:
    """The instant that a day, a time such as 09:30 and a zone mean."""
    of = a_zone(zone)
    if not _TIME.fullmatch(start.strip()):
        raise ToolError(f"{start.strip()[:40]!r} is no time of day; write it as 09:30")
    instant = zones.at(of, a_day(day), zones.minutes(start.strip()))
    if instant is None:
        raise ToolError(f"the clocks of {of} skip {start.strip()} on {day.strip()}")
    return instant


def a_zone(text: str) -> str:
    """The zone of this name, in any case."""
    wanted = text.strip().casefold()
    found = [name for name in zones.ZONES if name.casefold() == wanted]
    if not found:
        raise ToolError(f"no zone {text.strip()[:40]!r}; there are: {', '.join(zones.ZONES)}")
    return found[0]


def when(zone: str, instant: int) -> str:
    """An instant by the clocks of a zone."""
    day, minute = zones.clock(zone, instant)
    return f"{day.isoformat()} {zones.hhmm(minute)}"


def _search(state: State, table: str, column: str, words: str) -> list[dict[str, Any]]:
    wanted = words.casefold().split()
    return [
        row
        for row in state.find(table, {})
        if all(word in str(row[column]).casefold() for word in wanted)
    ]


def _brief(
    state: State, table: str, rows: list[dict[str, Any]], *names: str
) -> list[dict[str, Any]]:
    """Some columns of some rows; noted as `table.column:id`, for the rest was not seen."""
    shown = rows[:MOST_RESULTS]
    for row in shown:
        for name in names:
            state.mark_read(f"{table}.{name}", row["id"])
    return [{name: row[name] for name in ("id", *names)} for row in shown]


def list_mails(state: State, folder: Folder) -> object:
    """List the mails of a folder without their text."""
    rows = state.find("mails", {"folder": folder})
    return {"mails": _brief(state, "mails", rows, "sender", "subject", "label"), "found": len(rows)}


def search_mails(state: State, words: str) -> object:
    """Find mails whose subject has all of these words."""
    rows = _search(state, "mails", "subject", words)
    return {
        "mails": _brief(state, "mails", rows, "folder", "sender", "subject", "label"),
        "found": len(rows),
    }


def read_mail(state: State, mail_id: Identifier) -> object:
    """Show a mail with its text."""
    return show(state, "mails", need(state, "mails", mail_id))


def search_contacts(state: State, words: str) -> object:
    """Find contacts whose name has all of these words."""
    rows = _search(state, "contacts", "name", words)
    return {"contacts": _brief(state, "contacts", rows, "name", "firm"), "found": len(rows)}


def get_contact(state: State, contact_id: Identifier) -> object:
    """Show a contact: address, firm, phone and time zone."""
    return show(state, "contacts", need(state, "contacts", contact_id))


def free_busy(state: State, contact_id: Identifier, day: str, until_day: str = "") -> object:
    """Show when somebody is busy on a day of your employer, or from that day until another one.

    Times are in your employer's zone.
    """
    zone = owner_zone(state)
    contact = need(state, "contacts", contact_id)
    first, last = a_day(day), a_day(until_day or day)
    days = [first + timedelta(number) for number in range((last - first).days + 1)]
    if not 1 <= len(days) <= MOST_DAYS:
        raise ToolError(
            f"until_day is the same day or a later one, {MOST_DAYS} days in all at most"
        )
    for of in days:
        state.mark_read(f"calendars.{of.isoformat()}", contact_id)
    state.mark_read("contacts.zone", contact_id)
    spans = agenda.busy(
        state, contact_id, agenda.day_of(zone, first)[0], agenda.day_of(zone, last)[1]
    )
    return {
        "contact_zone": contact["zone"],
        "times_in": zone,
        "busy": [{"from": when(zone, s.start), "until": when(zone, s.end)} for s in spans],
    }


def list_events(state: State, day: str) -> object:
    """List your employer's meetings on a day; times are in your employer's zone."""
    owner, zone = state.get("owner"), owner_zone(state)
    of = a_day(day)
    begin, end = agenda.day_of(zone, of)
    state.mark_read(f"calendars.{of.isoformat()}", owner)
    return {
        "times_in": zone,
        "meetings": [
            {
                "id": span.meeting,
                "title": span.title,
                "from": when(zone, span.start),
                "until": when(zone, span.end),
            }
            for span in agenda.busy(state, owner, begin, end)
        ],
    }


def search_events(state: State, words: str) -> object:
    """Find single meetings and series whose title has all of these words."""
    events, series = (_search(state, table, "title", words) for table in ("events", "series"))
    return {
        "events": _brief(state, "events", events, "title"),
        "series": _brief(state, "series", series, "title"),
        "found": len(events) + len(series),
    }


def get_event(state: State, meeting_id: Identifier) -> object:
    """Show a single meeting (EVT-...) or a series (SER-...) with who organizes and attends it."""
    zone = owner_zone(state)
    people = [need(state, "contacts", key) for key in agenda.attendees(state, meeting_id)]
    who = _brief(state, "contacts", people, "name", "zone")
    if event := state.row("events", meeting_id):
        start = when(zone, zones.unstamp(event["starts_at"]))
        return {**show(state, "events", event), f"start in {zone}": start, "attendees": who}
    series = need(state, "series", meeting_id)
    days = [day for day, _ in agenda.occurrences(series)]
    moved = state.find("occurrences", {"series_id": meeting_id})
    changed = _brief(state, "occurrences", moved, "on_day", "status", "starts_at")
    return {**show(state, "series", series), "days": days, "changed": changed, "attendees": who}


def convert_time(state: State, day: str, time: str, from_zone: str, to_zone: str) -> object:  # noqa: ARG001 - a tool takes the state
    """Say what the clocks of one zone show at a time of another, summer time included."""
    return {"time": when(a_zone(to_zone), an_instant(day, time, from_zone))}


def search_tasks(state: State, words: str) -> object:
    """Find tasks whose title has all of these words."""
    rows = _search(state, "tasks", "title", words)
    return {"tasks": _brief(state, "tasks", rows, "title", "due_on", "status"), "found": len(rows)}


def get_task(state: State, task_id: Identifier) -> object:
    """Show a task."""
    return show(state, "tasks", need(state, "tasks", task_id))


def search_accounts(state: State, words: str) -> object:
    """Find the accounts of customers whose name has all of these words."""
    rows = _search(state, "accounts", "name", words)
    return {"accounts": _brief(state, "accounts", rows, "name"), "found": len(rows)}


def get_account(state: State, account_id: Identifier) -> object:
    """Show a customer's account with its deals and activities."""
    account = show(state, "accounts", need(state, "accounts", account_id))
    mine = {"account_id": account_id}
    activities = state.find("activities", mine)
    return {
        **account,
        "deals": _brief(state, "deals", state.find("deals", mine), "title", "stage"),
        "activities": _brief(state, "activities", activities, "kind", "note"),
    }


def search_deals(state: State, words: str) -> object:
    """Find deals whose title has all of these words."""
    rows = _search(state, "deals", "title", words)
    return {
        "deals": _brief(state, "deals", rows, "title", "account_id", "stage"),
        "found": len(rows),
    }


def get_deal(state: State, deal_id: Identifier) -> object:
    """Show a deal: its account, stage, amount and seller."""
    return show(state, "deals", need(state, "deals", deal_id))


LOOKUPS = (
    list_mails, search_mails, read_mail, search_contacts, get_contact, free_busy, list_events,
    search_events, get_event, convert_time, search_tasks, get_task, search_accounts, get_account,
    search_deals, get_deal,
)  # fmt: skip
