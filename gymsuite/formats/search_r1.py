"""Search-R1's Parquet files, and the JSONL of golden answers that they are made of."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from gymsuite.formats.rows import Row, RowId, checked, read_jsonl
from gymsuite.search.parquet import read_rows
from gymsuite.search.qa_set import QaSet, question

_QUESTION = "Question:"


class Target(Row):
    """The accepted answers."""

    target: tuple[str, ...]


class RewardModel(Row):
    """How Search-R1 scores a row: always by a rule."""

    style: str = "rule"
    ground_truth: Target


class Turn(Row):
    """One message of the prompt."""

    role: str
    content: str


class SearchR1Row(Row):
    """One row of the Parquet file."""

    data_source: str
    prompt: tuple[Turn, ...]
    reward_model: RewardModel
    extra_info: Mapping[str, Any] = {}


class GoldenRow(Row):
    """One row of FlashRAG's JSONL files."""

    id: RowId
    question: str
    golden_answers: tuple[str, ...]


def read_search_r1(path: Path, *, scorer: str = "search_r1_em") -> QaSet:
    """Read a Parquet file; its corpus, wiki-18, is a file of its own.

    The prompt holds Search-R1's own instructions with an example answer: only the question after
    "Question:" is kept, because the environment has its own.
    """
    tasks = []
    for number, row in enumerate(checked(path, enumerate(read_rows(path), 1), SearchR1Row)):
        extra = {str(key): value for key, value in row.extra_info.items()}
        split, index = str(extra.get("split", "test")), extra.get("index", number)
        said = row.prompt[-1].content
        text = said.rpartition(_QUESTION)[2] if _QUESTION in said else said
        tasks.append(
            question(
                f"{row.data_source}-{split}-{index}",
                text.strip(),
                row.reward_model.ground_truth.target,
                scorer=scorer,
                split=split,
                metadata={"data_source": row.data_source},
            )
        )
    return QaSet(tuple(tasks))


def read_golden(path: Path, *, scorer: str = "search_r1_em", split: str = "test") -> QaSet:
    """Read `{id, question, golden_answers}` lines."""
    return QaSet(
        tuple(
            question(row.id, row.question, row.golden_answers, scorer=scorer, split=split)
            for row in read_jsonl(path, GoldenRow)
        )
    )
