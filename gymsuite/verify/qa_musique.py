"""MuSiQue's metrics: answer and support of one instance, and of an answerable/unanswerable pair.

Source: evaluate_v1.0.py and its metrics. Quirks: two empty supports have an F1 of 1 (0 in
HotpotQA), and a pair earns something only if answerability is judged right for both.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from gymsuite.verify.qa_hotpot import Marks, set_marks
from gymsuite.verify.qa_squad import best, exact, token_f1


class PairMarks(NamedTuple):
    """Exact match and F1 of a pair, and whether answerability was judged right for both."""

    em: float
    f1: float
    sufficiency: float


def musique_em(prediction: str, golds: str | Iterable[str]) -> float:
    """Exact match with the nearest of the answer and its aliases."""
    return best(exact, prediction, golds)


def musique_f1(prediction: str, golds: str | Iterable[str]) -> float:
    """F1 with the nearest of the answer and its aliases."""
    return best(token_f1, prediction, golds)


def musique_support(prediction: Iterable[int], gold: Iterable[int]) -> Marks:
    """Marks of the numbers of supporting paragraphs; precision and recall stay 0 for none."""
    predicted, wanted = {*map(int, prediction)}, {*map(int, gold)}
    marks = set_marks(predicted, wanted)
    return marks if predicted or wanted else marks._replace(em=1.0, f1=1.0)


def musique_pair_answer(
    prediction: str,
    golds: str | Iterable[str],
    judged: Sequence[bool],
    answerable: Sequence[bool],
) -> PairMarks:
    """Score a pair by the answer to its answerable half, if both were judged right."""
    return _pair(musique_em(prediction, golds), musique_f1(prediction, golds), judged, answerable)


def musique_pair_support(
    prediction: Iterable[int],
    gold: Iterable[int],
    judged: Sequence[bool],
    answerable: Sequence[bool],
) -> PairMarks:
    """Score a pair by the support of its answerable half, if both were judged right."""
    marks = musique_support(prediction, gold)
    return _pair(marks.em, marks.f1, judged, answerable)


def _pair(em: float, f1: float, judged: Sequence[bool], answerable: Sequence[bool]) -> PairMarks:
    right = float(list(judged) == list(answerable))
    return PairMarks(em * right, f1 * right, right)
