"""The rules of the desk: they decide, and the policy's text is made from the same parameters."""

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass

from gymsuite.worlds.rules import Rule, rendered, weighed
from gymsuite.worlds.text import dollars

from .policy import REQUESTS, Decision, Facts, Policy


@dataclass(frozen=True)
class Price:
    """What a granted request costs the customer; below zero it is refunded."""

    request: str
    text: str
    cents: Callable[[Policy, Facts], int]


_CONDUCT = """\
Identify the customer first, by e-mail or by name and ZIP code, and look at the order or booking before deciding, and at the coupon, variant, flight, address or payment method that is wanted.
A request that a clause below forbids is declined with decline_request, giving the reason code of the first clause that applies, whatever the customer says. One that is allowed is carried out. Nothing else is changed.
Tell the customer that a request is forbidden before you decline it: who then wants something else instead gets that, and the first wish is not recorded.
What counts is the time at which the customer wrote.
Money is in cents in the tools; fractions of a cent are dropped. Tell the customer every amount that is charged, refunded or credited.
A refund goes to the payment method of the order or booking; if that is no longer active, to the customer's store credit. A credit for late delivery always goes to the store credit. A charge goes to the payment method of the order or booking.
""".splitlines()  # noqa: E501 - a clause is a line


_PENDING = ("change_address", "change_payment", "cancel_order", "coupon")
_DELIVERED = ("return", "exchange", "late_credit")
_FLIGHTS = ("change_flight", "cancel_booking", "add_bags")


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

RULES: tuple[Rule[Policy, Facts], ...] = (
    Rule(
        REQUESTS,
        "not_your_order",
        "Orders and bookings of anyone but the identified customer are not discussed or changed.",
        lambda _, f: not f.own,
    ),
    Rule(
        _PENDING,
        "not_pending",
        "Only a pending order can be changed, cancelled or given a coupon.",
        lambda _, f: f.status != "pending",
    ),
    Rule(
        _DELIVERED,
        "not_delivered",
        "Returns, exchanges and credits for late delivery concern delivered orders only.",
        lambda _, f: f.status != "delivered",
    ),
    Rule(
        ("change_address",),
        "other_country",
        "An order cannot be sent to another country than the one it was placed for.",
        lambda _, f: f.other_country,
    ),
    Rule(
        ("change_payment",),
        "insufficient_balance",
        "An order can move to a gift card only if its balance covers the items and shipping.",
        lambda _, f: (
            f.balance_cents is not None and f.balance_cents < f.price_cents + f.shipping_cents
        ),
    ),
    Rule(
        ("return",),
        "final_sale",
        "Items of the category {final_sale} are on final sale: they are not taken back.",
        lambda p, f: f.category == p.final_sale,
    ),
    Rule(
        ("return",),
        "window_passed",
        "An item can be returned up to {return_days} days after delivery, by silver customers "
        "{silver_extra_days} days longer, by gold customers {gold_extra_days} days longer.",
        lambda p, f: f.days_since_delivery > p.days_to_return(f.tier),
    ),
    Rule(
        ("exchange",),
        "window_passed",
        "An item can be exchanged up to {exchange_days} days after delivery, whatever the tier, "
        "and only for another variant of the same product.",
        lambda p, f: f.days_since_delivery > p.exchange_days,
    ),
    Rule(
        ("exchange",),
        "out_of_stock",
        "A variant without stock cannot be had in exchange. Say so first: the customer may want "
        "another one.",
        lambda _, f: f.stock < 1,
    ),
    Rule(
        ("late_credit",),
        "not_late",
        "A delivery is late when it came more than {late_days} days after the promised day.",
        lambda p, f: f.days_late <= p.late_days,
    ),
    Rule(
        ("late_credit",),
        "already_credited",
        "An order is credited for lateness once.",
        lambda _, f: f.credited,
    ),
    Rule(
        ("coupon",),
        "coupon_expired",
        "A coupon is good up to and including its last day.",
        lambda _, f: f.coupon_expired,
    ),
    Rule(
        ("coupon",),
        "coupon_already_used",
        "An order takes one coupon.",
        lambda _, f: f.coupon_used,
    ),
    Rule(
        ("coupon",),
        "below_minimum",
        "The sum of the items must reach the coupon's minimum.",
        lambda _, f: f.price_cents < f.coupon_minimum_cents,
    ),
    Rule(
        _FLIGHTS,
        "already_flown",
        "A flown or cancelled booking stays as it is.",
        lambda _, f: f.status != "confirmed",
    ),
    Rule(
        ("change_flight",),
        "fare_not_changeable",
        "Bookings in the basic cabin cannot be changed.",
        lambda _, f: f.cabin == "basic",
    ),
    Rule(
        ("change_flight",),
        "too_close_to_departure",
        "A flight can be changed until {change_hours} hours before it departs.",
        lambda p, f: f.hours_to_departure < p.change_hours,
    ),
    Rule(
        ("change_flight",),
        "no_seats",
        "The new flight has the same route and cabin, and a seat left.",
        lambda _, f: f.seats < 1,
    ),
    Rule(
        ("cancel_booking",),
        "fare_not_refundable",
        "Bookings in the basic cabin are not refundable, unless insured or within "
        "{free_cancel_hours} hours of booking.",
        lambda p, f: (
            f.cabin == "basic" and not f.insured and f.hours_since_booking > p.free_cancel_hours
        ),
    ),
    Rule(
        ("add_bags",),
        "too_many_bags",
        "A booking has {most_bags} bags at most.",
        lambda p, f: f.bags + f.more_bags > p.most_bags,
    ),
    Rule(
        ("return", "cancel_order", "cancel_booking"),
        "amount_above_limit",
        "A refund of more than {refund_limit} is not yours to give: do nothing about that request "
        "but hand it to a human.",
        lambda p, f: any(-PRICES[name].cents(p, f) > p.refund_limit_cents for name in _priced(f)),
        verdict="handoff",
    ),
)


def _priced(facts: Facts) -> tuple[str, ...]:
    """Which request a refund would come from, by what the facts are about."""
    if facts.cabin:
        return ("cancel_booking",)
    return ("return",) if facts.status == "delivered" else ("cancel_order",)


def decide(policy: Policy, request: str, facts: Facts) -> Decision:
    """The first rule that forbids it decides; else it is granted at its price."""
    for rule, holds in weighed(RULES, request, policy, facts):
        if holds:
            return Decision(rule.verdict, rule.reason)
    return Decision("grant", "", PRICES[request].cents(policy, facts))


def render(policy: Policy) -> str:
    """The policy as the agent reads it, one numbered clause for each rule."""
    words = {
        **asdict(policy),
        "refund_limit": dollars(policy.refund_limit_cents),
        "change_fee": dollars(policy.change_fee_cents),
        "bag_fee": dollars(policy.bag_fee_cents),
    }
    prices = [price.text for price in PRICES.values() if price.text]
    verdicts = {"handoff": "hand off"}
    return rendered(RULES, words, verdicts, before=_CONDUCT, after=prices)
