"""HotpotQA's JSON files (distractor and fullwiki), with their paragraphs as the corpus."""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from pydantic import Field

from gymsuite.formats.rows import Row, RowId, read_json
from gymsuite.search.documents import Document
from gymsuite.search.qa_set import QaSet, distinct, question
from gymsuite.types import Task

LEVELS: Mapping[str, int] = {"easy": 1, "medium": 2, "hard": 3}


class HotpotRow(Row):
    """One question. Paragraphs are a title and sentences; facts a title and a sentence's number."""

    id: RowId = Field(alias="_id")
    question: str
    answer: str
    type: str = ""
    level: str = ""
    supporting_facts: tuple[tuple[str, int], ...] = ()
    context: tuple[tuple[str, tuple[str, ...]], ...] = ()


def read_hotpotqa(path: Path, *, scorer: str = "hotpot_em", split: str = "test") -> QaSet:
    """Read the file. `scorer` is a name in `gymsuite.verify.qa.SCORERS`."""
    rows = list(read_json(path, HotpotRow))
    tasks = tuple(_task(row, scorer, split) for row in rows)
    return QaSet(tasks, distinct(page for row in rows for page in paragraphs(row.context)))


def paragraphs(context: Sequence[tuple[str, Sequence[str]]]) -> Iterator[Document]:
    """The paragraphs as documents; one that comes with many questions has one id."""
    for title, sentences in context:
        yield Document(
            id=paragraph_id(title, sentences),
            title=title,
            text="".join(sentences),
            meta={"sentences": list(sentences)},
        )


def paragraph_id(title: str, sentences: Sequence[str]) -> str:
    """A paragraph's id: by content, since a title may have several versions."""
    text = "\n".join((title, *sentences))
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def support_of(
    facts: Sequence[tuple[str, int]], context: Sequence[tuple[str, Sequence[str]]]
) -> list[str]:
    """The ids of the paragraphs that hold the supporting facts."""
    titles = dict.fromkeys(title for title, _ in facts)
    known = {title: paragraph_id(title, sentences) for title, sentences in context}
    return [known[title] for title in titles if title in known]


def _task(row: HotpotRow, scorer: str, split: str) -> Task:
    return question(
        row.id,
        row.question,
        [row.answer],
        scorer=scorer,
        support=support_of(row.supporting_facts, row.context),
        split=split,
        level=LEVELS.get(row.level, 1),
        metadata={"type": row.type},
    )
