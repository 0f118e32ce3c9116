"""Exact match and F1 as SQuAD's own script computes them, quirks included.

Source: the official evaluation script of SQuAD 2.0. Punctuation is deleted rather than replaced,
so "3.14" equals "314" and "C++" equals "C"; only ASCII punctuation counts. For a fair comparison
of answers use `gymsuite.verify.qa_typed`.
"""

import re
import string
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

_PUNCTUATION = str.maketrans("", "", string.punctuation)
_ARTICLES = re.compile(r"\b(a|an|the)\b")


class Overlap(NamedTuple):
    """How much two bags of words share."""

    f1: float
    precision: float
    recall: float


NO_OVERLAP = Overlap(0.0, 0.0, 0.0)


def normalize(text: str) -> str:
    """Lower case, then no ASCII punctuation, then no articles, then single spaces."""
    return " ".join(_ARTICLES.sub(" ", text.lower().translate(_PUNCTUATION)).split())


def overlap(prediction: Sequence[str], gold: Sequence[str]) -> Overlap:
    """Token-level overlap, repetitions counted; nothing in common is all zeros."""
    same = (Counter(prediction) & Counter(gold)).total()
    if not same:
        return NO_OVERLAP
    precision, recall = same / len(prediction), same / len(gold)
    return Overlap(2 * precision * recall / (precision + recall), precision, recall)


def exact(prediction: str, gold: str) -> float:
    """1.0 when both normalise to the same text."""
    return float(normalize(prediction) == normalize(gold))


def token_f1(prediction: str, gold: str) -> float:
    """F1 of the normalised tokens; where one side has none, 1.0 only if both have none."""
    predicted, wanted = normalize(prediction).split(), normalize(gold).split()
    if not predicted or not wanted:
        return float(predicted == wanted)
    return overlap(predicted, wanted).f1


def accepted(golds: str | Iterable[str]) -> Sequence[str]:
    """The accepted answers; a text alone is one of them, not a list of its letters."""
    return [golds] if isinstance(golds, str) else list(golds)


def best(metric: Callable[[str, str], float], prediction: str, golds: str | Iterable[str]) -> float:
    """The metric's maximum over the accepted answers; raises `ValueError` if there are none."""
    return max(metric(prediction, gold) for gold in accepted(golds))


def squad_em(prediction: str, golds: str | Iterable[str]) -> float:
    """SQuAD's exact match against the nearest accepted answer; no answers mean "no answer"."""
    return best(exact, prediction, _answers(golds))


def squad_f1(prediction: str, golds: str | Iterable[str]) -> float:
    """SQuAD 2.0's F1 against the nearest accepted answer; no answers mean "no answer"."""
    return best(token_f1, prediction, _answers(golds))


def _answers(golds: str | Iterable[str]) -> Sequence[str]:
    return [gold for gold in accepted(golds) if normalize(gold)] or [""]
