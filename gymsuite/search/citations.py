"""Whether what was cited proves the answer: opened, complete, and not just everything."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple

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
