"""NeMo Gym's rows of tool use, judged by which calls were made.

Rows with a `ground_truth` are worked on until they are handed in; the tools' answers are yours to
give, for upstream's tables are no part of its rows. Rows with an `expected_action` end after as
many steps as it has calls.

The rule `calls` asks for the expected writes, each once, in any order, whatever the case of words;
a row that expects none is passed by doing nothing. The rule `strict` takes words as they are, and
has something said where nothing is to be done. The rule `state` is upstream's, for who has its
tables: what was called has to leave them as the expected calls do.
"""

import json
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gymsuite.environment import Environment
from gymsuite.errors import DefinitionError
from gymsuite.formats.nemo_gym_rows import Call, CallBatch, MessageAction, ToolUseRow, told
from gymsuite.formats.rows import read_jsonl
from gymsuite.formats.schemas import complaint
from gymsuite.sandbox.protocol import OpenSandbox
from gymsuite.tools import Context, SchemaTool, Tool, ToolError, submit
from gymsuite.types import Limits, Score, Submission, Task, ToolCall, ToolSchema

RULES = ("calls", "strict", "state")
_READS = ("search", "find", "get", "list", "read", "show", "count")

Answer = Callable[[Context, str, Mapping[str, Any]], Awaitable[str]]
"""What a tool says when it is called; a `ToolError` is a call that was not made."""


Calls = Sequence[Mapping[str, Any]]
"""Calls in their order, each with its `name` and its `arguments`."""

Replay = Callable[[Calls], object]
"""Makes calls on fresh tables and returns those; one that fails is left out, as an agent's is."""


def is_read(name: str) -> bool:
    """Whether a tool only looks, going by the words of its name."""
    return any(word in _READS for word in name.lower().split("_"))


async def acknowledged(_: Context, name: str, __: Mapping[str, Any]) -> str:
    """The least that a tool can say."""
    return f"{name}: done"


def read_nemo_gym_calls(
    path: Path, *, rule: str = "calls", split: str = "train"
) -> tuple[Task, ...]:
    """Read the file; raises `DefinitionError` for a row that expects nothing that can be judged."""
    if rule not in RULES:
        raise DefinitionError(f"no rule {rule!r}; there are: {', '.join(RULES)}")
    rows = read_jsonl(path, ToolUseRow)
    return tuple(_task(path, n, row, rule, split) for n, row in enumerate(rows, 1))


def nemo_gym_calls_environment(
    name: str,
    tasks: Sequence[Task],
    *,
    answer: Answer = acknowledged,
    reads: Callable[[str], bool] = is_read,
    replay: Replay | None = None,
) -> Environment:
    """The rows as an environment that has the tools of all of them; plain text ends an episode.

    Raises `DefinitionError` for rows of the rule `state` without a `replay`.
    """
    if replay is None and (those := [t.id for t in tasks if t.hidden["rule"] == "state"]):
        raise DefinitionError(
            f"{name}: the rule 'state' of task {those[0]!r} needs `replay`, a function that makes "
            "calls on fresh tables and returns them"
        )

    async def verify(task: Task, submission: Submission, _: OpenSandbox) -> Score:
        verdicts = judge(task.hidden, submission, reads)
        if replay is not None:
            made, expected = submission.state.get("calls", ()), task.hidden["calls"]
            verdicts["state"] = replay(made) == replay(expected)
        passed = verdicts[task.hidden["rule"]]
        return Score(
            reward=float(passed),
            passed=passed,
            metrics={f"rule_{rule}": float(verdict) for rule, verdict in verdicts.items()},
        )

    tools = (*(_tool(schema, answer) for schema in _schemas(tasks)), submit)
    return Environment(id=name, tasks=tasks, verifier=verify, tools=tools)


def judge(
    hidden: Mapping[str, Any], submission: Submission, reads: Callable[[str], bool] = is_read
) -> dict[str, bool]:
    """The verdict of each rule on what was called."""
    expected, single = hidden["calls"], hidden["single"]
    made = submission.state.get("calls", [])
    if not single:
        wanted = {call["name"] for call in expected}
        made = [call for call in made if call["name"] in wanted or not reads(call["name"])]
    said = any(letter.isalpha() for letter in submission.answer)
    loose = Counter(map(_loose, made)) == Counter(map(_loose, expected))
    exact = Counter(map(_exact, made)) == Counter(map(_exact, expected))
    if not expected and single:  # a message is expected, and any is right
        return {"calls": loose and bool(submission.answer), "strict": exact and said}
    return {"calls": loose, "strict": exact and (bool(expected) or said)}


