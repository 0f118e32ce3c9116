"""Draws the rows of a request until the policy decides on it as wanted."""

from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import timedelta

from gymsuite.worlds.draws import mint
from gymsuite.worlds.rows import need

from .facts import Ask, decision_on
from .scene import Scene, put_booking, put_order

_TRIES = 40
_DEAR_CENTS = 36_000


def arrange(scene: Scene, request: str, wanted: str) -> Ask:
    """A request about new rows, on which the policy's decision is the wanted one.

    `wanted` is "grant" or a reason code; raises `NoDrawError` when no draw comes out so.
    """
    owner = scene.stranger if wanted == "not_your_order" else scene.customer
    for product in reversed(scene.products):
        category = need(scene.state, "products", product)["category"]
        if request == "return" and (category == scene.policy.final_sale) != (
            wanted == "final_sale"
        ):
            continue
        with suppress(NoDrawError), scene.state.transaction():
            ask = _try(scene, request, wanted, product, owner)
            scene.products.remove(product)
            return ask
    raise NoDrawError(f"no draw of a {request} request comes out as {wanted!r}")


class NoDrawError(Exception):
    """Nothing that was drawn came out as wanted."""


def _try(scene: Scene, request: str, wanted: str, product: str, owner: str) -> Ask:
    key = mint("TRY", scene.state.get("seed"), request, product)
    if wanted == "amount_above_limit":
        for variant in scene.state.find("variants", {"product_id": product}):
            dear = {"price_cents": variant["price_cents"] + _DEAR_CENTS}
            scene.state.update("variants", variant["id"], dear)
    for _ in range(_TRIES):
        ask = _ARRANGERS[request](scene, key, product, owner)
        decision = decision_on(scene.state, scene.policy, ask)
        if wanted in (decision.verdict, decision.reason):
            return ask
    raise NoDrawError(f"{request} for {product}")


def _paid_by(scene: Scene) -> str:
    """A card, or the wallet, which the customer may have given up since."""
    return scene.draws.choice(("card", "wallet"))


def _pending(scene: Scene, key: str, product: str, owner: str, paid_by: str = "card") -> str:
    status = "pending" if scene.draws.chance(70) else scene.draws.choice(("shipped", "delivered"))
    return put_order(scene, key, product, owner, status=status, paid_by=paid_by)[0]


def _delivered(  # noqa: PLR0913, PLR0917 - the facts of an order
    scene: Scene, key: str, product: str, owner: str, limit: int, paid_by: str = "card"
) -> tuple[str, str]:
    """An order delivered some days ago, often close to the limit."""
    draws = scene.draws
    days = draws.choice((limit - 1, limit, limit + 1, limit + 9, draws.below(limit + 1), 2))
    late = draws.choice(
        (0, 1, scene.policy.late_days, scene.policy.late_days + draws.between(1, 6))
    )
    status = "delivered" if draws.chance(85) else "shipped"
    return put_order(
        scene, key, product, owner, status=status, delivered=days, late=late, paid_by=paid_by
    )


def _change_address(scene: Scene, key: str, product: str, owner: str) -> Ask:
    order = _pending(scene, key, product, owner)
    now_at = need(scene.state, "orders", order)["address_id"]
    others = [
        row["id"]
        for row in scene.state.find("addresses", {"customer_id": scene.customer})
        if row["id"] != now_at
    ]
    return Ask(scene.customer, "change_address", order, scene.draws.choice(others))


def _change_payment(scene: Scene, key: str, product: str, owner: str) -> Ask:
    order = _pending(scene, key, product, owner, _paid_by(scene))
    now_by = need(scene.state, "orders", order)["payment_id"]
    kinds = ("card", "gift_card", "gift_card")
    others = [key for kind in kinds if (key := mint("PAY", scene.customer, kind)) != now_by]
    gift_card = mint("PAY", scene.customer, "gift_card")
    balance = scene.draws.between(500, 120_000)
    scene.state.update("payment_methods", gift_card, {"balance_cents": balance})
    return Ask(scene.customer, "change_payment", order, scene.draws.choice(others))


def _cancel_order(scene: Scene, key: str, product: str, owner: str) -> Ask:
    return Ask(
        scene.customer, "cancel_order", _pending(scene, key, product, owner, _paid_by(scene))
    )


def _return(scene: Scene, key: str, product: str, owner: str) -> Ask:
    tier = need(scene.state, "customers", scene.customer)["tier"]
    limit = scene.policy.days_to_return(tier)
    _, item = _delivered(scene, key, product, owner, limit, _paid_by(scene))
    return Ask(scene.customer, "return", item)


