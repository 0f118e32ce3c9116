"""search/hoptrail-v1: follow a trail of facts through an invented encyclopaedia, and cite it."""

from functools import cache

from pydantic import TypeAdapter

from gymsuite import OpenSandbox, Score, Submission, Task, ToolCall
from gymsuite.search import (
    Corpus,
    Library,
    answer_of,
    judge_citations,
    proof_metrics,
    replay_trail,
    search_tools,
    text_protocol,
)
from gymsuite.suite import default_cache
from gymsuite.verify.qa_typed import Gold, typed

from .tasks import VERSION, documents, make_tasks

_DIGEST = "cbd87014abd4c357bd33f40bdae45acc"
_GOLD: TypeAdapter[Gold] = TypeAdapter(Gold)


def _withheld(task: Task) -> list[str]:
    """What the twin without an answer must not find."""
    return list(task.hidden["withheld"])


library = Library(Corpus(VERSION, documents, _DIGEST), default_cache)
tools = search_tools(library, withheld=_withheld)
respond = text_protocol(library, withheld=_withheld)
system_prompt = (
    "You answer questions about an encyclopaedia that you can search. Its pages are short, and "
    "each states a few facts only. Entries may go by another name, share a name with others, or "
    "have older editions."
)


@cache
def tasks() -> tuple[Task, ...]:
    """All splits."""
    return make_tasks()


async def solve(task: Task, _: OpenSandbox) -> tuple[ToolCall, ...]:
    """One search for each page of the trail, then the answer with the pages cited."""
    retriever = await library.open()
    trail, withheld = task.hidden["trail"], _withheld(task)
    return await replay_trail(retriever, trail, answer_of(task), withheld=withheld)


async def verify(task: Task, submission: Submission, _: OpenSandbox) -> Score:
    """The answer and its proof: the one without the other is nothing."""
    right = typed(submission.answer, _GOLD.validate_python(task.hidden["answer"]))
    marks = judge_citations(submission.state, task.hidden["evidence"])
    passed = right and marks.sound
    return Score(
        reward=float(passed),
        passed=passed,
        metrics=proof_metrics(right, marks, submission.state),
        details=_details(right, marks.sound),
    )


def _details(right: bool, sound: bool) -> str:  # noqa: FBT001 - a table of two
    if right and sound:
        return "the answer is right and proved"
    if right:
        return "the answer is right, but the cited pages do not prove it"
    return "the answer is wrong"
