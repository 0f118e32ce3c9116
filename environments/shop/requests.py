"""What a request is called, how it is carried out, and how one sees that it is over."""

from dataclasses import dataclass
from typing import Any

from gymsuite.types import ToolCall
from gymsuite.worlds.draws import mint
from gymsuite.worlds.gold import Entity
from gymsuite.worlds.plans import call
from gymsuite.worlds.rows import need
from gymsuite.worlds.state import State
from gymsuite.worlds.text import dollars

from .facts import Ask
from .policy import Decision

BOOKINGS = ("change_flight", "cancel_booking", "add_bags")


@dataclass(frozen=True)
class Named:
    """What a request is about, in words, and the rows that those words describe."""

    what: str
    target: str
    entities: tuple[Entity, ...]


def owner_row(state: State, ask: Ask) -> tuple[str, dict[str, Any]]:
    """The order or booking behind a request, with its table."""
    if ask.request in BOOKINGS:
        return "bookings", need(state, "bookings", ask.subject)
    item = state.row("order_items", ask.subject)
    return "orders", need(state, "orders", item["order_id"] if item else ask.subject)


def by_id(state: State, ask: Ask) -> Named:
    """Named by its number."""
    table, row = owner_row(state, ask)
    kind = "booking" if table == "bookings" else "order"
    entity = Entity(table=table, where={"id": row["id"]})
    return Named(f"{kind} {row['id']}", _target(state, ask), (entity,))


def by_description(state: State, ask: Ask) -> Named:
    """Named by what is in it: no number is given."""
    table, row = owner_row(state, ask)
    if table == "bookings":
        flight = need(state, "flights", row["flight_id"])
        route = f"{flight['origin']} to {flight['destination']}"
        what = f"my flight {route} on {flight['departs_at'][:10]}"
        entity = Entity(table="bookings", where={"flight_id": flight["id"]})
        return Named(what, _target(state, ask), (entity,))
    item = _first_item(state, ask, row)
    variant = need(state, "variants", item["variant_id"])
    product = need(state, "products", variant["product_id"])["name"]
    thing = f"the {product}"
    if ask.subject == row["id"]:
        thing = f"the order with {thing} in it"
    entities = (
        Entity(table="products", where={"name": product}),
        Entity(table="order_items", where={"variant_id": variant["id"]}),
    )
    return Named(thing, _target(state, ask), entities)


def _first_item(state: State, ask: Ask, order: dict[str, Any]) -> dict[str, Any]:
    """The item by which an order is described: the one that no other order has."""
    if ask.subject != order["id"]:
        return need(state, "order_items", ask.subject)
    items = state.find("order_items", {"order_id": order["id"]})
    filler = state.get("filler")
    return next(
        item
        for item in items
        if need(state, "variants", item["variant_id"])["product_id"] != filler
    )


def _target(state: State, ask: Ask) -> str:
    match ask.request:
        case "change_address":
            row = need(state, "addresses", ask.target)
            return f"{row['street']}, {row['city']}"
        case "change_payment":
            return str(need(state, "payment_methods", ask.target)["label"])
        case "exchange":
            return str(need(state, "variants", ask.target)["options"])
        case "change_flight":
            return str(need(state, "flights", ask.target)["departs_at"][:16].replace("T", " "))
        case "add_bags":
            return "one bag" if ask.more_bags == 1 else f"{ask.more_bags} bags"
    return ask.target


def reading(state: State, ask: Ask) -> list[ToolCall]:
    """The lookups that a decision on it needs, the customer's aside."""
    table, row = owner_row(state, ask)
    if table == "bookings":
        calls = [call("get_booking", booking_id=row["id"])]
        if ask.request == "change_flight":
            new = need(state, "flights", ask.target)
            where = {"origin": new["origin"], "destination": new["destination"]}
            calls.append(call("search_flights", **where, day=new["departs_at"][:10]))
        return calls
    calls = [call("get_order", order_id=row["id"])]
    if ask.request == "exchange":
        item = need(state, "order_items", ask.subject)
        product = need(state, "variants", item["variant_id"])["product_id"]
        calls.append(call("get_product", product_id=product))
    if ask.request == "coupon":
        calls.append(call("get_coupon", code=ask.target))
    return calls


