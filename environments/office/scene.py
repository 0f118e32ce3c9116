"""Puts meetings into the world, and knows which days and titles are left."""

from dataclasses import dataclass
from datetime import date, timedelta

from gymsuite.worlds.draws import Draws, mint
from gymsuite.worlds.rows import need
from gymsuite.worlds.state import State

from . import zones
from .asks import today
from .lookups import owner_zone
from .policy import SATURDAY, Policy

_BUSY = ("Private", "Dentist", "Call", "Travel", "Interview", "Lunch out", "Errand", "Course")
_FAR_MINUTES = 330


@dataclass
class Scene:
    """A task's world while it is being set up."""

    state: State
    draws: Draws
    split: str
    policy: Policy
    titles: list[str]
    """Titles that nothing has yet."""

    @property
    def owner(self) -> str:
        """Whose office it is."""
        return self.state.get("owner")

    @property
    def zone(self) -> str:
        """The zone of the owner."""
        return owner_zone(self.state)

    @property
    def today(self) -> date:
        """The owner's day on which the episode begins."""
        return today(self.state)

    def colleagues(self) -> list[str]:
        """The contacts of the owner's firm."""
        firm = need(self.state, "contacts", self.owner)["firm"]
        rows = self.state.find("contacts", {"firm": firm})
        return [row["id"] for row in rows if row["id"] != self.owner]

    def outsiders(self) -> list[str]:
        """The contacts of other firms."""
        ours = {*self.colleagues(), self.owner}
        return [row["id"] for row in self.state.find("contacts", {}) if row["id"] not in ours]

    def near(self, people: list[str]) -> list[str]:
        """Those whose office hours meet the owner's, if there are enough."""
        here = zones.ZONES[self.zone].offset
        rows = self.state.find("contacts", {})
        offsets = {row["id"]: zones.ZONES[row["zone"]].offset for row in rows}
        found = [key for key in people if abs(offsets[key] - here) <= _FAR_MINUTES]
        return found if len(found) > 2 else people  # noqa: PLR2004 - a meeting's worth of people

    def day(self, *, focus: bool = False, low: int = 1, high: int = 40) -> date:
        """A working day of the owner, low to high days ahead: the focus day, or none."""
        first = self.today + timedelta(low)
        days = [first + timedelta(number) for number in range(max(7, high - low + 1))]
        fits = [
            day
            for day in days
            if day.weekday() < SATURDAY and (day.weekday() == self.policy.focus_day) == focus
        ]
        return self.draws.choice(fits)


def put_event(scene: Scene, title: str, start: int, minutes: int, people: list[str]) -> str:
    """A meeting that the first of the people organizes."""
    key = mint("EVT", scene.state.get("seed"), title, start, people[0])
    scene.state.put(
        "events",
        {
            "id": key,
            "title": title,
            "starts_at": zones.stamp(start),
            "minutes": minutes,
            "organizer_id": people[0],
            "status": "planned",
        },
    )
    _attend(scene, key, people)
    return key


def put_series(  # noqa: PLR0913 - the parts of a series
    scene: Scene, title: str, *, first: date, start: int, zone: str, minutes: int, people: list[str]
) -> str:
    """A weekly series that the first of the people organizes."""
    key = mint("SER", scene.state.get("seed"), title)
    scene.state.put(
        "series",
        {
            "id": key,
            "title": title,
            "first_day": first.isoformat(),
            "start": zones.hhmm(start),
            "zone": zone,
            "minutes": minutes,
            "every_days": 7,
            "times": scene.draws.between(8, 14),
            "organizer_id": people[0],
        },
    )
    _attend(scene, key, people)
    return key


def _attend(scene: Scene, meeting: str, people: list[str]) -> None:
    for key in people:
        row = {"id": mint("ATT", meeting, key), "meeting_id": meeting, "contact_id": key}
        scene.state.put("attendees", row)


def crowd(scene: Scene, people: list[str], day: date, most: int) -> None:
    """Give each of the people something to do on a day, and the owner a little more."""
    draws = scene.draws
    for key in people:
        zone = need(scene.state, "contacts", key)["zone"]
        for _ in range(draws.between(1, most) + (key == scene.owner)):
            minute = draws.between(8 * 4, 17 * 4) * 15
            start = zones.at(zone, day, minute)
            if start is not None:
                put_event(scene, draws.choice(_BUSY), start, draws.choice((30, 45, 60)), [key])
