"""What a granted request costs, with the text that says so."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from .policy import Facts, Policy


@dataclass(frozen=True)
class Price:
    """What a granted request costs the customer; below zero it is refunded."""

    request: str
    text: str
    cents: Callable[[Policy, Facts], int]


def _refund_of_return(policy: Policy, facts: Facts) -> int:
    return -(facts.price_cents * (100 - policy.fee(facts.tier, facts.category)) // 100)


def _refund_of_booking(policy: Policy, facts: Facts) -> int:
    if facts.insured or facts.hours_since_booking <= policy.free_cancel_hours:
        return -facts.price_cents
    return -(facts.price_cents * (100 - policy.cancel_percent) // 100)


def _price_of_bags(policy: Policy, facts: Facts) -> int:
    free = policy.free_bags(facts.tier)
    paid = max(0, facts.bags + facts.more_bags - free) - max(0, facts.bags - free)
    return paid * policy.bag_fee_cents


def _price_of_change(policy: Policy, facts: Facts) -> int:
    fee = 0 if facts.tier == "gold" else policy.change_fee_cents
    return fee + max(0, facts.new_price_cents - facts.price_cents)


PRICES: Mapping[str, Price] = {
    price.request: price
    for price in (
        Price("change_address", "", lambda _, __: 0),
        Price("change_payment", "", lambda _, __: 0),
        Price(
            "cancel_order",
            "The refund of a cancelled order is the sum of its items; shipping is refunded on top "
            "to silver and gold customers only.",
            lambda _, f: -(f.price_cents + (0 if f.tier == "basic" else f.shipping_cents)),
        ),
        Price(
            "return",
            "The refund of a returned item is its price less the restocking fee: {fee_percent} % "
            "of the price, {electronics_fee_percent} % for electronics, none for gold customers.",
            _refund_of_return,
        ),
        Price(
            "exchange",
            "There is no restocking fee for an exchange: the customer pays, or is refunded, "
            "exactly the difference between the new price and the price paid.",
            lambda _, f: f.new_price_cents - f.price_cents,
        ),
        Price(
            "late_credit",
            "The credit for a late delivery is {late_percent} % of the sum of the items.",
            lambda p, f: -(f.price_cents * p.late_percent // 100),
        ),
        Price(
            "coupon",
            "The discount of a coupon is its percentage of the sum of the items.",
            lambda _, f: -(f.price_cents * f.percent // 100),
        ),
        Price(
            "change_flight",
            "Changing a flight costs {change_fee} (nothing for gold customers) plus the "
            "difference if the new fare is higher; a lower fare is not refunded.",
            _price_of_change,
        ),
        Price(
            "cancel_booking",
            "A cancelled booking is refunded in full within {free_cancel_hours} hours of booking "
            "or when it is insured; otherwise {cancel_percent} % of the fare is kept.",
            _refund_of_booking,
        ),
        Price(
            "add_bags",
            "A bag costs {bag_fee}; {silver_free_bags} bag is free for silver customers and "
            "{gold_free_bags} for gold customers, counted with the bags already booked.",
            _price_of_bags,
        ),
    )
}