def writing(state: State, ask: Ask, decision: Decision) -> ToolCall:
    """The one write that the decision asks for."""
    if decision.verdict == "handoff":
        return call("transfer_to_human", subject_id=ask.subject, reason=decision.reason)
    if decision.verdict == "decline":
        return call(
            "decline_request",
            subject_id=ask.subject,
            request=ask.request,
            reason=decision.reason,
        )
    return _granted(state, ask, decision.amount_cents)


def _granted(state: State, ask: Ask, cents: int) -> ToolCall:  # noqa: PLR0911 - a table
    _, row = owner_row(state, ask)
    back_to = _refund_method(state, ask, row)
    match ask.request:
        case "change_address":
            return call("change_order_address", order_id=ask.subject, address_id=ask.target)
        case "change_payment":
            return call("change_order_payment", order_id=ask.subject, payment_id=ask.target)
        case "cancel_order":
            return call(
                "cancel_order", order_id=ask.subject, payment_id=back_to, refund_cents=-cents
            )
        case "return":
            return call("return_item", item_id=ask.subject, payment_id=back_to, refund_cents=-cents)
        case "exchange":
            return call(
                "exchange_item",
                item_id=ask.subject,
                new_variant_id=ask.target,
                payment_id=row["payment_id"] if cents > 0 else back_to,
                difference_cents=cents,
            )
        case "late_credit":
            credit = mint("PAY", ask.customer, "store_credit")
            return call(
                "credit_late_delivery", order_id=ask.subject, payment_id=credit, amount_cents=-cents
            )
        case "coupon":
            return call(
                "apply_coupon", order_id=ask.subject, code=ask.target, discount_cents=-cents
            )
        case "change_flight":
            return call(
                "change_flight", booking_id=ask.subject, flight_id=ask.target, charge_cents=cents
            )
        case "cancel_booking":
            return call(
                "cancel_booking", booking_id=ask.subject, payment_id=back_to, refund_cents=-cents
            )
    return call("add_bags", booking_id=ask.subject, more_bags=ask.more_bags, charge_cents=cents)


def _refund_method(state: State, ask: Ask, row: dict[str, Any]) -> str:
    method = need(state, "payment_methods", row["payment_id"])
    return str(method["id"]) if method["active"] else mint("PAY", ask.customer, "store_credit")


def telling(ask: Ask, decision: Decision) -> str:
    """What the customer is told after the write."""
    what = ask.request.replace("_", " ")
    if decision.verdict == "handoff":
        return f"I have handed your {what} request to a human colleague."
    if decision.verdict == "decline":
        return f"I have recorded that your {what} request is declined: {_words(decision)}."
    if not decision.amount_cents:
        return f"Your {what} request is carried out, at no cost."
    verb = "charged" if decision.amount_cents > 0 else "refunded or credited"
    return f"Your {what} request is carried out; {dollars(decision.amount_cents)} is {verb}."


def refusing(decision: Decision) -> str:
    """What the customer is told before a request is declined."""
    return f"I am sorry, that is not possible: {_words(decision)}."


def _words(decision: Decision) -> str:
    return decision.reason.replace("_", " ")


def signs(state: State, ask: Ask) -> tuple[Entity, ...]:
    """The rows that show that a request is over, whether granted, declined or handed off."""
    ends = (
        Entity(table="declines", where={"subject_id": ask.subject}),
        Entity(table="handoffs", where={"subject_id": ask.subject}),
    )
    done = _done(state, ask)
    return ends if state.find(done.table, done.where) else (done, *ends)


def _done(state: State, ask: Ask) -> Entity:
    if ask.request == "late_credit":
        return Entity(table="refunds", where={"subject_id": ask.subject, "reason": "late"})
    table, column, value = {
        "change_address": ("orders", "address_id", ask.target),
        "change_payment": ("orders", "payment_id", ask.target),
        "cancel_order": ("orders", "status", "cancelled"),
        "return": ("order_items", "status", "returned"),
        "exchange": ("order_items", "variant_id", ask.target),
        "change_flight": ("bookings", "flight_id", ask.target),
        "cancel_booking": ("bookings", "status", "cancelled"),
    }.get(ask.request, ("", "", ""))
    if ask.request == "coupon":
        coupon = state.find_folded("coupons", "code", ask.target)[0]["id"]
        table, column, value = "orders", "coupon_id", coupon
    if ask.request == "add_bags":
        bags = need(state, "bookings", ask.subject)["bags"] + ask.more_bags
        return Entity(table="bookings", where={"id": ask.subject, "bags": bags})
    return Entity(table=table, where={"id": ask.subject, column: value})
