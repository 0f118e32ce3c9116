"""How tau2 judges a task: both ways are replayed, and the parts of the reward basis multiplied."""

import copy
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

from gymsuite.formats.tau2_domain import Desk, Domain
from gymsuite.tools import ToolError
from gymsuite.types import Model


class RecordedCall(Model):
    """A call of the agent, and whether it was refused."""

    name: str
    arguments: Mapping[str, Any] = {}
    failed: bool = False


class Record(Model):
    """What an episode leaves. `stopped` says that the agent ended it itself."""

    calls: tuple[RecordedCall, ...] = ()
    stopped: bool = False
    answer: str = ""


def start(domain: Domain, task: Mapping[str, Any]) -> Desk:
    """A task's state at its beginning: databases, data, setup and history, in this order."""
    data: Mapping[str, Mapping[str, Any] | None] = task["data"]
    desk = domain.begin(
        merged(task["db"], data.get("agent_data") or {}),
        merged(task["user_db"], data.get("user_data") or {}),
    )
    for call in task["setup"]:
        domain.call(desk, call["env_type"], call["func_name"], call["arguments"])
    for call in task["history"]:
        with suppress(ToolError):  # what failed then fails again
            domain.call(desk, call["requestor"], call["name"], call["arguments"])
    return desk


def merged(base: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """A database with nested changes made to it."""
    result = copy.deepcopy(dict(base))
    for key, value in changes.items():
        old = result.get(key)
        if isinstance(old, dict) and isinstance(value, Mapping):
            result[key] = merged(old, value)
        else:
            result[key] = copy.deepcopy(value)
    return result


def judge(domain: Domain, task: Mapping[str, Any], record: Record) -> dict[str, bool]:
    """Every part of the verdict by its name in tau2, and the rules `tau2` and `strict`.

    Some tasks assert that the user did what the gold actions leave out, and compare the user's
    database with theirs: nobody passes both. Strictly, assertions about the user stand in for the
    comparison.
    """
    criteria, basis = task["criteria"], task["criteria"]["reward_basis"]
    desk = start(domain, task)
    for call in record.calls:
        if not call.failed:
            domain.call(desk, domain.role_of(call.name), call.name, call.arguments)
    gold = _gold(domain, task)
    same_user = gold.user_db == desk.user_db
    parts = {
        "DB": gold.db == desk.db and same_user,
        "ENV_ASSERTION": all(
            _asserted(domain, desk, call) for call in criteria["env_assertions"] or ()
        ),
        "ACTION": all(_done(action, record.calls) for action in criteria["actions"] or ()),
        "COMMUNICATE": _said(criteria["communicate_info"] or (), record.answer),
    }
    ended = record.stopped or bool(record.answer)
    tau2 = ended and all(parts[name] for name in basis)
    acted = any(not call.failed for call in record.calls)
    worded = all(_worded(info, record.answer) for info in criteria["communicate_info"] or ())
    asserted = {call["env_type"] for call in criteria["env_assertions"] or ()}
    right = {**parts, "DB": gold.db == desk.db and (same_user or "user" in asserted)}
    strict = ended and acted and worded and all(right[name] for name in basis)
    return {**parts, "tau2": tau2, "strict": strict}


def _gold(domain: Domain, task: Mapping[str, Any]) -> Desk:
    """The state after the gold actions; one that fails is passed over."""
    gold = start(domain, task)
    for action in task["criteria"]["actions"] or ():
        with suppress(ToolError):
            domain.call(gold, action["requestor"], action["name"], action["arguments"])
    return gold


def _asserted(domain: Domain, desk: Desk, call: Mapping[str, Any]) -> bool:
    try:
        found = domain.call(desk, call["env_type"], call["func_name"], call["arguments"])
    except ToolError:
        found = False
    return bool(found) is bool(call["assert_value"])


def _done(action: Mapping[str, Any], calls: Sequence[RecordedCall]) -> bool:
    """Whether a gold action was made, compared over the arguments that the reference compares.

    Where it names none, those of the call: a call with fewer arguments passes.
    """
    for call in calls:
        if call.name != action["name"]:
            continue
        names = call.arguments if action["compare_args"] is None else action["compare_args"]
        if _chosen(call.arguments, names) == _chosen(action["arguments"], names):
            return True
    return False


def _chosen(arguments: Mapping[str, Any], names: object) -> dict[str, Any]:
    wanted = set(names) if isinstance(names, Mapping | list | tuple) else set()
    return {key: value for key, value in arguments.items() if key in wanted}


def _said(infos: Sequence[str], answer: str) -> bool:
    """The reference's test: a substring of the answer without commas, whatever it is part of."""
    text = answer.lower().replace(",", "")
    return all(info.lower() in text for info in infos)


def _worded(info: str, answer: str) -> bool:
    return re.search(rf"(?<!\w){re.escape(info)}(?!\w)", answer, re.IGNORECASE) is not None
