"""The rules of the desk: they decide, and the policy's text is made from the same parameters."""

from dataclasses import asdict

from gymsuite.worlds.rules import Rule, rendered, weighed
from gymsuite.worlds.text import dollars

from .policy import REQUESTS, Decision, Facts, Policy
from .prices import PRICES

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
