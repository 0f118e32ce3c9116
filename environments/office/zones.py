"""Time zones with their summer time, by rules of our own: a machine's time zone data has no say."""

from datetime import date, timedelta
from functools import lru_cache
from typing import NamedTuple

MINUTES_A_DAY = 1440
_EPOCH = date(1970, 1, 1).toordinal()


class Switch(NamedTuple):
    """The Sunday of a month on which clocks change, and the minute of that day.

    `nth` counts from 1; 0 is the last one. The minute is one of UTC, or of the standard time.
    """

    month: int
    nth: int
    minute: int
    utc: bool = False


class Summer(NamedTuple):
    """From when until when clocks are an hour ahead."""

    begins: Switch
    ends: Switch


class Zone(NamedTuple):
    """A standard offset from UTC in minutes, and when clocks are ahead of it."""

    offset: int
    summer: Summer | None = None


_EUROPE = Summer(Switch(3, 0, 60, utc=True), Switch(10, 0, 60, utc=True))
_AMERICA = Summer(Switch(3, 2, 120), Switch(11, 1, 60))
_AUSTRALIA = Summer(Switch(10, 1, 120), Switch(4, 1, 120))
_NEW_ZEALAND = Summer(Switch(9, 0, 120), Switch(4, 1, 120))

ZONES = {
    "Europe/Berlin": Zone(60, _EUROPE),
    "America/New_York": Zone(-300, _AMERICA),
    "Asia/Dubai": Zone(240),
    "Asia/Kolkata": Zone(330),
    "Europe/Lisbon": Zone(0, _EUROPE),
    "Europe/Athens": Zone(120, _EUROPE),
    "Australia/Sydney": Zone(600, _AUSTRALIA),
    "Asia/Kathmandu": Zone(345),
    "Europe/London": Zone(0, _EUROPE),
    "America/Halifax": Zone(-240, _AMERICA),
    "Europe/Madrid": Zone(60, _EUROPE),
    "Africa/Lagos": Zone(60),
    "America/St_Johns": Zone(-210, _AMERICA),
    "Africa/Nairobi": Zone(180),
    "Australia/Adelaide": Zone(570, _AUSTRALIA),
    "Pacific/Auckland": Zone(720, _NEW_ZEALAND),
    "Europe/Rome": Zone(60, _EUROPE),
    "America/Chicago": Zone(-360, _AMERICA),
    "Asia/Karachi": Zone(300),
    "Europe/Helsinki": Zone(120, _EUROPE),
    "Africa/Johannesburg": Zone(120),
    "Europe/Vienna": Zone(60, _EUROPE),
    "Asia/Tokyo": Zone(540),
    "Australia/Brisbane": Zone(600),
}
"""By their usual names, with the rules as they stood in 2024."""


def offset(zone: str, instant: int) -> int:
    """How far a zone's clocks are ahead of UTC, in minutes. An instant is in minutes since 1970."""
    of = ZONES[zone]
    if of.summer is None:
        return of.offset
    year = _day((instant + of.offset) // MINUTES_A_DAY).year
    begins, ends = summer_of(zone, year)
    northern = begins < ends
    ahead = begins <= instant < ends if northern else not ends <= instant < begins
    return of.offset + 60 * ahead


@lru_cache(maxsize=1000)
def summer_of(zone: str, year: int) -> tuple[int, int]:
    """The instants of a year at which a zone's clocks go forward and back."""
    of = ZONES[zone]
    if of.summer is None:
        raise ValueError(f"the clocks of {zone} never change")
    begins, ends = (_instant(switch, year, of.offset) for switch in of.summer)
    return begins, ends


def _instant(switch: Switch, year: int, standard: int) -> int:
    first = date(year, switch.month, 1)
    sunday = first + timedelta((6 - first.weekday()) % 7)
    if switch.nth:
        sunday += timedelta(7 * (switch.nth - 1))
    else:
        while (later := sunday + timedelta(7)).month == switch.month:
            sunday = later
    at = midnight(sunday) + switch.minute
    return at if switch.utc else at - standard


def at(zone: str, day: date, minute: int) -> int | None:
    """The instant of a minute of a zone's day; of two the first, and None where clocks skip it."""
    local = midnight(day) + minute
    standard = ZONES[zone].offset
    for ahead in (standard + 60, standard):
        if offset(zone, local - ahead) == ahead:
            return local - ahead
    return None


def clock(zone: str, instant: int) -> tuple[date, int]:
    """The day and the minute of the day that a zone's clocks show."""
    days, minute = divmod(instant + offset(zone, instant), MINUTES_A_DAY)
    return _day(days), minute


def midnight(day: date) -> int:
    """The instant at which a day begins in UTC."""
    return (day.toordinal() - _EPOCH) * MINUTES_A_DAY


def stamp(instant: int) -> str:
    """An instant as text, such as 2031-05-04T12:00:00Z."""
    days, minute = divmod(instant, MINUTES_A_DAY)
    return f"{_day(days).isoformat()}T{hhmm(minute)}:00Z"


def unstamp(text: str) -> int:
    """The instant of such a text, without its seconds."""
    return midnight(date.fromisoformat(text[:10])) + minutes(text[11:16])


def hhmm(minute: int) -> str:
    """A minute of the day as clocks show it."""
    return f"{minute // 60:02}:{minute % 60:02}"


def minutes(text: str) -> int:
    """The minute of the day that a text such as 09:30 means."""
    hour, minute = text.split(":")
    return int(hour) * 60 + int(minute)


def _day(days: int) -> date:
    return date.fromordinal(days + _EPOCH)
