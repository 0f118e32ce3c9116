"""HotpotQA's answer, supporting-fact and joint metrics, equal to its official script.

Source: hotpot_evaluate_v1.py. Its quirks: "yes", "no" and "noanswer" earn F1 only when both sides
are the same, and two empty answers have an exact match of 1 and an F1 of 0.
"""

from collections.abc import Collection, Hashable, Iterable, Sequence
from typing import NamedTuple

from gymsuite.verify.qa_squad import NO_OVERLAP, Overlap, exact, normalize, overlap

_CLOSED = ("yes", "no", "noanswer")

Fact = Sequence[str | int]
"""A supporting fact: the title of a paragraph and the number of a sentence in it, from 0."""


class Marks(NamedTuple):
    """Exact match, F1, precision and recall of one prediction."""

    em: float
    f1: float
    precision: float
    recall: float


def hotpot_em(prediction: str, gold: str) -> float:
    """Exact match of the normalised answers."""
    return exact(prediction, gold)


def hotpot_overlap(prediction: str, gold: str) -> Overlap:
    """Token overlap of the answers, with the rule for yes, no and noanswer."""
    predicted, wanted = normalize(prediction), normalize(gold)
    if predicted != wanted and (predicted in _CLOSED or wanted in _CLOSED):
        return NO_OVERLAP
    return overlap(predicted.split(), wanted.split())


def hotpot_f1(prediction: str, gold: str) -> float:
    """F1 of the answers."""
    return hotpot_overlap(prediction, gold).f1


def hotpot_answer(prediction: str, gold: str) -> Marks:
    """All four marks of an answer."""
    shared = hotpot_overlap(prediction, gold)
    return Marks(hotpot_em(prediction, gold), shared.f1, shared.precision, shared.recall)


def hotpot_support(prediction: Iterable[Fact], gold: Iterable[Fact]) -> Marks:
    """All four marks of a set of supporting facts; both empty is an exact match with F1 0."""
    return set_marks(_facts(prediction), _facts(gold))


def _facts(facts: Iterable[Fact]) -> set[tuple[str | int, ...]]:
    return {tuple(fact) for fact in facts}  # JSON brings lists, and a model's of any length


def set_marks(predicted: Collection[Hashable], wanted: Collection[Hashable]) -> Marks:
    """Marks of two collections, counted item by item: a repeated item counts repeatedly."""
    hits = sum(item in wanted for item in predicted)
    missed = sum(item not in predicted for item in wanted)
    precision = hits / len(predicted) if predicted else 0.0
    recall = hits / (hits + missed) if hits + missed else 0.0
    em = float(hits == len(predicted) and not missed)
    return Marks(em, harmonic(precision, recall), precision, recall)


def joint(parts: Sequence[Marks]) -> Marks:
    """The product of exact matches, and F1 of the products of precisions and of recalls."""
    em = precision = recall = 1.0
    for part in parts:
        em, precision, recall = em * part.em, precision * part.precision, recall * part.recall
    return Marks(em, harmonic(precision, recall), precision, recall)


def hotpot_joint(
    answer: str, gold_answer: str, support: Iterable[Fact], gold_support: Iterable[Fact]
) -> Marks:
    """Answer and supporting facts judged together."""
    return joint([hotpot_answer(answer, gold_answer), hotpot_support(support, gold_support)])


def harmonic(precision: float, recall: float) -> float:
    """F1 of a precision and a recall; 0.0 where both are 0."""
    total = precision + recall
    return 2 * precision * recall / total if total > 0 else 0.0
