"""Turns a trail, one query and one document a step, into the tool calls that walk it."""

from collections.abc import Collection, Sequence

from gymsuite.errors import DefinitionError
from gymsuite.search.retriever import Retriever
from gymsuite.types import Task, ToolCall

RESULTS = 10
"""How many hits each step of a trail looks at."""


def answer_of(task: Task) -> str:
    """A task's answer, a `Gold` in `hidden`, as one would say it."""
    answer = task.hidden["answer"]
    if answer["kind"] == "set":
        return ", ".join(item[0] for item in answer["items"])
    return str(answer["answers"][0] if answer["kind"] == "text" else answer["value"])


async def replay_trail(
    retriever: Retriever,
    trail: Sequence[Sequence[str]],
    answer: str,
    *,
    withheld: Collection[str] = (),
    quotes: Sequence[str] = (),
) -> tuple[ToolCall, ...]:
    """Search with each query, open the document that it is meant to find, and cite them all.

    Args:
        retriever: Where to search.
        trail: Pairs of a query and the id of a document.
        answer: What to submit.
        withheld: Documents that this task must not find.
        quotes: For each step words of its document, or nothing.

    Raises `DefinitionError` for a step whose query does not find its document.
    """
    shown: list[str] = []
    calls: list[ToolCall] = []
    cited: list[dict[str, str]] = []
    for number, (query, wanted) in enumerate(trail):
        hits = await retriever.search(query, RESULTS + len(withheld))
        found = [hit.document.id for hit in hits if hit.document.id not in withheld][:RESULTS]
        if wanted not in found:
            raise DefinitionError(f"the query {query!r} does not find document {wanted!r}")
        shown.extend(name for name in found if name not in shown)
        calls.append(ToolCall(name="search", arguments={"query": query, "limit": RESULTS}))
        place = f"#{shown.index(wanted) + 1}"
        calls.append(ToolCall(name="open", arguments={"document": place}))
        cited.append({"document": place, "quote": quotes[number] if quotes else ""})
    arguments = {"answer": answer, "citations": cited}
    return (*calls, ToolCall(name="submit", arguments=arguments))
