"""BEIR folders (`corpus.jsonl`, `queries.jsonl`, `qrels/*.tsv`) as tasks to find and cite."""

from pathlib import Path

from pydantic import Field

from gymsuite.errors import DefinitionError
from gymsuite.formats.rows import Row, RowId, read_csv, read_jsonl
from gymsuite.formats.trec import Qrels
from gymsuite.search.desk import MOST_CITATIONS
from gymsuite.search.documents import Document
from gymsuite.search.qa_set import QaSet, retrieval


class CorpusRow(Row):
    """One document."""

    id: RowId = Field(alias="_id")
    title: str = ""
    text: str


class QueryRow(Row):
    """One query."""

    id: RowId = Field(alias="_id")
    text: str


class JudgementRow(Row):
    """One judgement; BEIR's files have a header, TREC's do not."""

    query: str = Field(alias="query-id")
    document: str = Field(alias="corpus-id")
    score: int


def read_beir_qrels(path: Path) -> Qrels:
    """Read `query-id corpus-id score`, separated by tabs."""
    found: dict[str, dict[str, int]] = {}
    for row in read_csv(path, JudgementRow, delimiter="\t"):
        found.setdefault(row.query, {})[row.document] = row.score
    return found


def read_beir(folder: Path, *, split: str = "test") -> QaSet:
    """Read one split of a data set.

    A query becomes a task if it has 1 to `MOST_CITATIONS` relevant documents: more cannot be cited.
    """
    qrels = read_beir_qrels(folder / "qrels" / f"{split}.tsv")
    documents = tuple(
        Document(id=row.id, title=row.title, text=row.text)
        for row in read_jsonl(folder / "corpus.jsonl", CorpusRow)
    )
    known = {document.id for document in documents}
    tasks = []
    for row in read_jsonl(folder / "queries.jsonl", QueryRow):
        relevant = [name for name, grade in qrels.get(row.id, {}).items() if grade > 0]
        if missing := [name for name in relevant if name not in known]:
            raise DefinitionError(
                f"{folder}: query {row.id!r} needs {missing[0]!r}: no such document"
            )
        if 1 <= len(relevant) <= MOST_CITATIONS:
            tasks.append(retrieval(row.id, row.text, relevant, split=split))
    return QaSet(tuple(tasks), documents)
