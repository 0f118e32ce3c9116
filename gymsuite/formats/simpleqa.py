"""SimpleQA (CSV: `metadata,problem,answer`) and FRAMES (TSV: `Prompt`, `Answer`)."""

from pathlib import Path

from pydantic import Field

from gymsuite.formats.rows import Row, read_csv
from gymsuite.search.qa_set import QaSet, question


class SimpleQaRow(Row):
    """One question; `metadata` is a Python dict in a string, and is not read."""

    problem: str
    answer: str


class FramesRow(Row):
    """One question of FRAMES."""

    prompt: str = Field(alias="Prompt")
    answer: str = Field(alias="Answer")


def read_simpleqa(path: Path, *, scorer: str = "typed") -> QaSet:
    """Read SimpleQA."""
    rows = enumerate(read_csv(path, SimpleQaRow))
    return QaSet(
        tuple(
            question(f"simpleqa-{n}", row.problem, [row.answer], scorer=scorer) for n, row in rows
        )
    )


def read_frames(path: Path, *, scorer: str = "typed") -> QaSet:
    """Read FRAMES."""
    rows = enumerate(read_csv(path, FramesRow, delimiter="\t"))
    return QaSet(
        tuple(question(f"frames-{n}", row.prompt, [row.answer], scorer=scorer) for n, row in rows)
    )
