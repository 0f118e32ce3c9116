"""MuSiQue: `musique_{ans,full}_v1.0_{train,dev}.jsonl`, unanswerable halves of pairs included."""

import hashlib
from collections.abc import Iterator
from pathlib import Path

from gymsuite.formats.rows import Row, RowId, read_jsonl
from gymsuite.search.documents import Document
from gymsuite.search.qa_set import QaSet, distinct, question
from gymsuite.types import Task
from gymsuite.verify.qa_typed import INSUFFICIENT


class Paragraph(Row):
    """One of the twenty paragraphs that come with a question."""

    idx: int
    title: str
    paragraph_text: str
    is_supporting: bool = False


class Hop(Row):
    """One step of the decomposition; only their number matters here."""

    question: str


class MusiqueRow(Row):
    """One question; in the full edition its other half has the same id."""

    id: RowId
    question: str
    answer: str
    answer_aliases: tuple[str, ...] = ()
    answerable: bool = True
    paragraphs: tuple[Paragraph, ...] = ()
    question_decomposition: tuple[Hop, ...] = ()


def read_musique(path: Path, *, scorer: str = "musique_em", split: str = "test") -> QaSet:
    """Read the file.

    All paragraphs go into one corpus, in which the other half of a pair finds what it lacks: for
    the full edition as it was meant, give each question its own paragraphs.
    """
    rows = list(read_jsonl(path, MusiqueRow))
    tasks = tuple(_task(row, scorer, split) for row in rows)
    return QaSet(tasks, distinct(page for row in rows for page in _documents(row)))


def _documents(row: MusiqueRow) -> Iterator[Document]:
    for paragraph in row.paragraphs:
        yield Document(
            id=_paragraph_id(paragraph), title=paragraph.title, text=paragraph.paragraph_text
        )


def _paragraph_id(paragraph: Paragraph) -> str:
    text = f"{paragraph.title}\n{paragraph.paragraph_text}"
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _task(row: MusiqueRow, scorer: str, split: str) -> Task:
    answers = [row.answer, *row.answer_aliases] if row.answerable else INSUFFICIENT.answers
    return question(
        row.id if row.answerable else f"{row.id}-unanswerable",
        row.question,
        answers,
        scorer=scorer,
        support=[_paragraph_id(p) for p in row.paragraphs if p.is_supporting],
        split=split,
        level=max(1, len(row.question_decomposition)),
        metadata={"pair": row.id, "answerable": row.answerable},
    )
