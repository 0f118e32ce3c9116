"""tau2 tasks (`tasks.json` with `db.json` or `db.toml`), worked on from their ticket by one agent.

As in tau2's solo mode the agent has the tools of both roles and no user to talk to; plain text, or
`submit` with an answer, ends the episode. The rule `tau2` is the reference's product over the
task's reward basis, with its quirks; the rule `strict` also asks that something was done, and that
what has to be said is said in words of its own.
"""

import copy
import inspect
import json
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gymsuite.environment import Environment
from gymsuite.errors import DefinitionError
from gymsuite.formats.rows import read_json
from gymsuite.formats.tau2_domain import Desk, Domain, Function
from gymsuite.formats.tau2_rows import Criteria, InitialState, Tau2Task
from gymsuite.formats.tau2_rule import Record, judge, start
from gymsuite.sandbox.protocol import OpenSandbox
from gymsuite.tools import Context, Tool
from gymsuite.tools import submit as hand_in
from gymsuite.types import Limits, Score, Submission, Task, ToolCall
from gymsuite.worlds.server import as_tool

RULES = ("tau2", "strict")


def read_tau2(
    folder: Path, domain: Domain, *, tasks: str = "tasks.json", rule: str = "tau2"
) -> tuple[Task, ...]:
    """Read a domain's folder. Raises `DefinitionError` for a task that only a model can judge.

    By the rule `strict` tasks that ask for nothing are left out: nobody can fail them.
    """
    if rule not in RULES:
        raise DefinitionError(f"no rule {rule!r}; there are: {', '.join(RULES)}")
    base = {"db": _database(folder, "db"), "user_db": _database(folder, "user_db")}
    policy = _policy(folder)
    rows = read_json(folder / tasks, Tau2Task)
    made = []
    for row in rows:
        if problem := _problem(row, domain):
            raise DefinitionError(f"{folder / tasks}: task {row.id!r}: {problem}")
        if rule == "tau2" or _asks_for_something(row.evaluation_criteria):
            made.append(_task(row, base, policy, domain, rule))
    return tuple(made)


def _problem(row: Tau2Task, domain: Domain) -> str:
    """Why nobody could judge a task here, or ""."""
    criteria, state = row.evaluation_criteria, row.initial_state or InitialState()
    if "NL_ASSERTION" in criteria.reward_basis:
        return "its reward needs a model as a judge (NL_ASSERTION)"
    called = [(action.requestor, action.name) for action in criteria.actions or ()]
    for message in state.message_history or ():
        called += [(call.requestor, call.name) for call in message.tool_calls or ()]
    for own in (*(state.initialization_actions or ()), *(criteria.env_assertions or ())):
        called.append((own.env_type, own.func_name))
    unknown = next((call for call in called if call not in domain.functions), None)
    return f"the {unknown[0]} has no function {unknown[1]!r}" if unknown else ""


def tau2_environment(name: str, tasks: Sequence[Task], domain: Domain) -> Environment:
    """The tasks of a domain as an environment."""

    async def verify(task: Task, submission: Submission, _: OpenSandbox) -> Score:
        record = Record.model_validate({"answer": submission.answer, **submission.state})
        verdicts = judge(domain, task.hidden, record)
        passed = verdicts[task.hidden["rule"]]
        return Score(
            reward=float(passed),
            passed=passed,
            metrics={name: float(value) for name, value in verdicts.items()},
            details=", ".join(name for name, value in verdicts.items() if not value),
        )

    async def submit(context: Context, answer: str = "") -> str:
        """End the episode, and say what there is to say to the customer."""
        _begun(context, domain).stopped = True
        return await hand_in(context, answer)

    tools = (*(_tool(function, domain) for function in domain.tools), submit)
    limits = Limits(max_steps=100)
    return Environment(id=name, tasks=tasks, verifier=verify, tools=tools, limits=limits)


