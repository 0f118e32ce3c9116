"""Berkeley multi-turn rows as tasks: a conversation in text, turn after turn, over live worlds.

A reply with calls is answered with what they returned; a reply in words ends the turn, and the
next message of the user follows. Plain text and the tool `reply` are the same.
"""

import ast
import copy
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gymsuite.environment import Environment
from gymsuite.errors import DefinitionError
from gymsuite.formats.bfcl import RULES
from gymsuite.formats.bfcl_multi_turn import (
    MOST_STEPS,
    calls_in,
    check_turns,
    check_turns_strictly,
)
from gymsuite.formats.bfcl_rows import MultiTurnAnswer, MultiTurnQuestion, Turn, WorldFunction
from gymsuite.formats.bfcl_worlds import MakeWorld, Worlds, reference_world
from gymsuite.formats.rows import read_jsonl
from gymsuite.sandbox.protocol import OpenSandbox
from gymsuite.tools import Context, Tool
from gymsuite.types import Action, Limits, Message, Score, Submission, Task, ToolCall

INSTRUCTIONS = (
    "You serve a user over several turns by calling functions. Reply with nothing but a list of "
    "calls such as [name(argument=value), other(argument=value)], with keyword arguments written "
    "as Python literals, and read what they return. When nothing is left to do for a message, or "
    "nothing can be done, say so in words: the user's next message follows."
)
DOCUMENTS: Mapping[str, str] = {
    "GorillaFileSystem": "gorilla_file_system.json",
    "MathAPI": "math_api.json",
    "MessageAPI": "message_api.json",
    "TwitterAPI": "posting_api.json",
    "TicketAPI": "ticket_api.json",
    "TradingBot": "trading_bot.json",
    "TravelAPI": "travel_booking.json",
    "VehicleControlAPI": "vehicle_control.json",
}


def read_bfcl_multi_turn(data: Path, category: str, *, rule: str = "bfcl") -> tuple[Task, ...]:
    """Read a category such as "multi_turn_base" from the `data` folder of bfcl-eval."""
    if rule not in RULES:
        raise DefinitionError(f"no rule {rule!r}; there are: {', '.join(RULES)}")
    file = f"BFCL_v4_{category}.json"
    gold = {row.id: row for row in read_jsonl(data / "possible_answer" / file, MultiTurnAnswer)}
    shelf = _Shelf(data / "multi_turn_func_doc")
    made = []
    for row in read_jsonl(data / file, MultiTurnQuestion):
        where, answer = f"{data / file}: row {row.id!r}", gold.get(row.id)
        if answer is None:
            raise DefinitionError(f"{where}: no answer row has this id")
        if len(row.question) != len(answer.ground_truth):
            raise DefinitionError(
                f"{where}: {len(row.question)} turns, and calls for {len(answer.ground_truth)}"
            )
        try:
            made.append(_task(row, answer, shelf, rule))
        except (KeyError, SyntaxError) as error:
            raise DefinitionError(
                f"{where}: a function without a document, or no call: {error}"
            ) from error
    return tuple(made)


def bfcl_multi_turn_environment(
    name: str, tasks: Sequence[Task], make: MakeWorld = reference_world
) -> Environment:
    """The rows as an environment; `make` gives the worlds, those of bfcl-eval by default."""

    async def respond(context: Context, action: Action) -> tuple[Message, ...] | None:
        heard = _talk(context, make).hear(action.text)
        return None if heard is None else (Message(role="user", content=heard),)

    async def verify(task: Task, submission: Submission, _: OpenSandbox) -> Score:
        row, turns = task.hidden, submission.state.get("turns", ())
        verdicts = {
            "bfcl": check_turns(turns, row["expected"], row, make),
            "strict": check_turns_strictly(turns, row["expected"], row, make),
        }
        passed = verdicts[row["rule"]].valid
        return Score(
            reward=float(passed),
            passed=passed,
            metrics={f"rule_{rule}": float(verdict.valid) for rule, verdict in verdicts.items()},
            details=verdicts[row["rule"]].error_type or "",
        )

    return Environment(
        id=name,
        tasks=tasks,
        verifier=verify,
        tools=(_reply_tool(make),),
        respond=respond,
        limits=Limits(max_steps=200),
    )


def _reply_tool(make: MakeWorld) -> Tool:
    async def reply(context: Context, text: str) -> str:
        """Say something to the user, or call functions as in [name(argument=value)]."""
        heard = _talk(context, make).hear(text)
        context.submitted = heard is None
        return heard or "the conversation is over"

    return reply


