"""Policies that must not score in a search environment, made from its tasks and solutions.

Each returns tool calls to be played in an episode; what they earn is an environment's floor.
"""

import random
import re
from collections.abc import Sequence

from gymsuite.search.desk import MOST_CITATIONS
from gymsuite.search.retriever import Retriever
from gymsuite.types import ToolCall

_CANDIDATE = re.compile(r"(?:[A-Z]\w+(?: [A-Z]\w+)*)|\d+(?:[.,]\d+)*")
_RESULTS = 20

Calls = tuple[ToolCall, ...]


def answer_only(answer: str) -> Calls:
    """Submit an answer without having searched."""
    return (_submit(answer, []),)


def answered(solution: Sequence[ToolCall], answer: str) -> Calls:
    """Do as the solution does, but give another answer."""
    submitted = {**solution[-1].arguments, "answer": answer}
    return (*solution[:-1], ToolCall(name="submit", arguments=submitted))


def unopened(solution: Sequence[ToolCall]) -> Calls:
    """Do as the solution does, but open nothing."""
    return tuple(call for call in solution if call.name != "open")


def shuffled(solution: Sequence[ToolCall]) -> Calls:
    """Open the right documents, and give the right answer with wrong ones as its proof."""
    right = {call.arguments["document"] for call in solution if call.name == "open"}
    others = [f"#{n}" for n in range(1, _RESULTS) if f"#{n}" not in right][: len(right)]
    opened = tuple(ToolCall(name="open", arguments={"document": name}) for name in others)
    return (*solution[:-1], *opened, _submit(_answer(solution), others))


def stuffed(solution: Sequence[ToolCall]) -> Calls:
    """Open everything that was found, and cite as much as one may."""
    right = [call.arguments["document"] for call in solution if call.name == "open"]
    others = [f"#{n}" for n in range(1, 5 * _RESULTS) if f"#{n}" not in right]
    cited = [*right, *others][: max(MOST_CITATIONS, len(right))]
    opened = tuple(ToolCall(name="open", arguments={"document": name}) for name in cited)
    return (*solution[:-1], *opened, _submit(_answer(solution), cited))


def one_shot(question: str, guess: str) -> Calls:
    """Search once with the question's own words, and guess from the first document."""
    opened = ToolCall(name="open", arguments={"document": "#1"})
    return (_search(question), opened, _submit(guess, ["#1"]))


async def guess_from(retriever: Retriever, question: str, rng: random.Random, depth: int) -> str:
    """A name or number out of one of the first `depth` documents for the question."""
    hits = await retriever.search(question, depth)
    if not hits:
        return ""
    document = rng.choice(hits).document
    found = _CANDIDATE.findall(f"{document.title}. {document.text}")
    return rng.choice(found) if found else ""


def _search(query: str) -> ToolCall:
    return ToolCall(name="search", arguments={"query": query[:500], "limit": _RESULTS})


def _submit(answer: str, cited: Sequence[str]) -> ToolCall:
    return ToolCall(name="submit", arguments={"answer": answer, "citations": list(cited)})


def _answer(solution: Sequence[ToolCall]) -> str:
    return str(solution[-1].arguments["answer"])
