"""NeMo Gym's rows of questions with an expected answer (hotpotqa_qa and its kin), closed-book."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

from pydantic import Field

from gymsuite.environment import Environment
from gymsuite.formats.nemo_gym_rows import Request, told
from gymsuite.formats.rows import Row, RowId, read_jsonl
from gymsuite.sandbox.protocol import OpenSandbox
from gymsuite.search.qa_set import QaSet, question, verify_question
from gymsuite.tools import submit
from gymsuite.types import Score, Submission, Task, ToolCall


class NemoQaRow(Row):
    """One row."""

    responses_create_params: Request
    expected_answer: str | Annotated[tuple[str, ...], Field(min_length=1)]
    id: RowId | int
    question: str = ""
    type: str = ""
    level: str = ""


def read_nemo_gym_qa(path: Path, *, scorer: str = "hotpot_em", split: str = "test") -> QaSet:
    """Read the file; the prompt is the row's own, which asks for `{"answer": ...}`."""
    return QaSet(
        tuple(_task(row, scorer, split) for row in read_jsonl(path, NemoQaRow)),
    )


def nemo_gym_qa_environment(name: str, qa: QaSet) -> Environment:
    """The rows as an environment in which plain text ends the episode, as it does there."""
    return Environment(id=name, tasks=qa.tasks, verifier=verify_nemo_gym_qa, tools=(submit,))


async def verify_nemo_gym_qa(
    task: Task, submission: Submission, open_sandbox: OpenSandbox
) -> Score:
    """Score the `answer` of the JSON object that was submitted; any other text is no answer."""
    answer = answer_in(submission.answer)
    return await verify_question(
        task, submission.model_copy(update={"answer": answer}), open_sandbox
    )


def answer_in(text: str) -> str:
    """The `answer` of a JSON object, which may stand in a code fence; "" if there is none."""
    text = text.strip().removeprefix("```json").removeprefix("```").removesuffix("```")
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return ""
    answer = found.get("answer") if isinstance(found, dict) else None
    return answer if isinstance(answer, str) else ""


def _task(row: NemoQaRow, scorer: str, split: str) -> Task:
    expected = row.expected_answer
    answers: Sequence[str] = [expected] if isinstance(expected, str) else expected
    prompt = told(row.responses_create_params.input)
    task = question(
        str(row.id),
        prompt,
        answers,
        scorer=scorer,
        split=split,
        metadata={"type": row.type, "level": row.level},
    )
    solution = ToolCall(name="submit", arguments={"answer": json.dumps({"answer": answers[0]})})
    return task.model_copy(update={"solution": (solution,)})
