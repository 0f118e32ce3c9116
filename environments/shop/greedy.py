"""A player without a model: understands every sentence, does what is asked, ignores the policy."""

import json
import re
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

from gymsuite.types import Action, Message, Observation, Task, ToolCall
from gymsuite.worlds.plans import call

from . import phrases
from .greedy_writes import Found, Wish, looking, writing

_EMAIL = re.compile(r"[\w.]+@[\w.]+\w")
_MOST_CALLS = 28


@cache
def _patterns() -> list[tuple[str, re.Pattern[str]]]:
    """The ways of all splits to word a request, the most specific first."""
    found: list[tuple[str, str]] = []
    for request, ways in phrases.VERBS.items():
        for way in ways:
            text = re.escape(way).replace(r"\{what\}", "(?P<what>.+?)")
            found.append((request, text.replace(r"\{target\}", "(?P<target>.+?)")))
    found.sort(key=lambda pair: -len(pair[1]))
    ending = r"(?=[.?!;]|, please| for me\b| instead\.|$)"
    return [(name, re.compile(text + ending, re.IGNORECASE)) for name, text in found]


def wishes(text: str) -> list[Wish]:
    """What is asked for, sentence by sentence."""
    found = []
    for sentence in re.split(r"(?<=[.?!])\s+", text):
        for request, pattern in _patterns():
            match = pattern.search(sentence)
            if match and _plausible(request, match["what"]):
                target = match.groupdict().get("target") or ""
                found.append(Wish(request, match["what"], target))
                break
    return found


def _plausible(request: str, what: str) -> bool:
    """Flights for the flight desk, orders and items for the shop."""
    flight = "flight" in what or "booking" in what
    return flight == (request in ("change_flight", "cancel_booking", "add_bags"))


def greedy(task: Task) -> "GreedyAgent":
    """The player for a task."""
    return GreedyAgent(task.prompt.rsplit("# The customer writes", 1)[-1].strip())


class GreedyAgent:
    """Looks up what it needs and makes the write at the obvious price."""

    def __init__(self, opening: str) -> None:
        self._steps = self._serve(opening)
        self._calls = 0

    async def act(self, observation: Observation) -> Action:
        """The next call."""
        self._calls += 1
        if self._calls > _MOST_CALLS:
            return _say("submit")
        try:
            call = self._steps.send(observation.messages[-1].text if self._calls > 1 else None)
        except StopIteration:
            return _say("submit")
        return Message(role="assistant", tool_calls=(call,))

    def _serve(self, opening: str) -> Any:  # noqa: ANN401 - a generator of calls that takes replies
        customer = yield from self._identify(opening)
        everything = yield from _look("get_customer", customer_id=customer.get("id", ""))
        looks = [
            *(call("get_order", order_id=row["id"]) for row in everything.get("orders", ())),
            *(call("get_booking", booking_id=row["id"]) for row in everything.get("bookings", ())),
        ]
        rows: list[Mapping[str, Any]] = []
        for look in looks:
            rows += [(yield from _read(look))]
        reply = opening
        for _ in range(4):
            said: list[str] = []
            for wish in wishes(reply):
                said += [(yield from self._grant(wish, rows, everything))]
            text = " ".join(said) or "Sorry, that is not possible."
            reply = yield ToolCall(name="tell_customer", arguments={"text": text})

    def _identify(self, opening: str) -> Any:  # noqa: ANN401 - a generator, as above
        code = re.search(r"\b\d{5}\b", opening)
        name = re.search(r"([A-Z]\w+ [A-Z]\w+)(?=[.\s])", opening.split("\n", maxsplit=1)[0])
        email = _EMAIL.search(opening)
        if not email and not (code and name):
            reply = yield ToolCall(
                name="tell_customer", arguments={"text": "Please give me your e-mail address."}
            )
            email = _EMAIL.search(reply)
        if email:
            return (yield from _look("find_customer_by_email", email=email[0].rstrip(".")))
        who = {"name": name[1] if name else "", "zip_code": code[0] if code else ""}
        names = re.findall(r"[A-Z]\w+ [A-Z]\w+", opening)
        found: dict[str, Any] = {}
        for candidate in (who["name"], *names):
            found = yield from _look(
                "find_customer_by_name_and_zip", name=candidate, zip_code=who["zip_code"]
            )
            if found:
                break
        return found

    def _grant(self, wish: Wish, rows: Sequence[Mapping[str, Any]], who: Mapping[str, Any]) -> Any:  # noqa: ANN401 - a generator, as above
        row, item = _about(wish, rows)
        if row is None:
            return "I cannot find that."
        look = looking(wish, row, item)
        found = (yield from _read(look)) if look else {}
        write = writing(wish, Found(row, item or {}, who, found))
        if write is None:
            return "Sorry, that is not possible."
        step, cents = write
        reply = yield step
        if "no longer active" in reply:
            credit = next(p["id"] for p in who["payment_methods"] if p["kind"] == "store_credit")
            again = {**step.arguments, "payment_id": credit}
            reply = yield step.model_copy(update={"arguments": again})
        if reply.startswith(("error", '{"failed"')):
            return "Sorry, that is not possible: it is sold out."
        return f"Done. The amount is ${abs(cents) / 100:.2f}."


def _about(
    wish: Wish, rows: Sequence[Mapping[str, Any]]
) -> tuple[Mapping[str, Any] | None, Mapping[str, Any] | None]:
    """The order or booking that a wish is about, and the item."""
    for row in rows:
        if row.get("id", "-") in wish.what:
            return row, (row.get("items") or [None])[0]
        for item in row.get("items", ()):
            if item["product"] in wish.what:
                return row, item
        flight = row.get("flight", {})
        if flight and f"{flight['origin']} to {flight['destination']}" in wish.what:
            return row, None
    return None, None


def _look(tool: str, **arguments: Any) -> Any:  # noqa: ANN401 - a generator of calls that takes replies
    return (yield from _read(call(tool, **arguments)))


def _read(call: ToolCall) -> Any:  # noqa: ANN401 - a generator of calls that takes replies
    reply = yield call
    return {} if reply.startswith(("error", '{"failed"')) else json.loads(reply)


def _say(tool: str) -> Action:
    return Message(role="assistant", tool_calls=(ToolCall(name=tool),))