def _exchange(scene: Scene, key: str, product: str, owner: str) -> Ask:
    _, item = _delivered(scene, key, product, owner, scene.policy.exchange_days)
    has = need(scene.state, "order_items", item)["variant_id"]
    others = [v for v in scene.state.find("variants", {"product_id": product}) if v["id"] != has]
    wanted = scene.draws.choice(others)["id"]
    scene.state.update("variants", wanted, {"stock": 0 if scene.draws.chance(30) else 4})
    return Ask(scene.customer, "exchange", item, wanted)


def _late_credit(scene: Scene, key: str, product: str, owner: str) -> Ask:
    order, _ = _delivered(scene, key, product, owner, 30)
    refund = mint("RFD", order)
    scene.state.delete("refunds", refund)
    if scene.draws.chance(20):
        scene.state.put(
            "refunds",
            {
                "id": refund,
                "subject_id": order,
                "reason": "late",
                "payment_id": mint("PAY", owner, "store_credit"),
                "amount_cents": scene.draws.between(100, 900),
                "at": scene.state.now,
            },
        )
    return Ask(scene.customer, "late_credit", order)


def _coupon(scene: Scene, key: str, product: str, owner: str) -> Ask:
    draws = scene.draws
    order = _pending(scene, key, product, owner)
    total = sum(r["price_cents"] for r in scene.state.find("order_items", {"order_id": order}))
    days = draws.choice((-20, -1, 0, 1, 40, 80))
    coupon = mint("CPN", key)
    code = f"SAVE{coupon[-5:]}"
    row = {
        "id": coupon,
        "code": code,
        "percent": draws.choice((5, 10, 15, 20)),
        "minimum_cents": draws.choice((0, total - 1, total, total + 1)),
        "expires_on": (scene.today + timedelta(days)).isoformat(),
    }
    scene.state.put("coupons", row)
    if draws.chance(15):
        other = mint("CPN", key, "used")
        scene.state.put("coupons", {**row, "id": other, "code": f"HELLO{other[-5:]}"})
        scene.state.update("orders", order, {"coupon_id": other, "discount_cents": total // 10})
    return Ask(scene.customer, "coupon", order, code)


def _change_flight(scene: Scene, key: str, _: str, owner: str) -> Ask:
    draws, state = scene.draws, scene.state
    limit = scene.policy.change_hours
    hours = draws.choice((limit - 1, limit, limit + 1, 240, 500))
    booking = put_booking(scene, key, owner, hours=hours)
    flight = need(state, "flights", need(state, "bookings", booking)["flight_id"])
    target = mint("FLT", key, "new")
    day = scene.today + timedelta(hours // 24 + draws.between(2, 9))
    row = {
        **flight,
        "id": target,
        "departs_at": f"{day.isoformat()}T{draws.between(5, 22):02}:30:00Z",
        "fare_cents": flight["fare_cents"] + draws.between(-4_000, 9_000),
        "seats": 0 if draws.chance(15) else draws.between(1, 5),
    }
    state.put("flights", row)
    return Ask(scene.customer, "change_flight", booking, target)


def _cancel_booking(scene: Scene, key: str, _: str, owner: str) -> Ask:
    hours = scene.draws.between(60, 900)
    booking = put_booking(scene, key, owner, hours=hours, paid_by=_paid_by(scene))
    return Ask(scene.customer, "cancel_booking", booking)


def _add_bags(scene: Scene, key: str, _: str, owner: str) -> Ask:
    booking = put_booking(scene, key, owner, hours=scene.draws.between(60, 900))
    return Ask(scene.customer, "add_bags", booking, more_bags=scene.draws.between(1, 3))


_ARRANGERS: Mapping[str, Callable[[Scene, str, str, str], Ask]] = {
    "change_address": _change_address,
    "change_payment": _change_payment,
    "cancel_order": _cancel_order,
    "return": _return,
    "exchange": _exchange,
    "late_credit": _late_credit,
    "coupon": _coupon,
    "change_flight": _change_flight,
    "cancel_booking": _cancel_booking,
    "add_bags": _add_bags,
}


def decoys(scene: Scene) -> None:
    """Orders and a booking of the same customer that nobody asks about."""
    for _ in range(scene.draws.between(1, 2)):
        product = scene.products.pop()
        key = mint("DEC", scene.state.get("seed"), product)
        _delivered(scene, key, product, scene.customer, 20)
    key = mint("DEC", scene.state.get("seed"), "booking")
    put_booking(scene, key, scene.customer, hours=scene.draws.between(100, 900))
