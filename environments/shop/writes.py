"""The tools that change something: they keep the books, the policy is the agent's to keep."""

from typing import Annotated, Any, Literal

from pydantic import Field, Strict

from gymsuite.tools import ToolError
from gymsuite.worlds.rows import change, need
from gymsuite.worlds.state import State
from gymsuite.worlds.text import Identifier

Cents = Annotated[int, Strict(), Field(ge=0, le=100_000_000)]
SignedCents = Annotated[int, Strict(), Field(ge=-100_000_000, le=100_000_000)]
Bags = Annotated[int, Strict(), Field(ge=1, le=10)]
RequestName = Literal[
    "change_address", "change_payment", "cancel_order", "return", "exchange", "late_credit",
    "coupon", "change_flight", "cancel_booking", "add_bags",
]  # fmt: skip
Reason = Literal[
    "not_your_order", "not_pending", "not_delivered", "other_country", "insufficient_balance",
    "final_sale", "window_passed", "out_of_stock", "not_late", "already_credited",
    "coupon_expired", "coupon_already_used", "below_minimum", "already_flown",
    "fare_not_changeable", "too_close_to_departure", "no_seats", "fare_not_refundable",
    "too_many_bags",
]  # fmt: skip


def change_order_address(state: State, order_id: Identifier, address_id: Identifier) -> object:
    """Send an order to another of the customer's addresses."""
    order = need(state, "orders", order_id)
    _same_customer(order, need(state, "addresses", address_id))
    return change(state, "orders", order_id, {"address_id": address_id, "updated_at": state.now})


def change_order_payment(state: State, order_id: Identifier, payment_id: Identifier) -> object:
    """Move an order to another of the customer's payment methods."""
    order = need(state, "orders", order_id)
    _same_customer(order, need(state, "payment_methods", payment_id))
    return change(state, "orders", order_id, {"payment_id": payment_id, "updated_at": state.now})


def cancel_order(
    state: State, order_id: Identifier, payment_id: Identifier, refund_cents: Cents
) -> object:
    """Cancel an order that has not been sent, and refund an amount to a payment method."""
    order = need(state, "orders", order_id)
    if order["status"] not in ("pending", "processing"):
        raise ToolError(f"{order_id} is {order['status']}; it cannot be cancelled any more")
    for item in state.find("order_items", {"order_id": order_id}):
        state.update("order_items", item["id"], {"status": "cancelled"})
    _move(state, "refunds", order_id, order, payment_id, refund_cents, "cancelled")
    return change(state, "orders", order_id, {"status": "cancelled", "updated_at": state.now})


def return_item(
    state: State, item_id: Identifier, payment_id: Identifier, refund_cents: Cents
) -> object:
    """Take back one item of an order (item_id is of the form ITM-...), and refund an amount."""
    item, order = _delivered_item(state, item_id)
    _move(state, "refunds", item_id, order, payment_id, refund_cents, "returned")
    return change(state, "order_items", item["id"], {"status": "returned"})


def exchange_item(
    state: State,
    item_id: Identifier,
    new_variant_id: Identifier,
    payment_id: Identifier,
    difference_cents: SignedCents,
) -> object:
    """Exchange an item for another variant of its product.

    A difference above zero is charged to the payment method, one below zero refunded to it.
    """
    item, order = _delivered_item(state, item_id)
    new = need(state, "variants", new_variant_id)
    if new["product_id"] != need(state, "variants", item["variant_id"])["product_id"]:
        raise ToolError(f"{new_variant_id} is not a variant of the same product")
    if sold_out := state.find("sell_outs", {"variant_id": new_variant_id}):
        with state.unjournaled():
            state.update("variants", new_variant_id, {"stock": 0})
            state.delete("sell_outs", sold_out[0]["id"])
        return {"failed": f"the last {new_variant_id} was sold a moment ago"}
    if new["stock"] < 1:
        raise ToolError(f"{new_variant_id} is out of stock")
    state.update("variants", new_variant_id, {"stock": new["stock"] - 1})
    books = "charges" if difference_cents > 0 else "refunds"
    if difference_cents:
        _move(state, books, item_id, order, payment_id, abs(difference_cents), "exchanged")
    return change(
        state, "order_items", item_id, {"status": "exchanged", "variant_id": new_variant_id}
    )


def credit_late_delivery(
    state: State, order_id: Identifier, payment_id: Identifier, amount_cents: Cents
) -> object:
    """Credit a customer for the late delivery of an order."""
    order = need(state, "orders", order_id)
    return _move(state, "refunds", order_id, order, payment_id, amount_cents, "late")


def apply_coupon(state: State, order_id: Identifier, code: str, discount_cents: Cents) -> object:
    """Take a coupon's discount off an order."""
    need(state, "orders", order_id)
    coupons = state.find_folded("coupons", "code", code)
    if not coupons:
        raise ToolError(f"there is no coupon {code.strip()[:40]!r}")
    values = {"coupon_id": coupons[0]["id"], "discount_cents": discount_cents}
    return change(state, "orders", order_id, {**values, "updated_at": state.now})


