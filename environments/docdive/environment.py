"""search/docdive-v1: what real documentation says, with facts that nobody knows by heart."""

import re

from pydantic import TypeAdapter

from gymsuite import OpenSandbox, Score, Submission, Task, ToolCall
from gymsuite.search import (
    answer_of,
    judge_quotes,
    proof_metrics,
    replay_trail,
    search_tools,
    text_protocol,
)
from gymsuite.verify.qa_typed import Gold, typed

from .editions import Editions

_GOLD: TypeAdapter[Gold] = TypeAdapter(Gold)
_WIDTHS = (3, 6, 12, 24)
_SHORTEST_QUOTE = 6

editions = Editions()
tools = search_tools(editions)
respond = text_protocol(editions)
system_prompt = (
    "You answer questions about software from its documentation, which you can search. Pages are "
    "long: use find to get to the place. What the pages say counts, not what you remember."
)


async def solve(task: Task, open_sandbox: OpenSandbox) -> tuple[ToolCall, ...]:
    """Find each page, quote the place that holds the value, and answer."""
    exhibits = task.hidden["exhibits"]
    retriever = await editions.open(str(task.metadata["edition"]), open_sandbox)
    quotes = []
    for exhibit in exhibits:
        page = await retriever.document(exhibit["document"])
        quotes.append(_quote(page.text if page else "", exhibit["holds"]))
    trail = [(exhibit["query"], exhibit["document"]) for exhibit in exhibits]
    return await replay_trail(retriever, trail, answer_of(task), quotes=quotes)


def _quote(text: str, value: str) -> str:
    """The words around a value: as few as make a quote, since some are long."""
    found = re.search(rf"(?<![\w.]){re.escape(value)}(?![\w.])", text)
    if found is None:
        return ""
    before, after = text[: found.start()].split(), text[found.end() :].split()
    for width in _WIDTHS:
        quote = " ".join([*before[-width:], value, *after[:width]])
        if len(re.findall(r"\w+", quote)) >= _SHORTEST_QUOTE:
            break
    return quote


async def verify(task: Task, submission: Submission, _: OpenSandbox) -> Score:
    """The answer together with a quote of each value from an opened page, or nothing."""
    right = typed(submission.answer, _GOLD.validate_python(task.hidden["answer"]))
    evidence: dict[str, str] = {
        exhibit["document"]: exhibit["holds"] for exhibit in task.hidden["exhibits"]
    }
    marks = judge_quotes(submission.state, evidence)
    passed = right and marks.sound
    return Score(
        reward=float(passed),
        passed=passed,
        metrics=proof_metrics(right, marks, submission.state),
    )
