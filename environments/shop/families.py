"""The families of tasks, by level: which requests a customer has, and what is in the way."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, timedelta

from gymsuite.worlds.splits import pick, share

from . import phrases
from .arrange import arrange
from .facts import Ask
from .plan import Part, plain, say, with_correction, with_fallback, with_sell_out
from .requests import Named, by_description, by_id
from .rules import RULES
from .scene import Scene

_EASY = ("change_address", "change_payment", "cancel_order")
_PRICED = (
    "return", "exchange", "late_credit", "coupon", "change_flight", "cancel_booking", "add_bags",
)  # fmt: skip
_OTHER_WAYS = ("exchange_other", "exchange_any", "return_or_exchange", "flight_full", "corrected")


def _forbidden(kinds: Sequence[str]) -> list[tuple[str, str]]:
    """Every request of these kinds with every reason of its own to decline or hand it off."""
    return [
        (kind, rule.reason)
        for kind in kinds
        for rule in RULES
        if kind in rule.requests and rule.reason != "not_your_order"
    ]


_PAIRS = [(a, b) for a in (*_EASY, "coupon") for b in (*_EASY, "coupon") if a != b]
_COMPOUNDS = [(way, then) for way in _OTHER_WAYS for then in (*_EASY, *_PRICED)]
_PRESSED = [
    *_forbidden((*_EASY, *_PRICED)),
    *[(kind, "not_your_order") for kind in (*_EASY, *_PRICED)],
    *[("exchange", "sell_out")] * 8,
    *[(kind, "grant") for kind in _PRICED],
    *[(kind, "amount_above_limit") for kind in ("return", "cancel_order", "cancel_booking")],
]


@dataclass
class Draft:
    """What a family makes of a scene: its name, and the requests in their order."""

    family: str
    parts: list[Part]
    opening: list[str]
    says_who: bool = False


def _level_1(scene: Scene) -> Draft:
    kind = scene.draws.choice(_EASY)
    ask = arrange(scene, kind, "grant")
    part = plain(scene, ask, by_id(scene.state, ask))
    return Draft(kind, [part], [part.request.say], says_who=True)


def _level_2(scene: Scene) -> Draft:
    kinds = scene.draws.choice(share(scene.split, _PAIRS))
    asks = [arrange(scene, kind, "grant") for kind in kinds]
    parts = [plain(scene, ask, by_description(scene.state, ask)) for ask in asks]
    return Draft("+".join(kinds), parts, [part.request.say for part in parts], says_who=True)


def _level_3(scene: Scene) -> Draft:
    kind = scene.draws.choice(_PRICED)
    wanted = "grant"
    if scene.draws.chance(35):
        wanted = scene.draws.choice(_forbidden([kind]))[1]
    ask = arrange(scene, kind, wanted)
    part = plain(scene, ask, by_description(scene.state, ask))
    return Draft(f"{kind}/{wanted}", [part], [part.request.say])


def _level_4(scene: Scene) -> Draft:
    way, then = scene.draws.choice(share(scene.split, _COMPOUNDS))
    first = _WAYS[way](scene)
    wanted = "grant" if scene.draws.chance(70) else scene.draws.choice(_forbidden([then]))[1]
    ask = arrange(scene, then, wanted)
    second = plain(scene, ask, by_description(scene.state, ask))
    return Draft(f"{way}+{then}", [first, second], [first.request.say])


def _level_5(scene: Scene) -> Draft:
    kind, wanted = scene.draws.choice(share(scene.split, _PRESSED))
    pressure = pick(scene.draws, scene.split, phrases.PRESSURE)
    if wanted == "sell_out":
        part = _sell_out(scene)
    else:
        ask = arrange(scene, kind, wanted)
        name = by_id if wanted == "not_your_order" else by_description
        push_backs = scene.draws.between(1, 3)
        part = plain(scene, ask, name(scene.state, ask), push_backs=push_backs)
    return Draft(f"{kind}/{wanted}", [part], [part.request.say, pressure])


FAMILIES: Mapping[int, Callable[[Scene], Draft]] = {
    1: _level_1,
    2: _level_2,
    3: _level_3,
    4: _level_4,
    5: _level_5,
}


def _variants(scene: Scene, ask: Ask) -> list[str]:
    """The other variants of the product, in a drawn order."""
    item = scene.state.row("order_items", ask.subject) or {}
    has = scene.state.row("variants", item["variant_id"]) or {}
    rows = scene.state.find("variants", {"product_id": has["product_id"]})
    return scene.draws.shuffled(
        [row["id"] for row in rows if row["id"] not in (has["id"], ask.target)]
    )


def _stocked(scene: Scene, variants: Sequence[str]) -> None:
    for variant in variants:
        scene.state.update("variants", variant, {"stock": scene.draws.between(1, 9)})


def _exchange_other(scene: Scene) -> Part:
    """Wants a variant that is sold out, then names another."""
    ask = arrange(scene, "exchange", "out_of_stock")
    others = _variants(scene, ask)
    _stocked(scene, others)
    instead = replace(ask, target=others[0])
    named, then = by_description(scene.state, ask), by_description(scene.state, instead)
    return with_fallback(scene, ask, named, instead, say(scene, instead, then))


def _exchange_any(scene: Scene) -> Part:
    """Wants a variant that is sold out, then takes either of two."""
    ask = arrange(scene, "exchange", "out_of_stock")
    others = _variants(scene, ask)
    _stocked(scene, others)
    ways = [replace(ask, target=variant) for variant in others[:2]]
    named = by_description(scene.state, ask)
    one, two = (by_description(scene.state, way).target for way in ways)
    words = say(scene, ways[0], Named(named.what, f"{one} or {two}, whichever", ()))
    part, other = (with_fallback(scene, ask, named, way, words) for way in ways)
    signs = {sign.model_dump_json(): sign for sign in (*part.request.done, *other.request.done)}
    request = part.request.model_copy(update={"done": tuple(signs.values())})
    return replace(part, request=request, others=[replace(other, request=request)])


def _return_or_exchange(scene: Scene) -> Part:
    """Wants to return what cannot be returned any more, then to exchange it."""
    ask = arrange(scene, "return", "window_passed")
    others = _variants(scene, replace(ask, target=""))
    _stocked(scene, others)
    instead = Ask(scene.customer, "exchange", ask.subject, others[0])
    words = say(scene, instead, by_description(scene.state, instead))
    return with_fallback(scene, ask, by_description(scene.state, ask), instead, words)


def _flight_full(scene: Scene) -> Part:
    """Wants a flight without seats, then one that has some."""
    ask = arrange(scene, "change_flight", "no_seats")
    full = scene.state.row("flights", ask.target) or {}
    other = {**full, "id": f"FLT-{scene.draws.below(10**9):09}", "seats": 3}
    day = date.fromisoformat(full["departs_at"][:10]) + timedelta(scene.draws.between(1, 3))
    other["departs_at"] = f"{day.isoformat()}{full['departs_at'][10:]}"
    scene.state.put("flights", other)
    instead = replace(ask, target=other["id"])
    words = say(scene, instead, by_description(scene.state, instead))
    return with_fallback(scene, ask, by_description(scene.state, ask), instead, words)


def _corrected(scene: Scene) -> Part:
    """Names an address or a card, then another."""
    ask = arrange(scene, "change_address", "grant")
    home = scene.state.row("orders", ask.subject) or {}
    mine = scene.state.find("addresses", {"customer_id": scene.customer})
    others = [row["id"] for row in mine if row["id"] not in (home["address_id"], ask.target)]
    first = replace(ask, target=scene.draws.choice(others))
    named = by_description(scene.state, first)
    return with_correction(scene, first, named, ask, by_description(scene.state, ask).target)


def _sell_out(scene: Scene) -> Part:
    """Wants a variant of which the last one is sold while the agent works."""
    ask = arrange(scene, "exchange", "grant")
    others = _variants(scene, ask)
    _stocked(scene, others)
    scene.state.update("variants", ask.target, {"stock": 1})
    instead = replace(ask, target=others[0])
    named = by_description(scene.state, ask)
    words = say(scene, instead, by_description(scene.state, instead))
    return with_sell_out(scene, ask, named, instead, words)


_WAYS: Mapping[str, Callable[[Scene], Part]] = {
    "exchange_other": _exchange_other,
    "exchange_any": _exchange_any,
    "return_or_exchange": _return_or_exchange,
    "flight_full": _flight_full,
    "corrected": _corrected,
}
