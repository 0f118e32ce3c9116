"""2WikiMultihopQA's metrics: answer with aliases, supporting facts, evidence triples, joint.

Source: 2wikimultihop_evaluate_v1.1.py. Quirks: precision and recall of an answer are maximised
each for itself over the aliases; titles are lower-cased after duplicates were removed, so two
spellings of one title count twice; triples keep their articles.
"""

import string
from collections.abc import Iterable, Sequence

from gymsuite.verify.qa_hotpot import Fact, Marks, harmonic, hotpot_answer, joint, set_marks
from gymsuite.verify.qa_squad import accepted

Triple = Sequence[str]
"""Subject, relation and object of one step of reasoning."""

_NOTHING = Marks(0.0, 0.0, 0.0, 0.0)
_PUNCTUATION = str.maketrans("", "", string.punctuation)


def two_wiki_answer(prediction: str, golds: str | Iterable[str]) -> Marks:
    """Each mark's own maximum over the answer and its aliases; all zeros if there are none."""
    marks = [hotpot_answer(prediction, gold) for gold in accepted(golds)]
    return Marks(*(max(column) for column in zip(_NOTHING, *marks, strict=True)))


def two_wiki_support(prediction: Iterable[Fact], gold: Iterable[Fact]) -> Marks:
    """Marks of supporting facts, titles compared in lower case."""
    return set_marks(_lowered(prediction), _lowered(gold))


def two_wiki_evidence(prediction: Iterable[Triple], gold: Sequence[Iterable[Triple]]) -> Marks:
    """Marks of evidence triples; each gold step is given as all its accepted spellings."""
    predicted = {_plain(triple) for triple in prediction}
    wanted = [{_plain(triple) for triple in spellings} for spellings in gold]
    hits = sum(any(triple in spellings for spellings in wanted) for triple in predicted)
    precision = hits / len(predicted) if predicted else 0.0
    recall = hits / len(wanted) if wanted else 0.0
    em = float(hits == len(predicted) == len(wanted))
    return Marks(em, harmonic(precision, recall), precision, recall)


def two_wiki_joint(answer: Marks, support: Marks, evidence: Marks) -> Marks:
    """Answer, support and evidence judged together."""
    return joint([answer, support, evidence])


def _lowered(facts: Iterable[Fact]) -> list[tuple[str | int, ...]]:
    distinct = {tuple(fact) for fact in facts}
    return [(str(title).lower(), *rest) for title, *rest in distinct]


def _plain(triple: Triple) -> tuple[str, ...]:
    return tuple(" ".join(part.lower().translate(_PUNCTUATION).split()) for part in triple)
