"""Search-R1's rewards and the ways to find an answer in a transcript, equal to the references.

Source: Search-R1's qa_em.py and SkyRL's copy of it. Quirks: Search-R1 wants at least two answers,
because its prompt holds one as an example; a part of a word is a substring match ("theatre" holds
"atre"), as is an empty gold. They read the whole history, also what tools said: gymsuite's own
environments never do (`gymsuite.search.text_protocol`).
"""

import re
from collections.abc import Callable, Iterable, Mapping

from gymsuite.verify.qa_squad import accepted, normalize

_ANSWER = re.compile(r"<answer>(.*?)</answer>", re.DOTALL)
_ANSWERS_WITH_THE_EXAMPLE = 2


def search_r1_em(prediction: str, golds: str | Iterable[str]) -> float:
    """1.0 if the normalised prediction is one of the normalised golds."""
    predicted = normalize(prediction)
    return float(any(normalize(gold) == predicted for gold in accepted(golds)))


def search_r1_subem(prediction: str, golds: str | Iterable[str]) -> float:
    """1.0 if one of the normalised golds is a substring of the normalised prediction."""
    predicted = normalize(prediction)
    return float(any(normalize(gold) in predicted for gold in accepted(golds)))


def search_r1_extract(transcript: str) -> str | None:
    """The last answer of at least two; None for fewer."""
    answers = _ANSWER.findall(transcript)
    return answers[-1].strip() if len(answers) >= _ANSWERS_WITH_THE_EXAMPLE else None


def skyrl_extract(transcript: str) -> str | None:
    """The last answer, or None."""
    answers = _ANSWER.findall(transcript)
    return answers[-1].strip() if answers else None


def search_r1_reward(
    transcript: str,
    ground_truth: Mapping[str, str | Iterable[str]],
    *,
    format_score: float = 0.0,
    scorer: Callable[[str, str | Iterable[str]], float] = search_r1_em,
) -> float:
    """Search-R1's reward: 1 for a match, `format_score` for another answer, 0 for none.

    `scorer` is `search_r1_em` or `search_r1_subem`, as in the two functions of the reference.
    """
    answer = search_r1_extract(transcript)
    if answer is None:
        return 0.0
    return 1.0 if scorer(answer, ground_truth["target"]) else format_score
