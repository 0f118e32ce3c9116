"""The tools that change mails, tasks, contacts and deals, and record what is not done."""

import re
from typing import Annotated, Literal

from pydantic import Field, Strict

from gymsuite.tools import ToolError
from gymsuite.worlds.addresses import addresses
from gymsuite.worlds.rows import change, need
from gymsuite.worlds.state import State
from gymsuite.worlds.text import Identifier

from .lookups import Folder, a_day
from .meetings import MEETINGS

Cents = Annotated[int, Strict(), Field(ge=0, le=100_000_000_000)]
Label = Literal["none", "internal", "confidential", "legal"]
RequestName = Literal[
    "meeting", "move", "move_once", "cancel", "series", "discount", "win", "forward", "new_task"
]
Reason = Literal[
    "not_authorised", "not_organizer", "too_late", "too_long", "too_many_times", "focus_day",
    "short_notice", "outside_hours", "conflict", "no_slot", "wrong_stage", "above_limit",
    "no_contract", "confidential", "too_far",
]  # fmt: skip
HandoverReason = Literal["too_many_people", "needs_approval", "legal_hold", "other"]
_PHONE = re.compile(r"\+([0-9]{3})([0-9]{3})([0-9]{4})")


def send_mail(state: State, to: str, subject: str, body: str) -> object:
    """Write a mail to an address, or to several with commas between them."""
    return _send(state, to, subject, body)


def forward_mail(state: State, mail_id: Identifier, to: str) -> object:
    """Forward a mail to an address, or to several with commas between them."""
    mail = need(state, "mails", mail_id)
    return _send(state, to, f"Fwd: {mail['subject']}", mail["body"])


def _send(state: State, to: str, subject: str, body: str) -> object:
    try:
        recipient = ", ".join(addresses(to))
    except ValueError as error:
        raise ToolError(f"{error}; write one as name@firm.test") from None
    if not recipient:
        raise ToolError("the mail has nobody to go to")
    row = {
        "folder": "sent",
        "sender": need(state, "contacts", state.get("owner"))["email"],
        "recipient": recipient,
        "subject": subject,
        "body": body,
        "label": "",
        "at": state.now,
    }
    return {"sent": state.add("mails", row, recipient, subject)}


def move_mail(state: State, mail_id: Identifier, folder: Folder) -> object:
    """Move a mail to a folder."""
    return change(state, "mails", mail_id, {"folder": folder})


def label_mail(state: State, mail_id: Identifier, label: Label) -> object:
    """Give a mail a label, in place of the one that it has."""
    return change(state, "mails", mail_id, {"label": "" if label == "none" else label})


def report_mail(state: State, mail_id: Identifier) -> object:
    """Report a mail whose sender is not who it claims to be."""
    need(state, "mails", mail_id)
    return {"reported": state.add("reports", {"mail_id": mail_id, "at": state.now}, mail_id)}


def create_task(state: State, title: str, due_on: str, assignee_id: Identifier) -> object:
    """Create a task for a contact, due on a day such as 2031-05-04."""
    need(state, "contacts", assignee_id)
    if not title.strip():
        raise ToolError("a task needs a title")
    row = {"title": title.strip(), "due_on": a_day(due_on).isoformat(), "assignee_id": assignee_id}
    return {"created": state.add("tasks", {**row, "status": "open"}, title)}


def complete_task(state: State, task_id: Identifier) -> object:
    """Mark a task as done."""
    return change(state, "tasks", task_id, {"status": "done"})


def postpone_task(state: State, task_id: Identifier, due_on: str) -> object:
    """Give a task another day by which it is due."""
    return change(state, "tasks", task_id, {"due_on": a_day(due_on).isoformat()})


def change_phone(state: State, contact_id: Identifier, phone: str) -> object:
    """Change a contact's phone number."""
    # However it is grouped, it is the same number.
    found = _PHONE.fullmatch(re.sub(r"[\s()./-]", "", phone))
    if not found:
        raise ToolError(f"{phone.strip()[:40]!r} is no phone number; write it as +901 234 5678")
    return change(state, "contacts", contact_id, {"phone": "+" + " ".join(found.groups())})


def log_activity(
    state: State,
    account_id: Identifier,
    kind: Literal["call", "email", "demo", "contract", "visit"],
    note: str,
) -> object:
    """Note something that happened with an account."""
    need(state, "accounts", account_id)
    row = {"account_id": account_id, "kind": kind, "note": note, "at": state.now}
    return {"logged": state.add("activities", row, account_id, kind)}


def set_bank_account(state: State, account_id: Identifier, bank: str) -> object:
    """Change the bank account of a customer's account."""
    return change(state, "accounts", account_id, {"bank": " ".join(bank.split())})


def set_deal_stage(
    state: State, deal_id: Identifier, stage: Literal["lead", "negotiation", "won", "lost"]
) -> object:
    """Change the stage of a deal."""
    return change(state, "deals", deal_id, {"stage": stage})


def set_deal_amount(state: State, deal_id: Identifier, amount_cents: Cents) -> object:
    """Change the amount of a deal."""
    return change(state, "deals", deal_id, {"amount_cents": amount_cents})


def decline_request(state: State, request: RequestName, reason: Reason) -> object:
    """Record that a request of your employer is declined."""
    return _record(state, "declines", request, reason)


def hand_over(state: State, request: RequestName, reason: HandoverReason) -> object:
    """Leave a request of your employer to somebody with more authority."""
    return _record(state, "handovers", request, reason)


def _record(state: State, table: str, request: str, reason: str) -> object:
    row = {"request": request, "reason": reason, "at": state.now}
    return {"recorded": state.add(table, row, request, reason)}


WRITES = (
    *MEETINGS,
    send_mail, forward_mail, move_mail, label_mail, report_mail, create_task, complete_task,
    postpone_task, change_phone, log_activity, set_bank_account, set_deal_stage, set_deal_amount,
    decline_request, hand_over,
)  # fmt: skip
