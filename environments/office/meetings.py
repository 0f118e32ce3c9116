"""The tools that change the calendar: they keep it, the rules are the agent's to keep."""

from typing import Annotated, Any, Literal

from pydantic import Field, Strict

from gymsuite.tools import ToolError
from gymsuite.worlds.rows import need
from gymsuite.worlds.state import State
from gymsuite.worlds.text import Identifier

from . import agenda, zones
from .lookups import a_day, a_zone, an_instant, owner_zone, when

People = Annotated[list[Identifier], Field(max_length=20)]
Minutes = Annotated[int, Strict(), Field(ge=5, le=480)]
Times = Annotated[int, Strict(), Field(ge=2, le=60)]


def create_event(  # noqa: PLR0913, PLR0917 - the parts of a meeting
    state: State,
    title: str,
    day: str,
    start: str,
    zone: str,
    minutes: Minutes,
    attendee_ids: People,
) -> object:
    """Arrange a single meeting of your employer with contacts; the time is one of the zone."""
    instant = an_instant(day, start, zone)
    owner = state.get("owner")
    row = {"title": _titled(title), "starts_at": zones.stamp(instant), "minutes": minutes}
    key = state.add("events", {**row, "organizer_id": owner, "status": "planned"}, title)
    _invite(state, key, [owner, *attendee_ids])
    return {"arranged": key, "start": when(owner_zone(state), instant)}


def create_series(  # noqa: PLR0913, PLR0917 - the parts of a series
    state: State,
    title: str,
    first_day: str,
    start: str,
    zone: str,
    minutes: Minutes,
    repeats: Literal["weekly", "every two weeks"],
    times: Times,
    attendee_ids: People,
) -> object:
    """Arrange a series of meetings that keep their time on the clocks of the zone."""
    an_instant(first_day, start, zone)
    owner = state.get("owner")
    row = {
        "title": _titled(title),
        "first_day": a_day(first_day).isoformat(),
        "start": zones.hhmm(zones.minutes(start.strip())),
        "zone": a_zone(zone),
        "minutes": minutes,
        "every_days": 7 if repeats == "weekly" else 14,
        "times": times,
        "organizer_id": owner,
    }
    key = state.add("series", row, title)
    _invite(state, key, [owner, *attendee_ids])
    return {"arranged": key}


def move_event(state: State, event_id: Identifier, day: str, start: str, zone: str) -> object:
    """Move a single meeting; the time is one of the zone."""
    event = _planned(state, event_id)
    instant = an_instant(day, start, zone)
    state.update("events", event["id"], {"starts_at": zones.stamp(instant)})
    return {"moved": event_id, "start": when(owner_zone(state), instant)}


def cancel_event(state: State, event_id: Identifier) -> object:
    """Cancel a single meeting."""
    state.update("events", _planned(state, event_id)["id"], {"status": "cancelled"})
    return {"cancelled": event_id}


def move_occurrence(  # noqa: PLR0913, PLR0917 - which, and where to
    state: State, series_id: Identifier, on_day: str, day: str, start: str, zone: str
) -> object:
    """Move the one occurrence of a series that is on `on_day`; the time is one of the zone."""
    instant = an_instant(day, start, zone)
    row = {"status": "moved", "starts_at": zones.stamp(instant)}
    _except(state, series_id, on_day, row)
    return {"moved": series_id, "start": when(owner_zone(state), instant)}


def cancel_occurrence(state: State, series_id: Identifier, on_day: str) -> object:
    """Cancel the one occurrence of a series that is on `on_day`."""
    _except(state, series_id, on_day, {"status": "cancelled", "starts_at": None})
    return {"cancelled": series_id}


def add_attendee(state: State, meeting_id: Identifier, contact_id: Identifier) -> object:
    """Invite a contact to a meeting or series."""
    need(state, "events" if state.row("events", meeting_id) else "series", meeting_id)
    _invite(state, meeting_id, [contact_id])
    return {"invited": contact_id}


def remove_attendee(state: State, meeting_id: Identifier, contact_id: Identifier) -> object:
    """Take a contact off a meeting or series."""
    rows = state.find("attendees", {"meeting_id": meeting_id, "contact_id": contact_id})
    if not rows:
        raise ToolError(f"{contact_id} does not attend {meeting_id}")
    state.delete("attendees", rows[0]["id"])
    return {"removed": contact_id}


def _titled(title: str) -> str:
    if not title.strip():
        raise ToolError("a meeting needs a title")
    return title.strip()


def _planned(state: State, event_id: str) -> dict[str, Any]:
    event = need(state, "events", event_id)
    if event["status"] != "planned":
        raise ToolError(f"{event_id} is {event['status']}")
    return event


def _except(state: State, series_id: str, on_day: str, values: dict[str, Any]) -> None:
    series = need(state, "series", series_id)
    day = a_day(on_day).isoformat()
    days = [of for of, _ in agenda.occurrences(series)]
    if day not in days:
        raise ToolError(f"{series_id} has no occurrence on {day}; its days: {', '.join(days)}")
    rows = state.find("occurrences", {"series_id": series_id, "on_day": day})
    key = rows[0]["id"] if rows else state.mint("occurrences", series_id, day)
    state.put("occurrences", {"id": key, "series_id": series_id, "on_day": day, **values})


def _invite(state: State, meeting: str, people: list[str]) -> None:
    for contact in dict.fromkeys(people):
        need(state, "contacts", contact)
        row = {"meeting_id": meeting, "contact_id": contact}
        if not state.find("attendees", row):
            state.add("attendees", row, meeting, contact)


MEETINGS = (
    create_event, create_series, move_event, cancel_event, move_occurrence, cancel_occurrence,
    add_attendee, remove_attendee,
)  # fmt: skip
