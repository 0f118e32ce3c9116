"""Whether what was cited proves the answer: opened, complete, and not just everything."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple

from gymsuite.search.excerpts import words_of

LOWEST_PRECISION = 2 / 3


class CitationMarks(NamedTuple):
    """How the citations fared. `sound` is what an answer needs to count."""

    sound: bool
    precision: float
    recall: float


def judge_citations(state: Mapping[str, Any], evidence: Sequence[Collection[str]]) -> CitationMarks:
    """Judge the citations in a submission's `state`.

    Args:
        state: What the episode's desk noted.
        evidence: For each fact that the answer rests on, the documents that state it: one of
            them must be cited. Only documents that were opened count; two thirds of all
            cited ones must be evidence, so that citing everything earns nothing.
    """
    citations: Sequence[Mapping[str, Any]] = state.get("citations", ())
    cited = {citation["document"] for citation in citations}
    valid = {citation["document"] for citation in citations if citation["opened"]}
    hit = sum(bool(valid & set(documents)) for documents in evidence)
    useful = valid & {document for documents in evidence for document in documents}
    precision = len(useful) / len(cited) if cited else 0.0
    recall = hit / len(evidence) if evidence else 0.0
    sound = bool(evidence) and hit == len(evidence) and precision >= LOWEST_PRECISION
    return CitationMarks(sound, precision, recall)


def judge_quotes(
    state: Mapping[str, Any], evidence: Mapping[str, str], barred: Collection[str] = ()
) -> CitationMarks:
    """Judge citations that must carry quotes.

    Args:
        state: What the episode's desk noted.
        evidence: For each document that must be cited the words that its quote must hold. Only
            quotes of opened documents count, literal and of 5 to 40 words.
        barred: Documents that prove nothing any more; to cite one of them spoils the proof.
    """
    citations: Sequence[Mapping[str, Any]] = state.get("citations", ())
    cited = {citation["document"] for citation in citations}
    proved = {
        citation["document"]
        for citation in citations
        if citation["opened"] and citation["quoted"] and _covers(citation, evidence)
    }
    precision = len(proved) / len(cited) if cited else 0.0
    recall = len(proved) / len(evidence) if evidence else 0.0
    whole = bool(evidence) and len(proved) == len(evidence)
    sound = whole and precision >= LOWEST_PRECISION and not cited & set(barred)
    return CitationMarks(sound, precision, recall)


def proof_metrics(
    right: bool,  # noqa: FBT001 - whether the answer is
    marks: CitationMarks,
    state: Mapping[str, Any],
) -> dict[str, float]:
    """What a score of an answer with its proof says of both."""
    return {
        "answer": float(right),
        "citation_precision": marks.precision,
        "citation_recall": marks.recall,
        "searches": float(state.get("searches", 0)),
    }


def _covers(citation: Mapping[str, Any], evidence: Mapping[str, str]) -> bool:
    wanted = evidence.get(citation["document"])
    if wanted is None:
        return False
    return f" {' '.join(words_of(wanted))} " in f" {citation['quote']} "
