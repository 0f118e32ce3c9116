"""What the greedy player does about a wish: the obvious call at the obvious price."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from gymsuite.types import ToolCall
from gymsuite.worlds.plans import call

Write = tuple[ToolCall, int]
"""A call, and the amount it moves."""


class Wish(NamedTuple):
    """One request, as far as a sentence gives it away."""

    request: str
    what: str
    target: str


@dataclass(frozen=True)
class Found:
    """What a wish is about: an order or booking, an item, the customer, and what was looked up."""

    row: Mapping[str, Any]
    item: Mapping[str, Any]
    who: Mapping[str, Any]
    looked_up: Mapping[str, Any]

    @property
    def total(self) -> int:
        """The sum of the items."""
        return sum(item["price_cents"] for item in self.row.get("items", ()))

    @property
    def paid_by(self) -> str:
        """The payment method of the order or booking."""
        return str(self.row["payment_id"])


def looking(wish: Wish, row: Mapping[str, Any], item: Mapping[str, Any] | None) -> ToolCall | None:
    """What has to be looked up before the write."""
    match wish.request:
        case "exchange" if item:
            return call("get_product", product_id=item["product_id"])
        case "coupon":
            return call("get_coupon", code=wish.target)
        case "change_flight" if day := _DAY.search(wish.target):
            flight = row["flight"]
            route = {"origin": flight["origin"], "destination": flight["destination"]}
            return call("search_flights", **route, day=day[1])
    return None


def writing(wish: Wish, found: Found) -> Write | None:
    """The call that grants a wish, or None where it is not understood."""
    return _WRITES[wish.request](wish, found)


_DAY = re.compile(r"(\d{4}-\d\d-\d\d) (\d\d:\d\d)")


def _address(wish: Wish, found: Found) -> Write | None:
    ids = [row["id"] for row in found.who["addresses"] if row["street"] in wish.target]
    order = found.row["id"]
    return (call("change_order_address", order_id=order, address_id=ids[0]), 0) if ids else None


def _payment(wish: Wish, found: Found) -> Write | None:
    ids = [row["id"] for row in found.who["payment_methods"] if row["label"] in wish.target]
    order = found.row["id"]
    return (call("change_order_payment", order_id=order, payment_id=ids[0]), 0) if ids else None


def _cancel(_: Wish, found: Found) -> Write | None:
    cents = found.total + found.row["shipping_cents"]
    ids = {"order_id": found.row["id"], "payment_id": found.paid_by}
    return call("cancel_order", **ids, refund_cents=cents), cents


def _return(_: Wish, found: Found) -> Write | None:
    cents = found.item["price_cents"]
    ids = {"item_id": found.item["id"], "payment_id": found.paid_by}
    return call("return_item", **ids, refund_cents=cents), cents


def _exchange(wish: Wish, found: Found) -> Write | None:
    fits = [v for v in found.looked_up.get("variants", ()) if v["options"] in wish.target]
    if not fits:
        return None
    cents = fits[0]["price_cents"] - found.item["price_cents"]
    ids = {"item_id": found.item["id"], "new_variant_id": fits[0]["id"]}
    return call("exchange_item", **ids, payment_id=found.paid_by, difference_cents=cents), cents


def _late(_: Wish, found: Found) -> Write | None:
    methods = found.who["payment_methods"]
    credit = next(row["id"] for row in methods if row["kind"] == "store_credit")
    cents = found.total // 10
    ids = {"order_id": found.row["id"], "payment_id": credit}
    return call("credit_late_delivery", **ids, amount_cents=cents), cents


def _coupon(wish: Wish, found: Found) -> Write | None:
    cents = found.total * found.looked_up.get("percent", 0) // 100
    ids = {"order_id": found.row["id"], "code": wish.target}
    return call("apply_coupon", **ids, discount_cents=cents), cents


def _flight(wish: Wish, found: Found) -> Write | None:
    day = _DAY.search(wish.target)
    flights = found.looked_up.get("flights", ())
    fits = [row for row in flights if day and row["departs_at"][11:16] == day[2]]
    if not fits:
        return None
    cents = max(0, fits[0]["fare_cents"] - found.row["fare_cents"])
    ids = {"booking_id": found.row["id"], "flight_id": fits[0]["id"]}
    return call("change_flight", **ids, charge_cents=cents), cents


def _booking(_: Wish, found: Found) -> Write | None:
    cents = found.row["fare_cents"]
    ids = {"booking_id": found.row["id"], "payment_id": found.paid_by}
    return call("cancel_booking", **ids, refund_cents=cents), cents


def _bags(wish: Wish, found: Found) -> Write | None:
    number = re.search(r"\d", wish.target)
    more = int(number[0]) if number else 1
    return call("add_bags", booking_id=found.row["id"], more_bags=more, charge_cents=0), 0


_WRITES: Mapping[str, Callable[[Wish, Found], Write | None]] = {
    "change_address": _address,
    "change_payment": _payment,
    "cancel_order": _cancel,
    "return": _return,
    "exchange": _exchange,
    "late_credit": _late,
    "coupon": _coupon,
    "change_flight": _flight,
    "cancel_booking": _booking,
    "add_bags": _bags,
}
