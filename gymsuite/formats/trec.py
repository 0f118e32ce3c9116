"""TREC: relevance judgements (qrels), ranked runs, and the measures that compare them.

Measures are those of trec_eval for binary or graded judgements: a document that was not judged is
not relevant, and of a run only the order counts.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from gymsuite.errors import DefinitionError

Qrels = Mapping[str, Mapping[str, int]]
"""For each query the grade of each judged document; above 0 is relevant."""

Run = Mapping[str, Sequence[str]]
"""For each query the documents that were found, best first."""

_QRELS_FIELDS, _RUN_FIELDS = 4, 6


class Measures(NamedTuple):
    """Means over the judged queries that have a relevant document."""

    recall: float
    ndcg: float
    reciprocal_rank: float
    queries: int


def read_qrels(path: Path) -> Qrels:
    """Read `query iteration document grade`, separated by white space."""
    found: dict[str, dict[str, int]] = {}
    for number, fields in _lines(path, _QRELS_FIELDS):
        try:
            found.setdefault(fields[0], {})[fields[2]] = int(fields[3])
        except ValueError as error:
            raise DefinitionError(f"{path}:{number}: grade {fields[3]!r} is no number") from error
    return found


def read_run(path: Path) -> Run:
    """Read `query Q0 document rank score tag`; the score decides, then the document's id."""
    scored: dict[str, list[tuple[float, str]]] = {}
    for number, fields in _lines(path, _RUN_FIELDS):
        try:
            scored.setdefault(fields[0], []).append((float(fields[4]), fields[2]))
        except ValueError as error:
            raise DefinitionError(f"{path}:{number}: score {fields[4]!r} is no number") from error
    # trec_eval, too, puts the greater id first where scores are equal.
    return {
        query: [name for _, name in sorted(hits, reverse=True)] for query, hits in scored.items()
    }


def measure(qrels: Qrels, run: Run, *, depth: int = 10) -> Measures:
    """Recall, nDCG and reciprocal rank of a run's first `depth` documents."""
    rows = []
    for query, grades in qrels.items():
        relevant = {name: grade for name, grade in grades.items() if grade > 0}
        if relevant:
            rows.append(_of_one(relevant, run.get(query, ())[:depth], depth))
    if not rows:
        return Measures(0.0, 0.0, 0.0, 0)
    recall, ndcg, rank = (sum(column) / len(rows) for column in zip(*rows, strict=True))
    return Measures(recall, ndcg, rank, len(rows))


def _of_one(
    relevant: Mapping[str, int], found: Sequence[str], depth: int
) -> tuple[float, float, float]:
    hits = [relevant.get(name, 0) for name in found]
    ideal = _gain(sorted(relevant.values(), reverse=True)[:depth])
    first = next((place for place, grade in enumerate(hits, 1) if grade), 0)
    recall = sum(1 for grade in hits if grade) / len(relevant)
    return recall, _gain(hits) / ideal, 1 / first if first else 0.0


def _gain(grades: Sequence[int]) -> float:
    return sum(grade / math.log2(place + 1) for place, grade in enumerate(grades, 1))


def _lines(path: Path, count: int) -> Iterator[tuple[int, list[str]]]:
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise DefinitionError(f"{path}: {error}") from error
    for number, line in enumerate(text.splitlines(), 1):
        fields = line.split()
        if fields and len(fields) != count:
            raise DefinitionError(
                f"{path}:{number}: {count} fields are expected, not {len(fields)}"
            )
        if fields:
            yield number, fields
