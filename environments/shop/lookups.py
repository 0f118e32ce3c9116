"""The tools that only look. What they show is noted, so that a decision can be proven informed."""

import ast
import re
from collections.abc import Callable, Mapping
from typing import Any

from gymsuite.tools import ToolError
from gymsuite.worlds.rows import need, show
from gymsuite.worlds.state import State
from gymsuite.worlds.text import Identifier

MOST_RESULTS = 20
_LONGEST = 200
_EXPRESSION = re.compile(rf"[0-9 +*/%()-]{{0,{_LONGEST}}}")


def find_customer_by_email(state: State, email: str) -> object:
    """Find the customer with this e-mail address."""
    return _found(state, state.find_folded("customers", "email", email), "e-mail address")


def find_customer_by_name_and_zip(state: State, name: str, zip_code: str) -> object:
    """Find the customer with this full name and ZIP code."""
    rows = state.find_folded("customers", "name", name)
    return _found(state, [r for r in rows if r["zip"] == zip_code.strip()], "name and ZIP code")


def _found(state: State, rows: list[dict[str, Any]], what: str) -> object:
    if len(rows) != 1:
        raise ToolError(f"no customer has this {what}; ask the customer to check it")
    return show(state, "customers", rows[0])


def get_customer(state: State, customer_id: Identifier) -> object:
    """Show a customer's addresses, payment methods, orders and bookings."""
    customer = show(state, "customers", need(state, "customers", customer_id))
    mine = {"customer_id": customer_id}
    orders = state.find("orders", mine)
    bookings = state.find("bookings", mine)
    return {
        **customer,
        "addresses": [show(state, "addresses", row) for row in state.find("addresses", mine)],
        "payment_methods": [
            show(state, "payment_methods", row) for row in state.find("payment_methods", mine)
        ],
        "orders": [{"id": row["id"], "status": row["status"]} for row in orders],
        "bookings": [{"id": row["id"], "status": row["status"]} for row in bookings],
    }


def get_order(state: State, order_id: Identifier) -> object:
    """Show an order with its items."""
    order = show(state, "orders", need(state, "orders", order_id))
    items = [
        {
            **show(state, "order_items", item),
            "product_id": variant["product_id"],
            "product": need(state, "products", variant["product_id"])["name"],
            "category": need(state, "products", variant["product_id"])["category"],
            "options": variant["options"],
        }
        for item in state.find("order_items", {"order_id": order_id})
        for variant in [need(state, "variants", item["variant_id"])]
    ]
    refunds = state.find("refunds", {"subject_id": order_id})
    return {**order, "items": items, "refunds": [show(state, "refunds", r) for r in refunds]}


def get_product(state: State, product_id: Identifier) -> object:
    """Show a product with its variants, their prices and stock."""
    product = show(state, "products", need(state, "products", product_id))
    variants = state.find("variants", {"product_id": product_id})
    return {**product, "variants": [show(state, "variants", row) for row in variants]}


def search_products(state: State, words: str) -> object:
    """Find products whose name has all of these words."""
    wanted = words.casefold().split()
    rows = [
        row
        for row in state.find("products", {})
        if all(word in row["name"].casefold() for word in wanted)
    ]
    return {"products": rows[:MOST_RESULTS], "found": len(rows)}


def get_booking(state: State, booking_id: Identifier) -> object:
    """Show a booking with its flight."""
    booking = show(state, "bookings", need(state, "bookings", booking_id))
    return {
        **booking,
        "flight": show(state, "flights", need(state, "flights", booking["flight_id"])),
    }


def search_flights(state: State, origin: Identifier, destination: Identifier, day: str) -> object:
    """Find the flights from one airport to another on a day such as 2031-05-04."""
    rows = state.find("flights", {"origin": origin, "destination": destination})
    found = [row for row in rows if row["departs_at"].startswith(day.strip() or "-")]
    return {"flights": [show(state, "flights", row) for row in found[:MOST_RESULTS]]}


def get_coupon(state: State, code: str) -> object:
    """Show a coupon by its code."""
    rows = state.find_folded("coupons", "code", code)
    if not rows:
        raise ToolError(f"there is no coupon {code.strip()[:40]!r}")
    return show(state, "coupons", rows[0])


def calculate(state: State, expression: str) -> object:  # noqa: ARG001 - a tool takes the state
    """Work out a sum with whole numbers, + - * // % and parentheses; // drops the fraction."""
    if not _EXPRESSION.fullmatch(expression):
        raise ToolError(
            "not a sum of whole numbers: it has digits, + - * // % and parentheses, "
            f"at most {_LONGEST} in all"
        )
    try:
        return {"result": _value(ast.parse(expression.strip(), mode="eval").body)}
    except (SyntaxError, ValueError, RecursionError, MemoryError, ZeroDivisionError) as error:
        raise ToolError(f"not a sum of whole numbers: {error}") from None


_OPERATIONS: Mapping[type[ast.operator], Callable[[int, int], int]] = {
    ast.Add: lambda a, b: a + b,
    ast.Sub: lambda a, b: a - b,
    ast.Mult: lambda a, b: a * b,
    ast.FloorDiv: lambda a, b: a // b,
    ast.Mod: lambda a, b: a % b,
}


def _value(node: ast.expr) -> int:
    match node:
        case ast.Constant(value=int(number)) if not isinstance(number, bool):
            return number
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return -_value(operand)
        case ast.BinOp(left=left, op=operator, right=right) if type(operator) in _OPERATIONS:
            return _OPERATIONS[type(operator)](_value(left), _value(right))
    raise ValueError(f"{ast.unparse(node)[:40]!r} is not allowed")


LOOKUPS = (
    find_customer_by_email, find_customer_by_name_and_zip, get_customer, get_order, get_product,
    search_products, get_booking, search_flights, get_coupon, calculate,
)  # fmt: skip