def change_flight(
    state: State, booking_id: Identifier, flight_id: Identifier, charge_cents: Cents
) -> object:
    """Move a booking to another flight; the charge goes to the booking's payment method."""
    booking = need(state, "bookings", booking_id)
    new, old = need(state, "flights", flight_id), need(state, "flights", booking["flight_id"])
    if new["id"] == old["id"]:
        raise ToolError(f"{booking_id} is on {flight_id} already")
    if new["seats"] < 1:
        raise ToolError(f"{flight_id} has no seat left")
    state.update("flights", new["id"], {"seats": new["seats"] - 1})
    state.update("flights", old["id"], {"seats": old["seats"] + 1})
    if charge_cents:
        _move(state, "charges", booking_id, booking, booking["payment_id"], charge_cents, "changed")
    return change(state, "bookings", booking_id, {"flight_id": flight_id})


def cancel_booking(
    state: State, booking_id: Identifier, payment_id: Identifier, refund_cents: Cents
) -> object:
    """Cancel a booking and refund an amount to a payment method."""
    booking = need(state, "bookings", booking_id)
    if booking["status"] != "confirmed":
        raise ToolError(f"{booking_id} is {booking['status']}")
    _move(state, "refunds", booking_id, booking, payment_id, refund_cents, "cancelled")
    return change(state, "bookings", booking_id, {"status": "cancelled"})


def add_bags(state: State, booking_id: Identifier, more_bags: Bags, charge_cents: Cents) -> object:
    """Add bags to a booking; the charge goes to the booking's payment method."""
    booking = need(state, "bookings", booking_id)
    if charge_cents:
        _move(state, "charges", booking_id, booking, booking["payment_id"], charge_cents, "bags")
    return change(state, "bookings", booking_id, {"bags": booking["bags"] + more_bags})


def add_address(
    state: State, customer_id: Identifier, street: str, city: str, country: str
) -> object:
    """Add an address to a customer, such as street "12 Elm Street"."""
    need(state, "customers", customer_id)
    row = {"customer_id": customer_id, "street": street, "city": city, "country": country}
    return {"added": state.add("addresses", row, customer_id, street)}


def decline_request(
    state: State, subject_id: Identifier, request: RequestName, reason: Reason
) -> object:
    """Record that a request is declined.

    The subject is the item for a return or an exchange, else the order or the booking.
    """
    return _record(state, "declines", subject_id, {"request": request, "reason": reason})


def transfer_to_human(
    state: State, subject_id: Identifier, reason: Literal["amount_above_limit", "other"]
) -> object:
    """Hand a request to a human.

    The subject is the item for a return or an exchange, else the order or the booking.
    """
    return _record(state, "handoffs", subject_id, {"reason": reason})


def _record(state: State, table: str, subject_id: str, values: dict[str, Any]) -> object:
    if not any(state.row(of, subject_id) for of in ("orders", "order_items", "bookings")):
        raise ToolError(f"{subject_id!r} is no order, item or booking; look the id up first")
    row = {"subject_id": subject_id, **values, "at": state.now}
    return {"recorded": state.add(table, row, subject_id, *values.values())}


def _delivered_item(state: State, item_id: str) -> tuple[dict[str, Any], dict[str, Any]]:
    item = need(state, "order_items", item_id)
    order = need(state, "orders", item["order_id"])
    if item["status"] != "ordered" or order["status"] != "delivered":
        raise ToolError(f"{item_id} is {item['status']}, its order {order['status']}")
    return item, order


def _move(  # noqa: PLR0913, PLR0917 - one line of a ledger
    state: State,
    books: str,
    subject_id: str,
    owner: dict[str, Any],
    payment_id: str,
    amount_cents: int,
    reason: str,
) -> object:
    method = need(state, "payment_methods", payment_id)
    _same_customer(owner, method)
    if not method["active"]:
        raise ToolError(f"{payment_id} is no longer active")
    row = {
        "subject_id": subject_id,
        "reason": reason,
        "payment_id": payment_id,
        "amount_cents": amount_cents,
        "at": state.now,
    }
    return {"recorded": state.add(books, row, subject_id, reason)}


def _same_customer(row: dict[str, Any], other: dict[str, Any]) -> None:
    if row["customer_id"] != other["customer_id"]:
        raise ToolError(f"{other['id']} belongs to another customer than {row['id']}")


WRITES = (
    change_order_address, change_order_payment, cancel_order, return_item, exchange_item,
    credit_late_delivery, apply_coupon, change_flight, cancel_booking, add_bags, add_address,
    decline_request, transfer_to_human,
)  # fmt: skip
