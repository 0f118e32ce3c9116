"""2WikiMultihopQA: `{train,dev}.json` with evidence triples, and `id_aliases.json` for answers."""

from collections.abc import Mapping
from pathlib import Path

from pydantic import Field

from gymsuite.formats.hotpotqa import paragraphs, support_of
from gymsuite.formats.rows import Row, RowId, read_json, read_jsonl
from gymsuite.search.qa_set import QaSet, distinct, question
from gymsuite.types import Task


class TwoWikiRow(Row):
    """One question; `evidences` are subject, relation and object of each step."""

    id: RowId = Field(alias="_id")
    question: str
    answer: str
    answer_id: str | None = None
    type: str = ""
    supporting_facts: tuple[tuple[str, int], ...] = ()
    context: tuple[tuple[str, tuple[str, ...]], ...] = ()
    evidences: tuple[tuple[str, str, str], ...] = ()


class AliasRow(Row):
    """The other names of one entity."""

    id: RowId = Field(alias="Q_id")
    aliases: tuple[str, ...] = ()
    demonyms: tuple[str, ...] = ()


def read_two_wiki(
    path: Path, aliases: Path | None = None, *, scorer: str = "2wiki_em", split: str = "test"
) -> QaSet:
    """Read the questions, and the aliases of their answers if they are at hand."""
    names: Mapping[str, tuple[str, ...]] = {}
    if aliases is not None:
        names = {row.id: (*row.aliases, *row.demonyms) for row in read_jsonl(aliases, AliasRow)}
    rows = list(read_json(path, TwoWikiRow))
    tasks = tuple(_task(row, names, scorer, split) for row in rows)
    return QaSet(tasks, distinct(page for row in rows for page in paragraphs(row.context)))


def _task(row: TwoWikiRow, names: Mapping[str, tuple[str, ...]], scorer: str, split: str) -> Task:
    return question(
        row.id,
        row.question,
        list(dict.fromkeys((row.answer, *names.get(row.answer_id or "", ())))),
        scorer=scorer,
        support=support_of(row.supporting_facts, row.context),
        split=split,
        level=max(1, len(row.evidences)),
        metadata={"type": row.type},
    )