@dataclass
class _Log:
    """The calls that an episode made."""

    calls: list[dict[str, Any]] = field(default_factory=list)

    def fork(self) -> "_Log":
        return _Log(list(self.calls))

    async def left(self) -> Mapping[str, Any]:
        return {"calls": self.calls}

    def close(self) -> None:
        """Nothing is held."""


def _tool(schema: ToolSchema, answer: Answer) -> Tool:
    async def run(context: Context, arguments: Mapping[str, Any]) -> str:
        offered = context.task.metadata["tools"]
        if schema.name not in offered:
            raise ToolError(f"no tool {schema.name!r} here; there are: {', '.join(offered)}")
        if problem := complaint(schema.parameters, dict(arguments)):
            raise ToolError(f"bad arguments for {schema.name!r}: {problem}")
        text = await answer(context, schema.name, arguments)
        log: _Log = context.state.setdefault("log", _Log())
        log.calls.append({"name": schema.name, "arguments": dict(arguments)})
        return text

    return SchemaTool(schema, run)


def _schemas(tasks: Sequence[Task]) -> tuple[ToolSchema, ...]:
    """The tools of all tasks. The same name with other arguments would be another tool."""
    found: dict[str, ToolSchema] = {}
    for task in tasks:
        for tool in task.metadata["schemas"]:
            schema = ToolSchema.model_validate(tool)
            known = found.setdefault(schema.name, schema)
            if known.parameters != schema.parameters or schema.name == "submit":
                raise DefinitionError(
                    f"task {task.id!r} has a tool {schema.name!r} that differs from another "
                    "task's or from `submit`; make an environment of each kind of rows"
                )
    return tuple(found.values())


def _task(path: Path, number: int, row: ToolUseRow, rule: str, split: str) -> Task:
    where = f"{path}:{number}"
    single = row.expected_action is not None
    if single == (row.ground_truth is not None):
        raise DefinitionError(f"{where}: a row has a `ground_truth` or an `expected_action`")
    calls = [{"name": call.name, "arguments": _arguments(where, call)} for call in _expected(row)]
    schemas = [
        ToolSchema(name=t.name, description=t.description, parameters=t.parameters).model_dump()
        for t in row.responses_create_params.tools
    ]
    return Task(
        id=str(number - 1 if row.id is None else row.id),
        prompt=told(row.responses_create_params.input),
        split=split,
        hidden={"rule": rule, "calls": calls, "single": single},
        solution=_solution(row, calls, single=single),
        limits=Limits(max_steps=max(1, len(calls))) if single else None,
        metadata={
            "category": row.category,
            "environment": row.environment_name,
            "tools": [schema["name"] for schema in schemas],
            "schemas": schemas,
        },
    )


def _expected(row: ToolUseRow) -> Sequence[Call]:
    action = row.expected_action
    if isinstance(action, CallBatch):
        return action.calls
    if isinstance(action, Call):
        return (action,)
    return row.ground_truth or ()


def _solution(row: ToolUseRow, calls: Calls, *, single: bool) -> tuple[ToolCall, ...]:
    made = [ToolCall(name=call["name"], arguments=call["arguments"]) for call in calls]
    if single and made:
        return tuple(made)
    action = row.expected_action
    said = action.content if isinstance(action, MessageAction) else ""
    return (*made, ToolCall(name="submit", arguments={"answer": said or "Done."}))


def _arguments(where: str, call: Call) -> dict[str, Any]:
    try:
        found = json.loads(call.arguments)
    except ValueError as error:
        raise DefinitionError(f"{where}: {call.name}: arguments are not JSON: {error}") from error
    if not isinstance(found, dict):
        raise DefinitionError(f"{where}: {call.name}: arguments are no JSON object")
    return found


def _exact(call: Mapping[str, Any]) -> str:
    return json.dumps([call["name"], call["arguments"]], sort_keys=True)


def _loose(call: Mapping[str, Any]) -> str:
    return _exact(call).lower()
