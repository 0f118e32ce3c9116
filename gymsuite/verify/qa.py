"""The scorers of short answers by name: each takes a prediction and the accepted answers."""

from collections.abc import Callable, Mapping, Sequence

from gymsuite.verify.qa_hotpot import hotpot_em, hotpot_f1
from gymsuite.verify.qa_musique import musique_em, musique_f1
from gymsuite.verify.qa_search_r1 import search_r1_em, search_r1_subem
from gymsuite.verify.qa_squad import accepted, best, squad_em, squad_f1
from gymsuite.verify.qa_two_wiki import two_wiki_answer
from gymsuite.verify.qa_typed import TextGold, typed

Scorer = Callable[[str, str | Sequence[str]], float]
"""From a prediction and the accepted answers (or the one) to a number from 0 to 1."""


def _hotpot_em(prediction: str, golds: str | Sequence[str]) -> float:
    return best(hotpot_em, prediction, golds)


def _hotpot_f1(prediction: str, golds: str | Sequence[str]) -> float:
    return best(hotpot_f1, prediction, golds)


def _two_wiki_em(prediction: str, golds: str | Sequence[str]) -> float:
    return two_wiki_answer(prediction, golds).em


def _two_wiki_f1(prediction: str, golds: str | Sequence[str]) -> float:
    return two_wiki_answer(prediction, golds).f1


def _typed(prediction: str, golds: str | Sequence[str]) -> float:
    return float(typed(prediction, TextGold(answers=tuple(accepted(golds)))))


SCORERS: Mapping[str, Scorer] = {
    "typed": _typed,
    "squad_em": squad_em,
    "squad_f1": squad_f1,
    "hotpot_em": _hotpot_em,
    "hotpot_f1": _hotpot_f1,
    "musique_em": musique_em,
    "musique_f1": musique_f1,
    "2wiki_em": _two_wiki_em,
    "2wiki_f1": _two_wiki_f1,
    "search_r1_em": search_r1_em,
    "search_r1_subem": search_r1_subem,
}
