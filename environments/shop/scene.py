"""Puts a customer with orders and bookings into the world."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta

from gymsuite.worlds.draws import Draws, mint
from gymsuite.worlds.rows import need
from gymsuite.worlds.state import State

from .base import add_customer, add_flight
from .policy import TIERS, Policy


@dataclass
class Scene:
    """A task's world while it is being set up."""

    state: State
    draws: Draws
    split: str
    policy: Policy
    customer: str
    stranger: str
    products: list[str]
    """Products that nothing is about yet."""
    filler: str
    """What else is in the orders."""

    @property
    def today(self) -> date:
        """The day on which the episode begins."""
        return date.fromisoformat(self.state.now[:10])


def open_scene(
    state: State, draws: Draws, split: str, policy: Policy, free: Sequence[str]
) -> Scene:
    """A new customer, and another one whose affairs are none of the first one's business.

    `free` are products that nobody ordered; the cheapest, which comes first, fills up orders.
    """
    customer = add_customer(state, draws, split, draws.choice(TIERS))
    stranger = add_customer(state, draws, split, draws.choice(TIERS))
    if draws.chance(30):
        state.update("payment_methods", mint("PAY", customer, "wallet"), {"active": 0})
    filler, *products = free
    state.set("filler", filler)
    return Scene(state, draws, split, policy, customer, stranger, draws.shuffled(products), filler)


def put_order(  # noqa: PLR0913 - the facts of an order
    scene: Scene,
    key: str,
    product: str,
    owner: str,
    *,
    status: str,
    delivered: int = 0,
    late: int = 0,
    paid_by: str = "card",
) -> tuple[str, str]:
    """An order of one or two items, the first of this product; returns it and that item."""
    state, draws = scene.state, scene.draws
    order = mint("ORD", key)
    arrived = scene.today - timedelta(delivered)
    promised = arrived - timedelta(late)
    placed = min(promised - timedelta(4), arrived - timedelta(1))
    customer_addresses = state.find("addresses", {"customer_id": owner})
    home = max(
        customer_addresses,
        key=lambda a: sum(a["country"] == b["country"] for b in customer_addresses),
    )
    state.put(
        "orders",
        {
            "id": order,
            "customer_id": owner,
            "address_id": home["id"],
            "payment_id": mint("PAY", owner, paid_by),
            "coupon_id": None,
            "status": status,
            "placed_on": placed.isoformat(),
            "promised_on": promised.isoformat(),
            "delivered_on": arrived.isoformat() if status == "delivered" else None,
            "shipping_cents": draws.between(390, 1_490),
            "discount_cents": 0,
            "updated_at": state.now,
        },
    )
    for of in (product, scene.filler):
        variant = state.find("variants", {"product_id": of})[0]
        row = {"order_id": order, "variant_id": variant["id"], "status": "ordered"}
        price = variant["price_cents"] + draws.between(-300, 900)
        state.put("order_items", {"id": mint("ITM", order, of), **row, "price_cents": price})
    return order, mint("ITM", order, product)


def put_booking(scene: Scene, key: str, owner: str, *, hours: int, paid_by: str = "card") -> str:
    """A booking of a new flight that departs in so many hours."""
    state, draws = scene.state, scene.draws
    flight = mint("FLT", key)
    now = datetime.fromisoformat(state.now)
    departs = now + timedelta(hours=hours)
    row = need(state, "flights", add_flight(state, draws, scene.split, departs.date()))
    state.delete("flights", row["id"])
    state.put("flights", {**row, "id": flight, "departs_at": _stamp(departs)})
    ago = draws.choice((1, scene.policy.free_cancel_hours, scene.policy.free_cancel_hours + 2, 400))
    booked = _stamp(now - timedelta(hours=ago))
    booking = mint("BKG", key)
    state.put(
        "bookings",
        {
            "id": booking,
            "customer_id": owner,
            "flight_id": flight,
            "payment_id": mint("PAY", owner, paid_by),
            "fare_cents": row["fare_cents"],
            "bags": draws.below(4),
            "insured": int(draws.chance(20)),
            "status": "confirmed" if draws.chance(90) else draws.choice(("flown", "cancelled")),
            "booked_at": booked,
        },
    )
    return booking


def _stamp(at: datetime) -> str:
    return at.isoformat().replace("+00:00", "Z")
