"""The tables of the retail and travel desk."""

from gymsuite.worlds.schema import Column, Schema, Table


def _ref(name: str, table: str) -> Column:
    return Column(name, ref=table)


SCHEMA = Schema(
    (
        Table(
            "customers",
            "CUS",
            (
                Column("name", "casefold"),
                Column("email", "casefold"),
                Column("zip"),
                Column("tier"),
            ),
        ),
        Table(
            "addresses",
            "ADR",
            (
                _ref("customer_id", "customers"),
                Column("street", "casefold"),
                Column("city", "casefold"),
                Column("country"),
            ),
            natural=("customer_id", "street"),
        ),
        Table(
            "payment_methods",
            "PAY",
            (
                _ref("customer_id", "customers"),
                Column("kind"),
                Column("label", "casefold"),
                Column("balance_cents", "cents"),
                Column("active"),
            ),
        ),
        Table("products", "PRD", (Column("name", "casefold"), Column("category"))),
        Table(
            "variants",
            "VAR",
            (
                _ref("product_id", "products"),
                Column("options", "casefold"),
                Column("price_cents", "cents"),
                Column("stock"),
            ),
        ),
        Table(
            "coupons",
            "CPN",
            (
                Column("code", "casefold"),
                Column("percent"),
                Column("minimum_cents", "cents"),
                Column("expires_on"),
            ),
        ),
        Table(
            "orders",
            "ORD",
            (
                _ref("customer_id", "customers"),
                _ref("address_id", "addresses"),
                _ref("payment_id", "payment_methods"),
                _ref("coupon_id", "coupons"),
                Column("status"),
                Column("placed_on"),
                Column("promised_on"),
                Column("delivered_on"),
                Column("shipping_cents", "cents"),
                Column("discount_cents", "cents"),
                Column("updated_at", "time"),
            ),
        ),
        Table(
            "order_items",
            "ITM",
            (
                _ref("order_id", "orders"),
                _ref("variant_id", "variants"),
                Column("price_cents", "cents"),
                Column("status"),
            ),
        ),
        Table(
            "flights",
            "FLT",
            (
                Column("origin"),
                Column("destination"),
                Column("departs_at"),
                Column("cabin"),
                Column("fare_cents", "cents"),
                Column("seats"),
            ),
        ),
        Table(
            "bookings",
            "BKG",
            (
                _ref("customer_id", "customers"),
                _ref("flight_id", "flights"),
                _ref("payment_id", "payment_methods"),
                Column("fare_cents", "cents"),
                Column("bags"),
                Column("insured"),
                Column("status"),
                Column("booked_at"),
            ),
        ),
        Table(
            "refunds",
            "RFD",
            (
                Column("subject_id"),
                Column("reason"),
                _ref("payment_id", "payment_methods"),
                Column("amount_cents", "cents"),
                Column("at", "time"),
            ),
            natural=("subject_id", "reason"),
        ),
        Table(
            "charges",
            "CHG",
            (
                Column("subject_id"),
                Column("reason"),
                _ref("payment_id", "payment_methods"),
                Column("amount_cents", "cents"),
                Column("at", "time"),
            ),
            natural=("subject_id", "reason"),
        ),
        Table(
            "declines",
            "DEC",
            (Column("subject_id"), Column("request"), Column("reason"), Column("at", "time")),
            natural=("subject_id", "request"),
        ),
        Table(
            "handoffs",
            "HOF",
            (Column("subject_id"), Column("reason"), Column("at", "time")),
            natural=("subject_id",),
        ),
        Table("sell_outs", "SEL", (_ref("variant_id", "variants"),), audit=True),
    )
)
