"""The parameters of the house rules, and what the rules look at."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from gymsuite.worlds.draws import Draws
from gymsuite.worlds.splits import share

REQUESTS = (
    "meeting", "move", "move_once", "cancel", "series", "discount", "win", "forward", "new_task",
)  # fmt: skip
TIERS = ("basic", "plus", "prime")
WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
SATURDAY = 5


@dataclass(frozen=True)
class Policy:
    """The parameters of one episode; times of day are minutes."""

    work_start: int
    work_end: int
    lunch_start: int
    lunch_minutes: int
    buffer: int
    longest: int
    notice_days: int
    change_hours: int
    most_people: int
    most_times: int
    basic_percent: int
    plus_percent: int
    prime_percent: int
    approval_cents: int
    onboard_days: int
    horizon_days: int
    focus_day: int

    def most_percent(self, tier: str) -> int:
        """The largest discount for an account of this tier."""
        more = {"plus": self.plus_percent, "prime": self.prime_percent}
        return more.get(tier, self.basic_percent)


_VALUES: Mapping[str, tuple[int, ...]] = {
    "work_start": (570, 540, 585, 555, 525, 510, 600, 480),
    "work_end": (1020, 1050, 1035, 1005, 1065, 990, 1080, 1095),
    "lunch_start": (720, 735, 750, 705, 765, 690, 780, 795),
    "lunch_minutes": (60, 45, 60, 45, 60, 45, 60, 45),
    "buffer": (10, 15, 20, 30, 5, 25, 35, 40),
    "longest": (90, 75, 100, 80, 95, 85, 70, 105),
    "notice_days": (3, 4, 5, 2, 6, 7, 8, 9),
    "change_hours": (24, 36, 48, 30, 42, 60, 72, 54),
    "most_people": (4, 5, 4, 5, 4, 5, 4, 5),
    "most_times": (6, 5, 7, 8, 9, 10, 4, 11),
    "basic_percent": (5, 4, 6, 3, 8, 7, 9, 10),
    "plus_percent": (12, 10, 14, 11, 13, 15, 16, 17),
    "prime_percent": (20, 18, 22, 24, 21, 23, 25, 26),
    "approval_cents": (600_000, 500_000, 700_000, 650_000, 550_000, 750_000, 450_000, 800_000),
    "onboard_days": (7, 10, 14, 5, 8, 12, 9, 11),
    "horizon_days": (60, 75, 90, 80, 70, 100, 50, 110),
}


def draw_policy(draws: Draws, split: str) -> Policy:
    """The parameters of a task, from the values that belong to its split."""
    values = {name: draws.choice(share(split, options)) for name, options in _VALUES.items()}
    return Policy(focus_day=draws.below(SATURDAY), **values)


@dataclass(frozen=True)
class Facts:
    """What the rules look at. A request leaves alone what does not concern it."""

    by_mail: bool = False
    genuine: bool = True
    organized: bool = True
    minutes: int = 0
    people: int = 0
    times: int = 0
    outside: bool = False
    days_ahead: int = 1_000
    hours_ahead: int = 24_000
    weekday: int = -1
    slot: int | None = 0
    in_hours: bool = True
    free: bool = True
    stage: str = ""
    tier: str = ""
    percent: int = 0
    amount_cents: int = 0
    contract: bool = True
    label: str = ""
    value: str | int = ""
    """What a request comes to if it is granted: an instant, an amount or a date."""


class Decision(NamedTuple):
    """What the rules say: grant with a value, decline, hand over or report."""

    verdict: str
    reason: str = ""
    value: str | int = ""
