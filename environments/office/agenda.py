"""Who is busy when: single events, series by the clocks of their zone, and their exceptions."""

from collections.abc import Iterator, Sequence
from datetime import date, timedelta
from typing import Any, NamedTuple

from gymsuite.worlds.state import State

from . import zones


class Span(NamedTuple):
    """A stretch of time, in instants, and what takes it."""

    start: int
    end: int
    title: str
    meeting: str


def busy(state: State, contact: str, begin: int, end: int) -> list[Span]:
    """What a contact attends between two instants, in order."""
    spans = [
        span
        for span in (*_events(state, contact), *_series(state, contact, begin, end))
        if span.start < end and begin < span.end
    ]
    return sorted(spans)


def _events(state: State, contact: str) -> Iterator[Span]:
    rows = state.all(
        "SELECT e.* FROM attendees a JOIN events e ON e.id = a.meeting_id "
        "WHERE a.contact_id = ? AND e.status = 'planned'",
        contact,
    )
    for row in rows:
        start = zones.unstamp(row["starts_at"])
        yield Span(start, start + row["minutes"], row["title"], row["id"])


def _series(state: State, contact: str, begin: int, end: int) -> Iterator[Span]:
    rows = state.all(
        "SELECT s.* FROM attendees a JOIN series s ON s.id = a.meeting_id WHERE a.contact_id = ?",
        contact,
    )
    for row in rows:
        moved = {o["on_day"]: o for o in state.find("occurrences", {"series_id": row["id"]})}
        for day, start in occurrences(row):
            near = begin - zones.MINUTES_A_DAY < start < end + zones.MINUTES_A_DAY
            if day in moved:
                if moved[day]["status"] == "moved":
                    yield _span(row, zones.unstamp(moved[day]["starts_at"]))
            elif near:
                yield _span(row, start)


def _span(row: dict[str, Any], start: int) -> Span:
    return Span(start, start + row["minutes"], row["title"], row["id"])


def occurrences(row: dict[str, Any]) -> list[tuple[str, int]]:
    """The days of a series with the instants at which its occurrences start, none moved."""
    first, minute = date.fromisoformat(row["first_day"]), zones.minutes(row["start"])
    days = [first + timedelta(row["every_days"] * number) for number in range(row["times"])]
    starts = [(day, zones.at(row["zone"], day, minute)) for day in days]
    return [(day.isoformat(), start) for day, start in starts if start is not None]


def attendees(state: State, meeting: str) -> list[str]:
    """The contacts who attend a meeting."""
    return [row["contact_id"] for row in state.find("attendees", {"meeting_id": meeting})]


def day_of(zone: str, day: date) -> tuple[int, int]:
    """The instants between which a zone has this day."""
    begin, end = zones.at(zone, day, 0), zones.at(zone, day + timedelta(1), 0)
    if begin is None or end is None:
        raise ValueError(f"the clocks of {zone} skip midnight of {day}")
    return begin, end


Occasion = tuple[str, int]
"""A meeting, or one occurrence of a series: its id and its start."""


def is_free(
    spans: Sequence[Span], start: int, end: int, buffer: int, without: Occasion | None = None
) -> bool:
    """Whether nothing is on between two instants and for a while before and after."""
    return all(
        (span.meeting, span.start) == without
        or span.end + buffer <= start
        or end + buffer <= span.start
        for span in spans
    )
