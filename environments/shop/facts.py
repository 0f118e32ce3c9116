"""What the rules need to know of a request, read from the state."""

from dataclasses import dataclass
from datetime import date, datetime
from typing import Any

from gymsuite.worlds.rows import need
from gymsuite.worlds.state import State

from .policy import Decision, Facts, Policy
from .rules import decide


@dataclass(frozen=True)
class Ask:
    """One request of a customer: what it is, about which row, and what should become of it.

    `target` is the id of the wanted address, payment method, variant or flight, or a coupon code.
    """

    customer: str
    request: str
    subject: str
    target: str = ""
    more_bags: int = 0


def decision_on(state: State, policy: Policy, ask: Ask) -> Decision:
    """What the policy says about a request in this state."""
    return decide(policy, ask.request, facts_of(state, ask))


def facts_of(state: State, ask: Ask) -> Facts:
    """Everything the rules look at."""
    tier = need(state, "customers", ask.customer)["tier"]
    if booking := state.row("bookings", ask.subject):
        return _booking_facts(state, ask, booking, tier)
    item = state.row("order_items", ask.subject)
    order = need(state, "orders", item["order_id"] if item else ask.subject)
    return _order_facts(state, ask, order, item, tier)


def _order_facts(
    state: State, ask: Ask, order: dict[str, Any], item: dict[str, Any] | None, tier: str
) -> Facts:
    today = date.fromisoformat(state.now[:10])
    delivered = date.fromisoformat(order["delivered_on"]) if order["delivered_on"] else today
    items = [item] if item else state.find("order_items", {"order_id": order["id"]})
    target = state.row(_TARGETS.get(ask.request, "customers"), ask.target) or {}
    address = need(state, "addresses", order["address_id"])
    coupon = (state.find_folded("coupons", "code", ask.target) or [{}])[0]
    variant = need(state, "variants", items[0]["variant_id"])
    return Facts(
        own=order["customer_id"] == ask.customer,
        tier=tier,
        status=order["status"],
        category=need(state, "products", variant["product_id"])["category"],
        days_since_delivery=(today - delivered).days,
        days_late=(delivered - date.fromisoformat(order["promised_on"])).days,
        price_cents=sum(row["price_cents"] for row in items),
        new_price_cents=target.get("price_cents", 0),
        shipping_cents=order["shipping_cents"],
        balance_cents=target.get("balance_cents") if target.get("kind") == "gift_card" else None,
        stock=target.get("stock", 1),
        other_country=bool(target) and target.get("country", "") not in ("", address["country"]),
        credited=bool(state.find("refunds", {"subject_id": order["id"], "reason": "late"})),
        coupon_expired=coupon.get("expires_on", "9999") < today.isoformat(),
        coupon_used=order["coupon_id"] is not None,
        coupon_minimum_cents=coupon.get("minimum_cents", 0),
        percent=coupon.get("percent", 0),
    )


_TARGETS = {
    "change_address": "addresses",
    "change_payment": "payment_methods",
    "exchange": "variants",
    "change_flight": "flights",
}


def _booking_facts(state: State, ask: Ask, booking: dict[str, Any], tier: str) -> Facts:
    now = datetime.fromisoformat(state.now)
    flight = need(state, "flights", booking["flight_id"])
    target = state.row("flights", ask.target) or {}
    route = ("origin", "destination", "cabin")
    fits = not target or all(target[name] == flight[name] for name in route)
    return Facts(
        own=booking["customer_id"] == ask.customer,
        tier=tier,
        status=booking["status"],
        price_cents=booking["fare_cents"],
        new_price_cents=target.get("fare_cents", 0),
        cabin=flight["cabin"],
        hours_to_departure=_hours(flight["departs_at"], now),
        hours_since_booking=-_hours(booking["booked_at"], now),
        insured=bool(booking["insured"]),
        seats=target.get("seats", 1) if fits else 0,
        bags=booking["bags"],
        more_bags=ask.more_bags,
    )


def _hours(at: str, now: datetime) -> int:
    """Whole hours from now to a moment, rounded toward now."""
    seconds = (datetime.fromisoformat(at) - now).total_seconds()
    return int(seconds / 3600)
