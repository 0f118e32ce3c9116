"""tau2's telecom domain, the carrier's side: customers, lines, plans, bills and devices."""

import hashlib
from datetime import date, timedelta
from typing import Any

from gymsuite.formats.tau2_domain import Desk, Domain, Side, find
from gymsuite.formats.tau2_phone import SIDE as PHONE
from gymsuite.formats.tau2_phone_state import complete as complete_phone
from gymsuite.tools import ToolError

TODAY = date(2025, 2, 25)
_TABLES = {
    "L": ("lines", "line_id"),
    "D": ("devices", "device_id"),
    "B": ("bills", "bill_id"),
    "C": ("customers", "customer_id"),
    "P": ("plans", "plan_id"),
}
_PAYMENT_DAYS = 14


def get_customer_by_phone(desk: Desk, phone_number: str) -> object:
    """Find a customer by the contact number or the number of one of the lines."""
    return _customer_of(desk, phone_number)


def get_customer_by_id(desk: Desk, customer_id: str) -> object:
    """Find a customer by id."""
    return _customer(desk, customer_id)


def get_customer_by_name(desk: Desk, full_name: str, dob: str) -> object:
    """Find the customers with this name and date of birth (YYYY-MM-DD)."""
    return [
        row
        for row in desk.db["customers"]
        if row["full_name"].lower() == full_name.lower() and row["date_of_birth"] == dob
    ]


def get_details_by_id(desk: Desk, id: str) -> object:  # noqa: A002 - the name in the tasks
    """Show a customer, line, device, bill or plan by its id."""
    table = _TABLES.get(id[:1])
    if table is None:
        raise ToolError(f"{id!r} is no id; one begins with {', '.join(_TABLES)}")
    return find(desk.db[table[0]], table[1], id)


def suspend_line(desk: Desk, customer_id: str, line_id: str, reason: str) -> object:  # noqa: ARG001 - for the record
    """Suspend an active line, for six months at most."""
    line = _line(desk, customer_id, line_id)
    if line["status"] != "Active":
        raise ToolError("only an active line can be suspended")
    line |= {"status": "Suspended", "suspension_start_date": TODAY.isoformat()}
    return {"message": "suspended; $5 a month are charged meanwhile", "line": line}


def resume_line(desk: Desk, customer_id: str, line_id: str) -> object:
    """Make a line that is suspended or waits for its activation active."""
    line = _line(desk, customer_id, line_id)
    if line["status"] not in ("Suspended", "Pending Activation"):
        raise ToolError("only a suspended line can be resumed")
    line |= {"status": "Active", "suspension_start_date": None}
    return {"message": "resumed", "line": line}


def get_bills_for_customer(desk: Desk, customer_id: str, limit: int = 12) -> object:
    """Show a customer's bills, the newest first."""
    bills = [_bill(desk, key) for key in _customer(desk, customer_id)["bill_ids"]]
    return sorted(bills, key=lambda bill: str(bill["issue_date"]), reverse=True)[: max(0, limit)]


def send_payment_request(desk: Desk, customer_id: str, bill_id: str) -> object:
    """Ask a customer to pay a bill; one bill at a time. Whether it is paid is not checked."""
    customer = _customer(desk, customer_id)
    if _awaiting_payment(desk, customer):
        raise ToolError("another bill awaits payment")
    if bill_id not in customer["bill_ids"]:
        raise ToolError(f"{customer_id} has no bill {bill_id!r}")
    _bill(desk, bill_id)["status"] = "Awaiting Payment"
    return f"payment request sent for {bill_id}"


def get_data_usage(desk: Desk, customer_id: str, line_id: str) -> object:
    """Show how much data a line used in this cycle, and how much it has."""
    line = _line(desk, customer_id, line_id)
    following = (TODAY.replace(day=1) + timedelta(days=32)).replace(day=1)
    return {
        "line_id": line_id,
        "data_used_gb": line["data_used_gb"],
        "data_limit_gb": _plan(desk, line)["data_limit_gb"],
        "data_refueling_gb": line["data_refueling_gb"],
        "cycle_end_date": (following - timedelta(days=1)).isoformat(),
    }


def enable_roaming(desk: Desk, customer_id: str, line_id: str) -> object:
    """Allow a line to be used abroad."""
    _line(desk, customer_id, line_id)["roaming_enabled"] = True
    return "roaming is enabled"


