"""What the task gate tries on the desk's tasks."""

from collections.abc import Sequence

from gymsuite.types import Task, ToolCall
from gymsuite.worlds.gate import Gate
from gymsuite.worlds.plans import call
from gymsuite.worlds.user import Script

from .desk import WORLD
from .rules import RULES


def _subjects(task: Task) -> list[str]:
    """What the customer's requests are about."""
    script = Script.model_validate(task.hidden["user"])
    return [
        str(sign.where["subject_id"])
        for request in script.requests
        for sign in request.done
        if sign.table == "declines"
    ]


def _refusals(task: Task) -> Sequence[Sequence[ToolCall]]:
    """Everything declined for one reason or another, or handed off, without a look."""
    right = [c for c in task.solution if c.name in ("decline_request", "transfer_to_human")]
    subjects = _subjects(task)
    families = str(task.metadata["family"]).replace("/", "+").split("+")
    names = [name for name in families if any(name in rule.requests for rule in RULES)]
    reasons = ("window_passed", "not_pending")
    blind = [
        [
            call("decline_request", subject_id=subject, request=name, reason=reason)
            for subject in subjects
            for name in names
        ]
        for reason in reasons
    ]
    handed = [call("transfer_to_human", subject_id=s, reason="other") for s in subjects]
    return [*blind, handed, right] if right else [*blind, handed]


def _irrelevant(task: Task) -> Sequence[ToolCall]:
    """An address that nobody gave, and bags or a note that nobody asked for."""
    rows = [entry for entry in task.hidden["start"]["rows"] if entry["table"] == "customers"]
    bookings = [entry for entry in task.hidden["start"]["rows"] if entry["table"] == "bookings"]
    first = rows[0]["row"]["id"]
    address = {"street": "1 Nowhere Lane", "city": "Voidham", "country": "Calder"}
    about = bookings[-1]["row"]["id"]
    return [
        call("add_address", customer_id=first, **address),
        call("transfer_to_human", subject_id=about, reason="other"),
        call("add_bags", booking_id=about, more_bags=1, charge_cents=0),
    ]


GATE = Gate(WORLD, _refusals, _irrelevant)
