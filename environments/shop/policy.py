"""The parameters of the desk's policy, and what its rules look at."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from gymsuite.worlds.draws import Draws
from gymsuite.worlds.splits import share

TIERS = ("basic", "silver", "gold")
CABINS = ("basic", "standard", "flex")
CATEGORIES = ("electronics", "clothing", "home", "outdoor", "toys")
REQUESTS = (
    "change_address", "change_payment", "cancel_order", "return", "exchange", "late_credit",
    "coupon", "change_flight", "cancel_booking", "add_bags",
)  # fmt: skip


@dataclass(frozen=True)
class Policy:
    """The parameters of one episode."""

    return_days: int
    silver_extra_days: int
    gold_extra_days: int
    fee_percent: int
    electronics_fee_percent: int
    final_sale: str
    exchange_days: int
    refund_limit_cents: int
    late_days: int
    late_percent: int
    change_fee_cents: int
    change_hours: int
    free_cancel_hours: int
    cancel_percent: int
    bag_fee_cents: int
    silver_free_bags: int
    gold_free_bags: int
    most_bags: int

    def days_to_return(self, tier: str) -> int:
        """How long a customer of this tier may return an item."""
        extra = {"silver": self.silver_extra_days, "gold": self.gold_extra_days}
        return self.return_days + extra.get(tier, 0)

    def fee(self, tier: str, category: str) -> int:
        """The restocking fee in percent of the price."""
        if tier == "gold":
            return 0
        return self.electronics_fee_percent if category == "electronics" else self.fee_percent

    def free_bags(self, tier: str) -> int:
        """How many bags fly for free."""
        return {"silver": self.silver_free_bags, "gold": self.gold_free_bags}.get(tier, 0)


_VALUES: Mapping[str, tuple[int, ...]] = {
    "return_days": (14, 20, 30, 25, 18, 28, 12, 40),
    "silver_extra_days": (5, 7, 10, 3, 6, 4, 8, 9),
    "gold_extra_days": (15, 30, 20, 14, 21, 16, 25, 12),
    "fee_percent": (10, 5, 8, 12, 6, 9, 7, 15),
    "electronics_fee_percent": (15, 20, 18, 25, 16, 22, 30, 14),
    "exchange_days": (75, 80, 90, 100, 85, 95, 110, 120),
    "refund_limit_cents": (25_000, 30_000, 22_500, 27_500, 26_000, 23_500, 21_000, 32_000),
    "late_days": (3, 5, 2, 4, 6, 7, 8, 9),
    "late_percent": (10, 15, 5, 20, 12, 8, 25, 6),
    "change_fee_cents": (4_000, 5_500, 7_500, 3_500, 6_000, 4_500, 8_000, 2_500),
    "change_hours": (24, 12, 48, 36, 18, 30, 6, 60),
    "free_cancel_hours": (24, 48, 12, 36, 18, 30, 6, 72),
    "cancel_percent": (20, 25, 30, 15, 22, 28, 40, 35),
    "bag_fee_cents": (3_000, 3_500, 4_200, 2_500, 3_200, 2_800, 4_500, 5_000),
    "silver_free_bags": (1, 1, 1, 1, 1, 1, 1, 1),
    "gold_free_bags": (2, 2, 3, 3, 2, 3, 2, 3),
    "most_bags": (4, 5, 4, 5, 4, 5, 4, 5),
}


def draw_policy(draws: Draws, split: str) -> Policy:
    """The parameters of a task, from the values that belong to its split."""
    values = {name: draws.choice(share(split, options)) for name, options in _VALUES.items()}
    return Policy(final_sale=draws.choice(CATEGORIES[1:]), **values)


@dataclass(frozen=True)
class Facts:
    """What the rules look at. A request leaves alone what does not concern it."""

    own: bool = True
    tier: str = "basic"
    status: str = ""
    category: str = ""
    days_since_delivery: int = 0
    days_late: int = 0
    price_cents: int = 0
    new_price_cents: int = 0
    shipping_cents: int = 0
    balance_cents: int | None = None
    stock: int = 1
    other_country: bool = False
    credited: bool = False
    coupon_expired: bool = False
    coupon_used: bool = False
    coupon_minimum_cents: int = 0
    percent: int = 0
    cabin: str = ""
    hours_to_departure: int = 0
    hours_since_booking: int = 0
    insured: bool = False
    seats: int = 1
    bags: int = 0
    more_bags: int = 0


class Decision(NamedTuple):
    """What the policy says: grant at an amount (a refund is negative), decline or hand off."""

    verdict: str
    reason: str = ""
    amount_cents: int = 0
