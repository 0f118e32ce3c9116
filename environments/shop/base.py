"""The world before a task: goods, customers, orders and flights that no task is about."""

from datetime import date, timedelta
from functools import lru_cache

from gymsuite.worlds.draws import Draws, mint
from gymsuite.worlds.splits import share
from gymsuite.worlds.state import State

from . import names
from .policy import CABINS, TIERS
from .schema import SCHEMA

UNIVERSES = 8
"""How many worlds a split has; its tasks take turns in them."""

START = "2031-01-01T12:00:00Z"
_CUSTOMERS = 40
_FLIGHTS = 60
_PRODUCTS = 40
_FREE_OF_FIVE = 2
"""So many of each five products are in nobody's order: tasks describe items by them."""


@lru_cache(maxsize=4 * UNIVERSES)
def base(split: str, universe: int) -> bytes:
    """The image of one world; a pure function of its name."""
    draws = Draws("shop-v1", split, universe)
    state = State.empty(SCHEMA, seed=f"shop-v1/{split}/{universe}", now=START)
    variants = _catalogue(state, draws, split)
    for _ in range(_FLIGHTS):
        add_flight(state, draws, split, date(2031, 1, 1) + timedelta(draws.below(365)))
    for _ in range(_CUSTOMERS):
        customer = add_customer(state, draws, split, draws.choice(TIERS))
        _history(state, draws, customer, variants)
    state.begin()
    image = state.image
    state.close()
    return image


@lru_cache(maxsize=4 * UNIVERSES)
def free_products(split: str, universe: int) -> tuple[str, ...]:
    """The products that nobody ordered, the cheapest first."""
    state = State.load(SCHEMA, base(split, universe))
    rows = state.all(
        "SELECT product_id, max(price_cents) AS price FROM variants GROUP BY product_id "
        "HAVING NOT max(id IN (SELECT variant_id FROM order_items)) ORDER BY price, product_id"
    )
    state.close()
    return tuple(row["product_id"] for row in rows)


def _catalogue(state: State, draws: Draws, split: str) -> list[str]:
    """Products with their variants; returns the variants that background orders may hold."""
    kinds = [(category, noun) for category, nouns in names.GOODS.items() for noun in nouns]
    brands = draws.shuffled(share(split, names.BRANDS))
    ordinary: list[str] = []
    for at in range(_PRODUCTS):
        category, noun = kinds[at]
        product = mint("PRD", state.get("seed"), at)
        name = f"{brands[at % len(brands)]} {noun}"
        state.put("products", {"id": product, "name": name, "category": category})
        price = draws.choice((1_200, 2_400, 4_900, 7_500, 11_900, 15_900, 21_900, 29_900))
        ids = [_variant(state, draws, product, options, price) for options in _options(draws)]
        if at % 5 >= _FREE_OF_FIVE:
            ordinary += ids
    return ordinary


def _options(draws: Draws) -> list[str]:
    colours = draws.sample(names.COLOURS, 3)
    return [f"{colour}, {size}" for colour in colours for size in draws.sample(names.SIZES, 2)]


def _variant(state: State, draws: Draws, product: str, options: str, price: int) -> str:
    key = mint("VAR", product, options)
    row = {"id": key, "product_id": product, "options": options}
    cents = price + draws.between(0, 2_500)
    state.put("variants", {**row, "price_cents": cents, "stock": draws.between(1, 30)})
    return key


def add_flight(state: State, draws: Draws, split: str, day: date) -> str:
    """A flight on that day."""
    origin, destination = draws.sample(share(split, names.AIRPORTS), 2)
    key = mint("FLT", state.get("seed"), origin, destination, day.isoformat(), draws.below(1 << 40))
    at = f"{day.isoformat()}T{draws.between(5, 22):02}:{5 * draws.below(12):02}:00Z"
    state.put(
        "flights",
        {
            "id": key,
            "origin": origin,
            "destination": destination,
            "departs_at": at,
            "cabin": draws.choice(CABINS),
            "fare_cents": draws.between(6_000, 48_000),
            "seats": draws.between(1, 9),
        },
    )
    return key


def add_customer(state: State, draws: Draws, split: str, tier: str) -> str:
    """A customer with addresses and payment methods."""
    first, last = draws.choice(share(split, names.FIRST)), draws.choice(share(split, names.LAST))
    number = draws.below(10_000)
    email = f"{first[0]}.{last}{number:04}@{draws.choice(share(split, names.DOMAINS))}".lower()
    key = mint("CUS", state.get("seed"), email)
    state.put(
        "customers",
        {
            "id": key,
            "name": f"{first} {last}",
            "email": email,
            "zip": f"{draws.below(100_000):05}",
            "tier": tier,
        },
    )
    home, abroad = draws.sample(names.COUNTRIES, 2)
    streets = draws.sample(share(split, names.STREETS), 3)
    for street, country in zip(streets, (home, home, abroad), strict=True):
        state.put(
            "addresses",
            {
                "id": mint("ADR", key, street),
                "customer_id": key,
                "street": f"{draws.between(1, 99)} {street} Street",
                "city": draws.choice(share(split, names.CITIES)),
                "country": country,
            },
        )
    _payment_methods(state, draws, key)
    return key


def _payment_methods(state: State, draws: Draws, customer: str) -> None:
    methods = (
        ("card", f"card ending in {draws.below(10_000):04}", 0),
        ("wallet", "PocketPay wallet", 0),
        ("gift_card", f"gift card {draws.below(10_000):04}", draws.between(500, 90_000)),
        ("store_credit", "store credit", draws.between(0, 2_000)),
    )
    for kind, label, balance in methods:
        state.put(
            "payment_methods",
            {
                "id": mint("PAY", customer, kind),
                "customer_id": customer,
                "kind": kind,
                "label": label,
                "balance_cents": balance,
                "active": 1,
            },
        )


def _history(state: State, draws: Draws, customer: str, variants: list[str]) -> None:
    """Orders of a customer that no task is about."""
    addresses = state.find("addresses", {"customer_id": customer})
    card = mint("PAY", customer, "card")
    for number in range(draws.between(1, 2)):
        placed = date(2030, 1, 1) + timedelta(draws.below(300))
        order = mint("ORD", customer, number)
        state.put(
            "orders",
            {
                "id": order,
                "customer_id": customer,
                "address_id": addresses[0]["id"],
                "payment_id": card,
                "coupon_id": None,
                "status": draws.choice(("delivered", "shipped", "cancelled")),
                "placed_on": placed.isoformat(),
                "promised_on": (placed + timedelta(5)).isoformat(),
                "delivered_on": (placed + timedelta(draws.between(3, 12))).isoformat(),
                "shipping_cents": 100 * draws.between(3, 12),
                "discount_cents": 0,
                "updated_at": START,
            },
        )
        for variant in draws.sample(variants, draws.between(1, 3)):
            row = state.row("variants", variant)
            state.put(
                "order_items",
                {
                    "id": mint("ITM", order, variant),
                    "order_id": order,
                    "variant_id": variant,
                    "price_cents": row["price_cents"] if row else 0,
                    "status": "ordered",
                },
            )