def disable_roaming(desk: Desk, customer_id: str, line_id: str) -> object:
    """Forbid a line to be used abroad."""
    _line(desk, customer_id, line_id)["roaming_enabled"] = False
    return "roaming is disabled"


def refuel_data(desk: Desk, customer_id: str, line_id: str, gb_amount: float) -> object:
    """Add data to a line at the plan's price, which goes onto the next bill."""
    line = _line(desk, customer_id, line_id)
    if gb_amount <= 0:
        raise ToolError("the amount has to be above zero")
    price = gb_amount * _plan(desk, line)["data_refueling_price_per_gb"]
    line["data_refueling_gb"] += gb_amount
    _charge(desk, _customer(desk, customer_id), price, f"{gb_amount} GB of data")
    return {"new_data_refueling_gb": line["data_refueling_gb"], "charge": price}


def transfer_to_human_agents(desk: Desk, summary: str) -> object:  # noqa: ARG001 - a tool takes the state
    """Hand the user to a human: on request, or when policy and tools do not solve the issue."""
    return "transferred"


def _set_data_usage(desk: Desk, customer_id: str, line_id: str, data_used_gb: float) -> object:
    _line(desk, customer_id, line_id)["data_used_gb"] = data_used_gb
    return "set"


def _suspend_line_for_overdue_bill(
    desk: Desk, customer_id: str, line_id: str, new_bill_id: str, *, contract_ended: bool
) -> object:
    line, customer = find(desk.db["lines"], "line_id", line_id), _customer(desk, customer_id)
    if line["status"] != "Active":
        raise ToolError("only an active line can be suspended for a bill")
    if any(_bill(desk, key)["status"] == "Overdue" for key in customer["bill_ids"]):
        raise ToolError("there is an overdue bill already")
    last = TODAY.replace(day=1) - timedelta(days=1)
    bill = _new_bill(new_bill_id, customer_id, last.replace(day=1), last, "Overdue")
    _add_item(bill, _plan(desk, line)["price_per_month"], f"line {line_id}")
    desk.db["bills"].append(bill)
    customer["bill_ids"].append(new_bill_id)
    line |= {"status": "Suspended", "suspension_start_date": TODAY.isoformat()}
    if contract_ended:
        line["contract_end_date"] = last.isoformat()
    return "suspended"


def _assert_data_refueling_amount(
    desk: Desk, customer_id: str, line_id: str, expected_amount: float
) -> bool:
    amount = _line(desk, customer_id, line_id)["data_refueling_gb"]
    return bool(abs(amount - expected_amount) < 1e-6)  # noqa: PLR2004 - the reference's tolerance


def _assert_line_status(desk: Desk, customer_id: str, line_id: str, expected_status: str) -> bool:
    return bool(_line(desk, customer_id, line_id)["status"] == expected_status)


def _assert_overdue_bill_exists(desk: Desk, customer_id: str, overdue_bill_id: str) -> bool:
    known = overdue_bill_id in _customer(desk, customer_id)["bill_ids"]
    return known and bool(_bill(desk, overdue_bill_id)["status"] == "Overdue")


def _assert_no_overdue_bill(desk: Desk, overdue_bill_id: str) -> bool:
    bills = [row for row in desk.db["bills"] if row["bill_id"] == overdue_bill_id]
    return all(bill["status"] == "Paid" for bill in bills)


def _charge(desk: Desk, customer: dict[str, Any], amount: float, what: str) -> None:
    """Put an amount onto the draft of the next bill, and make the draft if there is none."""
    bills = [_bill(desk, key) for key in customer["bill_ids"]]
    draft = next((bill for bill in bills if bill["status"] == "Draft"), None)
    if draft is None:
        start = (TODAY.replace(day=1) + timedelta(days=32)).replace(day=1)
        end = (start + timedelta(days=32)).replace(day=1) - timedelta(days=1)
        mark = hashlib.sha256(f"{customer['customer_id']}{start}".encode()).hexdigest()[:8]
        draft = _new_bill(f"B{mark}", customer["customer_id"], start, end, "Draft")
        desk.db["bills"].append(draft)
        customer["bill_ids"].append(draft["bill_id"])
    _add_item(draft, amount, what)


