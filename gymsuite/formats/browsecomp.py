"""BrowseComp (CSV) and BrowseComp-Plus (JSONL): published encrypted, decrypted in memory only.

Their authors ask that the plain text is never put online. Rollouts hold the questions that were
asked: keep such run directories to yourself. Source of the scheme: simple-evals' browsecomp_eval.py
(XOR with the repeated SHA-256 of the canary, in base64).
"""

import base64
import hashlib
from collections.abc import Sequence
from itertools import cycle
from pathlib import Path

from gymsuite.errors import DefinitionError
from gymsuite.formats.rows import Row, RowId, read_csv, read_jsonl
from gymsuite.search.qa_set import QaSet, question


class BrowseCompRow(Row):
    """One row; `canary` is its own key."""

    problem: str
    answer: str
    canary: str


class PlusDocument(Row):
    """A document of the separate corpus; its text is not needed here."""

    docid: str


class BrowseCompPlusRow(Row):
    """One row; every text but `query_id` is encrypted with the data set's canary."""

    query_id: RowId
    query: str
    answer: str
    gold_docs: tuple[PlusDocument, ...] = ()
    evidence_docs: tuple[PlusDocument, ...] = ()


def decrypt(text: str, canary: str) -> str:
    """Decrypt one text; raises `ValueError` for what was not encrypted with this canary."""
    key = hashlib.sha256(canary.encode()).digest()
    return bytes(a ^ b for a, b in zip(base64.b64decode(text, validate=True), cycle(key))).decode()


def encrypt(text: str, canary: str) -> str:
    """The inverse of `decrypt`."""
    key = hashlib.sha256(canary.encode()).digest()
    data = bytes(a ^ b for a, b in zip(text.encode(), cycle(key)))
    return base64.b64encode(data).decode()


def read_browsecomp(path: Path, *, scorer: str = "typed") -> QaSet:
    """Read BrowseComp; its answers were meant for a judge, which `scorer` is not."""
    tasks = []
    for number, row in enumerate(read_csv(path, BrowseCompRow)):
        text, answer = _decrypted(path, number + 2, (row.problem, row.answer), row.canary)
        tasks.append(question(f"browsecomp-{number}", text, [answer], scorer=scorer))
    return QaSet(tuple(tasks))


def read_browsecomp_plus(path: Path, *, canary: str, scorer: str = "typed") -> QaSet:
    """Read BrowseComp-Plus; `hidden.support` are the ids of the evidence in its own corpus."""
    tasks = []
    for number, row in enumerate(read_jsonl(path, BrowseCompPlusRow), 1):
        ids = [document.docid for document in row.evidence_docs or row.gold_docs]
        text, answer, *support = _decrypted(path, number, (row.query, row.answer, *ids), canary)
        tasks.append(question(row.query_id, text, [answer], scorer=scorer, support=support))
    return QaSet(tuple(tasks))


def _decrypted(path: Path, number: int, texts: Sequence[str], canary: str) -> list[str]:
    try:
        return [decrypt(text, canary) for text in texts]
    except ValueError as error:
        raise DefinitionError(
            f"{path}:{number}: not encrypted with the canary that was given"
        ) from error