@dataclass
class _Talk:
    """One conversation: which turn it is in, and what was called in each."""

    row: Mapping[str, Any]
    worlds: Worlds
    turns: list[list[list[str]]] = field(default_factory=lambda: [[]])

    def hear(self, text: str) -> str | None:
        """What follows a reply: results, the next message, or the end."""
        calls = calls_in(text)
        if not calls:
            return self._next()
        self.turns[-1].append(calls)
        if len(self.turns[-1]) > MOST_STEPS:
            self.turns.pop()  # a conversation that is cut short has a turn too few
            return None
        results = [{"call": call, "result": self.worlds.run(call)} for call in calls]
        return json.dumps(results, ensure_ascii=False)

    def _next(self) -> str | None:
        if len(self.turns) == len(self.row["messages"]):
            return None
        self.turns.append([])
        return str(self.row["messages"][len(self.turns) - 1])

    def fork(self) -> "_Talk":
        return copy.deepcopy(self)

    async def left(self) -> Mapping[str, Any]:
        return {"turns": self.turns}

    def close(self) -> None:
        """Nothing is held: the worlds are plain objects."""


def _talk(context: Context, make: MakeWorld) -> _Talk:
    talk: _Talk | None = context.state.get("talk")
    if talk is None:
        row = context.task.hidden
        worlds = Worlds(
            row["involved_classes"],
            row["initial_config"],
            make,
            long_context="long_context" in row["id"],
        )
        talk = context.state["talk"] = _Talk(row, worlds)
    return talk


class _Shelf:
    """The function documents by world, read once each."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._read: dict[str, tuple[WorldFunction, ...]] = {}

    def of(self, worlds: Sequence[str]) -> dict[str, WorldFunction]:
        """The documents of some worlds by function name."""
        for name in worlds:
            if name not in self._read:
                path = self._folder / DOCUMENTS.get(name, f"{name}.json")
                self._read[name] = tuple(read_jsonl(path, WorldFunction))
        return {document.name: document for name in worlds for document in self._read[name]}


def _task(row: MultiTurnQuestion, answer: MultiTurnAnswer, shelf: _Shelf, rule: str) -> Task:
    documents = shelf.of(row.involved_classes)
    missing = {name for names in row.missed_function.values() for name in names}
    offered = [
        document
        for name, document in documents.items()
        if name not in missing and name not in row.excluded_function
    ]
    messages = [
        _message(turn, [documents[name] for name in row.missed_function.get(str(at), ())])
        for at, turn in enumerate(row.question)
    ]
    steps = [step for calls in answer.ground_truth for step in _steps(calls, documents)]
    return Task(
        id=row.id,
        prompt=f"{INSTRUCTIONS}\n\nFunctions:\n{_listed(offered)}\n\nThe user:\n{messages[0]}",
        split="test",
        hidden={
            "id": row.id,
            "rule": rule,
            "involved_classes": list(row.involved_classes),
            "initial_config": dict(row.initial_config),
            "messages": messages,
            "expected": [list(calls) for calls in answer.ground_truth],
        },
        solution=tuple(ToolCall(name="reply", arguments={"text": step}) for step in steps),
        metadata={"worlds": list(row.involved_classes)},
    )


def _message(turn: Sequence[Turn], added: Sequence[WorldFunction]) -> str:
    said = "\n\n".join(message.content for message in turn)
    if not added:
        return said
    return f"{said}\n\nMore functions are there now:\n{_listed(added)}".strip()


def _listed(documents: Sequence[WorldFunction]) -> str:
    return "\n".join(document.model_dump_json() for document in documents)


def _steps(calls: Sequence[str], documents: Mapping[str, WorldFunction]) -> list[str]:
    """The replies of one turn: the expected calls, then words."""
    named = [_by_name(call, documents) for call in calls]
    replies = named if len(named) < MOST_STEPS else [", ".join(named)]
    return [*(f"[{reply}]" for reply in replies), "That is all for this."]


def _by_name(text: str, documents: Mapping[str, WorldFunction]) -> str:
    """A call with its positional arguments named, as the documents order them."""
    call = ast.parse(text, mode="eval").body
    if not (isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.args):
        return text
    names = list(documents[call.func.id].parameters["properties"])
    named = [ast.keyword(name, value) for name, value in zip(names, call.args, strict=False)]
    return ast.unparse(ast.Call(call.func, [], [*named, *call.keywords]))