def _new_bill(key: str, customer_id: str, start: date, end: date, status: str) -> dict[str, Any]:
    return {
        "bill_id": key,
        "customer_id": customer_id,
        "period_start": start.isoformat(),
        "period_end": end.isoformat(),
        "issue_date": start.isoformat(),
        "total_due": 0,
        "due_date": (start + timedelta(days=_PAYMENT_DAYS)).isoformat(),
        "line_items": [],
        "status": status,
    }


def _add_item(bill: dict[str, Any], amount: float, what: str) -> None:
    item = {"description": what, "amount": amount, "date": TODAY.isoformat()}
    bill["line_items"].append({**item, "item_type": "Credit" if amount < 0 else "Charge"})
    bill["total_due"] += amount


def _customer(desk: Desk, customer_id: str) -> dict[str, Any]:
    return find(desk.db["customers"], "customer_id", customer_id)


def _customer_of(desk: Desk, phone_number: str) -> dict[str, Any]:
    for customer in desk.db["customers"]:
        lines = [find(desk.db["lines"], "line_id", key) for key in customer["line_ids"]]
        if phone_number in (customer["phone_number"], *(line["phone_number"] for line in lines)):
            return customer  # type: ignore[no-any-return]
    raise ToolError(f"nobody has the number {phone_number!r}")


def _line(desk: Desk, customer_id: str, line_id: str) -> dict[str, Any]:
    if line_id not in _customer(desk, customer_id)["line_ids"]:
        raise ToolError(f"{customer_id} has no line {line_id!r}")
    return find(desk.db["lines"], "line_id", line_id)


def _plan(desk: Desk, line: dict[str, Any]) -> dict[str, Any]:
    return find(desk.db["plans"], "plan_id", line["plan_id"])


def _bill(desk: Desk, bill_id: str) -> dict[str, Any]:
    return find(desk.db["bills"], "bill_id", bill_id)


def _awaiting_payment(desk: Desk, customer: dict[str, Any]) -> list[dict[str, Any]]:
    bills = [_bill(desk, key) for key in customer["bill_ids"]]
    return [bill for bill in bills if bill["status"] == "Awaiting Payment"]


def _complete(desk: Desk) -> None:
    for line in desk.db["lines"]:
        line.setdefault("data_refueling_gb", 0.0)
        line.setdefault("roaming_enabled", False)
        line.setdefault("suspension_start_date", None)
    for bill in desk.db["bills"]:
        bill.setdefault("line_items", [])
    complete_phone(desk)


def _sync(desk: Desk) -> None:
    """The phone feels what the carrier does to its line, and the carrier sees payments."""
    around = desk.user_db["surroundings"]
    if around["phone_number"] is None:
        return
    line = find(desk.db["lines"], "phone_number", around["phone_number"])
    around["line_active"] = line["status"] == "Active"
    around["roaming_allowed"] = line["roaming_enabled"]
    limit = _plan(desk, line)["data_limit_gb"] + line["data_refueling_gb"]
    around["mobile_data_usage_exceeded"] = line["data_used_gb"] >= limit
    request = around["payment_request"]
    if request is not None and request["paid"]:
        _bill(desk, request["bill_id"])["status"] = "Paid"
        around["payment_request"] = request = None
    waiting = _awaiting_payment(desk, _customer_of(desk, around["phone_number"]))
    if request is None and waiting:
        due = {"bill_id": waiting[0]["bill_id"], "amount_due": waiting[0]["total_due"]}
        around["payment_request"] = {**due, "paid": False}


TELECOM = Domain(
    "telecom",
    Side(
        (
            get_customer_by_phone, get_customer_by_id, get_customer_by_name, get_details_by_id,
            suspend_line, resume_line, get_bills_for_customer, send_payment_request,
            get_data_usage, enable_roaming, disable_roaming, refuel_data,
            transfer_to_human_agents,
        ),
        {
            "set_data_usage": _set_data_usage,
            "suspend_line_for_overdue_bill": _suspend_line_for_overdue_bill,
            "assert_data_refueling_amount": _assert_data_refueling_amount,
            "assert_line_status": _assert_line_status,
            "assert_overdue_bill_exists": _assert_overdue_bill_exists,
            "assert_no_overdue_bill": _assert_no_overdue_bill,
        },
    ),
    PHONE,
    complete=_complete,
    sync=_sync,
)  # fmt: skip
