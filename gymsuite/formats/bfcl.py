"""Berkeley function-calling rows (single, multiple, parallel, irrelevance) as tasks of plain text.

The model answers with `[f(a=1), g(b="x")]`, as in the leaderboard's prompting mode. The rows come
with the PyPI package bfcl-eval; Java and JavaScript rows are not read.
"""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from gymsuite.environment import Environment
from gymsuite.errors import DefinitionError
from gymsuite.formats.bfcl_checker import OMITTED, Verdict, check
from gymsuite.formats.bfcl_decode import DecodeError, decode
from gymsuite.formats.bfcl_rows import BfclAnswer, BfclQuestion, FunctionDocument
from gymsuite.formats.bfcl_strict import check_strictly
from gymsuite.formats.rows import read_jsonl
from gymsuite.sandbox.protocol import OpenSandbox
from gymsuite.tools import submit
from gymsuite.types import Score, Submission, Task, ToolCall

RULES = ("bfcl", "strict")

INSTRUCTIONS = (
    "Answer the user by calling functions. Reply with nothing but a list of calls such as "
    "[name(argument=value), other.name(argument=value)], with keyword arguments written as Python "
    "literals. If none of the functions serves the question, or an argument is missing, say so in "
    "words and call nothing."
)


def read_bfcl(
    questions: Path, answers: Path | None, *, category: str, rule: str = "bfcl"
) -> tuple[Task, ...]:
    """Read a category's rows; irrelevance and relevance have no answers.

    `rule` is "bfcl", the leaderboard's with its quirks, or "strict", which pays none of them. The
    other one is in the metrics.
    """
    if rule not in RULES:
        raise DefinitionError(f"no rule {rule!r}; there are: {', '.join(RULES)}")
    if "java" in category:
        raise DefinitionError(f"category {category!r}: only Python calls are read")
    gold = {row.id: row for row in read_jsonl(answers, BfclAnswer)} if answers else {}
    rows = read_jsonl(questions, BfclQuestion)
    made = []
    for row in rows:
        answer = gold.get(row.id)
        if problem := _problem(row, answer, category):
            raise DefinitionError(f"{questions}: row {row.id!r}: {problem}")
        made.append(_task(row, answer, category, rule))
    return tuple(made)


def _problem(row: BfclQuestion, answer: BfclAnswer | None, category: str) -> str:
    """Why nobody could judge a row, or ""."""
    if "irrelevance" in category:
        return ""
    if "relevance" in category or not row.function:
        return "" if row.function else "it has no function"
    if answer is None or not answer.ground_truth:
        return "no answer row with a call has this id"
    return next(filter(None, (_problem_of_call(row, call) for call in answer.ground_truth)), "")


def _problem_of_call(row: BfclQuestion, call: Mapping[str, object]) -> str:
    if len(call) != 1:
        return f"a call of its answer would have one name, not {len(call)}"
    (name,) = call
    documents = [function.parameters for function in row.function if function.name == name]
    if not documents:
        return f"its answer calls {name!r}, which is not among its functions"
    if not {"properties", "required"} <= documents[0].keys():
        return f"the parameters of {name!r} lack `properties` or `required`"
    return ""


def bfcl_environment(name: str, tasks: Sequence[Task]) -> Environment:
    """The rows as an environment in which plain text ends the episode."""
    return Environment(id=name, tasks=tasks, verifier=verify_bfcl, tools=(submit,))


async def verify_bfcl(task: Task, submission: Submission, _: OpenSandbox) -> Score:
    """Score the calls in the answer by the task's rule; both rules are in the metrics."""
    row = task.hidden
    verdicts = {rule: judge(rule, row, submission.answer) for rule in RULES}
    passed = verdicts[row["rule"]].valid
    return Score(
        reward=float(passed),
        passed=passed,
        metrics={f"rule_{rule}": float(verdict.valid) for rule, verdict in verdicts.items()},
        details=verdicts[row["rule"]].error_type or "",
    )


def judge(rule: str, row: Mapping[str, Any], text: str) -> Verdict:
    """The verdict of one rule on a reply."""
    category = row["category"]
    try:
        calls = decode(text)
    except DecodeError:
        calls = None
    if "relevance" in category:
        return _relevance(rule, category, text, called=bool(calls))
    if calls is None:
        return Verdict(valid=False, error_type="ast_decoder:decoder_failed")
    functions, answers = row["functions"], row["answers"]
    if rule == "strict":
        return check_strictly(functions, calls, answers)
    return check(functions, calls, answers, category)


def _relevance(rule: str, category: str, text: str, *, called: bool) -> Verdict:
    """Calling nothing is right for irrelevance; strictly, something has to be said instead."""
    if "irrelevance" not in category:
        return Verdict(valid=called, error_type=None if called else "relevance_error:no_call")
    if called:
        return Verdict(valid=False, error_type="irrelevance_error:decoder_success")
    if rule == "strict" and not any(letter.isalpha() for letter in text):
        return Verdict(valid=False, error_type="strict:nothing_said")
    return Verdict(valid=True)


def _task(row: BfclQuestion, answer: BfclAnswer | None, category: str, rule: str) -> Task:
    hidden = {
        "rule": rule,
        "category": category,
        "functions": [_document(function) for function in row.function],
        "answers": [dict(call) for call in answer.ground_truth] if answer else [],
    }
    reply = "None of the functions serves." if "irrelevance" in category else ""
    if answer is not None and "relevance" not in category:
        reply = written(row, answer)
    elif not reply:
        reply = f"[{row.function[0].name}()]"
    return Task(
        id=row.id,
        prompt=_prompt(row),
        split="test",
        hidden=hidden,
        solution=(ToolCall(name="submit", arguments={"answer": reply}),),
        metadata={"category": category},
    )


def written(row: BfclQuestion, answer: BfclAnswer) -> str:
    """The calls of an answer in text: what has to be given, with its first allowed value."""
    required = {f.name: f.parameters.get("required", ()) for f in row.function}
    calls = []
    for call in answer.ground_truth:
        name, allowed = next(iter(call.items()))
        chosen = {
            key: _first(options)
            for key, options in allowed.items()
            if OMITTED not in options or key in required.get(name, ())
        }
        calls.append(f"{name}({', '.join(f'{key}={value!r}' for key, value in chosen.items())})")
    return f"[{', '.join(calls)}]"


def _first(options: Sequence[Any]) -> Any:  # noqa: ANN401 - any JSON
    return _chosen(options[0]) if options else ""


def _chosen(option: Any) -> Any:  # noqa: ANN401 - any JSON
    """One value of an option: a dict's values are lists of options in turn."""
    if isinstance(option, Mapping):
        given = {k: v for k, v in option.items() if not (isinstance(v, list) and OMITTED in v)}
        return {k: _first(v) if isinstance(v, list) else v for k, v in given.items()}
    if isinstance(option, list | tuple):
        return [_chosen(item) if isinstance(item, Mapping) else item for item in option]
    return option


def _prompt(row: BfclQuestion) -> str:
    said = "\n\n".join(
        turn.content if turn.role == "user" else f"[{turn.role}] {turn.content}"
        for messages in row.question
        for turn in messages
    )
    functions = "\n".join(json.dumps(_document(f), ensure_ascii=False) for f in row.function)
    return f"{INSTRUCTIONS}\n\nFunctions:\n{functions}\n\nQuestion:\n{said}"


def _document(function: FunctionDocument) -> dict[str, Any]:
    """What the file says of a function, and no more."""
    return function.model_dump(exclude_unset=True)
