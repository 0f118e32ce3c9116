"""What the task gate tries on the office's tasks."""

from collections.abc import Sequence

from gymsuite.types import Task, ToolCall
from gymsuite.worlds.gate import Gate
from gymsuite.worlds.plans import call

from .desk import WORLD
from .policy import REQUESTS

_RECORDS = ("decline_request", "hand_over", "report_mail")


def _refusals(task: Task) -> Sequence[Sequence[ToolCall]]:
    """Everything declined for one reason or another, or handed over, without a look.

    The right record is one of them where it takes a look to know it, not where the request alone
    says that it is too long or too late.
    """
    looked_up = task.hidden["gold"]["reads"]
    right = [c for c in task.solution if c.name in _RECORDS and looked_up]
    names = [name for name in REQUESTS if name in str(task.metadata["family"])]
    blind = [
        [call("decline_request", request=name, reason=reason) for name in names or REQUESTS]
        for reason in ("conflict", "above_limit")
    ]
    handed = [call("hand_over", request=name, reason="other") for name in names or REQUESTS]
    return [*blind, handed, right] if right else [*blind, handed]


def _irrelevant(task: Task) -> Sequence[ToolCall]:
    """A task, a meeting and a mail that nobody asked for, and one refused that nobody wanted."""
    owner = task.metadata["employer"]
    at = {"day": "2040-06-04", "start": "10:00", "zone": "Europe/Berlin"}
    return [
        call("create_task", title="Nothing", due_on="2040-06-04", assignee_id=owner),
        call("create_event", title="Nothing", **at, minutes=30, attendee_ids=[]),
        call("send_mail", to="nobody@nowhere.test", subject="Hello", body="Hello"),
        call("hand_over", request="meeting", reason="other"),
    ]


GATE = Gate(WORLD, _refusals, _irrelevant)
