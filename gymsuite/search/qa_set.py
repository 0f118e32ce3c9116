"""Questions of a foreign data set with the documents that came along, as an environment."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from gymsuite.environment import Environment, Verifier
from gymsuite.errors import DefinitionError
from gymsuite.sandbox.protocol import OpenSandbox
from gymsuite.search.citations import judge_citations
from gymsuite.search.corpus import Corpus
from gymsuite.search.documents import Document
from gymsuite.search.library import Library
from gymsuite.search.text_protocol import text_protocol
from gymsuite.search.tools import search_tools
from gymsuite.search.trails import replay_trail
from gymsuite.tools import submit
from gymsuite.types import Limits, Score, Submission, Task, ToolCall
from gymsuite.verify.qa import SCORERS

_LIMITS = Limits(max_steps=40, verify_seconds=30)
_MOST_QUERY_CHARACTERS = 400


@dataclass(frozen=True)
class QaSet:
    """Tasks that `question` or `retrieval` made, and documents, if the data set has any."""

    tasks: tuple[Task, ...]
    documents: tuple[Document, ...] = ()


def question(  # noqa: PLR0913 - the columns of a question
    key: str,
    text: str,
    answers: Sequence[str],
    *,
    scorer: str,
    support: Sequence[str] = (),
    split: str = "test",
    level: int = 1,
    metadata: dict[str, str | int | bool] | None = None,
) -> Task:
    """A task that is to be answered; `support` are the ids of the documents that prove it."""
    if not answers:
        raise DefinitionError(f"question {key!r} has no answer")
    if scorer not in SCORERS:
        raise DefinitionError(f"no scorer {scorer!r}; there are {', '.join(SCORERS)}")
    return Task(
        id=key,
        prompt=text,
        split=split,
        level=level,
        hidden={"answers": list(answers), "scorer": scorer, "support": list(support)},
        solution=(ToolCall(name="submit", arguments={"answer": answers[0]}),),
        metadata=metadata or {},
    )


def retrieval(key: str, query: str, relevant: Sequence[str], *, split: str = "test") -> Task:
    """A task in which the relevant documents are to be found and cited."""
    prompt = (
        f"{query}\n\nFind the documents that are relevant to this, open them, and cite them; "
        "the answer itself does not matter."
    )
    return Task(id=key, prompt=prompt, split=split, hidden={"relevant": list(relevant)})


async def verify_question(task: Task, submission: Submission, _: OpenSandbox) -> Score:
    """Reward the task's scorer; passed is a full score. Citations are measured, not paid."""
    answers = task.hidden["answers"]
    reward = SCORERS[task.hidden["scorer"]](submission.answer, answers)
    marks = judge_citations(submission.state, [[name] for name in task.hidden["support"]])
    return Score(
        reward=reward,
        passed=reward == 1.0,
        metrics={
            "typed": SCORERS["typed"](submission.answer, answers),
            "citation_precision": marks.precision,
            "citation_recall": marks.recall,
        },
    )


async def verify_retrieval(task: Task, submission: Submission, _: OpenSandbox) -> Score:
    """Reward the share of relevant documents that were opened and cited."""
    marks = judge_citations(submission.state, [[name] for name in task.hidden["relevant"]])
    return Score(
        reward=marks.recall,
        passed=marks.recall == 1.0,
        metrics={"citation_precision": marks.precision, "citation_recall": marks.recall},
    )


def qa_environment(name: str, qa: QaSet, cache: Callable[[], Path]) -> Environment:
    """An environment over a data set; without documents its questions are closed-book."""
    if not qa.tasks:
        raise DefinitionError(f"{name}: the data set has no questions")
    retrieves = "relevant" in qa.tasks[0].hidden
    verifier: Verifier = verify_retrieval if retrieves else verify_question
    if not qa.documents:
        return Environment(
            id=name, tasks=qa.tasks, verifier=verifier, limits=_LIMITS, tools=(submit,)
        )
    library = Library(Corpus(name, lambda: qa.documents), cache)

    async def solve(task: Task, _: OpenSandbox) -> tuple[ToolCall, ...]:
        retriever = await library.open()
        trail = []
        for key in task.hidden["relevant"]:
            document = await retriever.document(key)
            if document is not None:
                words = f"{document.title} {document.text}"[:_MOST_QUERY_CHARACTERS]
                trail.append((words, key))
        return await replay_trail(retriever, trail, "see the citations")

    return Environment(
        id=name,
        tasks=qa.tasks,
        verifier=verifier,
        limits=_LIMITS,
        tools=search_tools(library),
        respond=text_protocol(library),
        solve=solve if retrieves else None,
    )


def distinct(documents: Iterable[Document]) -> tuple[Document, ...]:
    """Each document once: paragraphs come along with many questions."""
    return tuple({document.id: document for document in documents}.values())