def _tool(function: Function, domain: Domain) -> Tool:
    """A function as a tool: it works on this episode's state and goes on record."""
    defaults = {p.name: p.default for p in inspect.signature(function).parameters.values()}

    async def run(context: Context, arguments: Mapping[str, object]) -> str:
        case = _begun(context, domain)
        name = function.__name__
        given = {key: value for key, value in arguments.items() if value != defaults[key]}
        call = {"name": name, "arguments": given, "failed": True}
        case.calls.append(call)
        result = domain.call(case.desk, domain.role_of(name), name, arguments)
        call["failed"] = False
        return result if isinstance(result, str) else json.dumps(result)

    return as_tool(function, run)


@dataclass
class _Case:
    """One conversation: both databases, every call so far, and whether it was handed in."""

    desk: Desk
    calls: list[dict[str, Any]] = field(default_factory=list)
    stopped: bool = False

    def fork(self) -> "_Case":
        return copy.deepcopy(self)

    async def left(self) -> Mapping[str, Any]:
        return {"calls": self.calls, "stopped": self.stopped}

    def close(self) -> None:
        """Nothing is held: the databases are plain data."""


def _begun(context: Context, domain: Domain) -> _Case:
    case: _Case | None = context.state.get("case")
    if case is None:
        case = context.state["case"] = _Case(start(domain, context.task.hidden))
    return case


def _task(row: Tau2Task, base: Mapping[str, Any], policy: str, domain: Domain, rule: str) -> Task:
    criteria = row.evaluation_criteria
    state = row.initial_state or InitialState()
    hidden = {
        "rule": rule,
        **base,
        "data": dict(state.initialization_data or {}),
        "setup": [call.model_dump() for call in state.initialization_actions or ()],
        "history": [
            call.model_dump()
            for message in state.message_history or ()
            for call in message.tool_calls or ()
        ],
        "criteria": criteria.model_dump(),
    }
    ending = ToolCall(
        name="submit", arguments={"answer": ". ".join(criteria.communicate_info or ())}
    )
    actions = [ToolCall(name=a.name, arguments=dict(a.arguments)) for a in criteria.actions or ()]
    known = bool(actions or not criteria.env_assertions)  # assertions alone tell no way
    return Task(
        id=row.id,
        prompt=_prompt(row, policy, state),
        split="test",
        hidden=hidden,
        solution=(*actions, ending) if known else (),
        metadata={"domain": domain.name, "reward_basis": list(criteria.reward_basis)},
    )


def _asks_for_something(criteria: Criteria) -> bool:
    return bool(criteria.actions or criteria.env_assertions or criteria.communicate_info)


def _prompt(row: Tau2Task, policy: str, state: InitialState) -> str:
    ticket = row.ticket or json.dumps(row.user_scenario.get("instructions", ""), indent=1)
    said = [
        f"{message.role}: {message.content}"
        for message in state.message_history or ()
        if message.content
    ]
    history = "\n\n# So far\n\n" + "\n".join(said) if said else ""
    return f"# Policy\n\n{policy}{history}\n\n# Ticket\n\n{ticket}"


def _policy(folder: Path) -> str:
    """The policy for a ticket where there is one, else for a conversation."""
    for name in ("policy_solo.md", "main_policy_solo.md", "policy.md", "main_policy.md"):
        if (folder / name).is_file():
            return (folder / name).read_text(encoding="utf-8").strip()
    raise DefinitionError(f"{folder}: no policy.md or main_policy.md")


def _database(folder: Path, name: str) -> dict[str, Any]:
    """A database as plain JSON; TOML's dates become text. Only the user's may be missing."""
    for path, load in ((folder / f"{name}.json", json.loads), (folder / f"{name}.toml", _toml)):
        if not path.is_file():
            continue
        try:
            found: object = load(path.read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise DefinitionError(f"{path}: not readable: {error}") from error
        if not isinstance(found, dict):
            raise DefinitionError(f"{path}: it would be an object of tables")
        return found
    if name == "user_db":
        return {}
    raise DefinitionError(f"{folder}: no {name}.json or {name}.toml")


def _toml(text: str) -> object:
    return json.loads(json.dumps(tomllib.loads(text), default=str))
