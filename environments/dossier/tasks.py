"""The corpus and the tasks: what is valid today, or who was the first to err, and the proof."""

import functools
import random
from collections.abc import Iterator, Mapping
from decimal import Decimal
from typing import Any, NamedTuple

from gymsuite import Task
from gymsuite.search import Document
from gymsuite.search.invented import Words
from gymsuite.verify.qa_typed import INSUFFICIENT, NumberGold, TextGold

from .cases import Case, Entry, Numbers, cases, valid
from .papers import documents as papers_of
from .papers import entry_id, entry_sentence, notice_id, report_id, report_sentence

VERSION = "dossier-v1"
SPLITS: Mapping[str, int] = {"train": 600, "validation": 200, "test": 200}
_RULES = (
    "\n\nA figure is valid if it stands in the Register of Works and the County Gazette has "
    "certified that entry. An entry that the gazette has withdrawn is void, unless that notice was "
    "annulled. Of several valid entries the latest counts. Notices name entries by number only. "
    "Newspapers and forums copy from one another and prove nothing."
)
_PROOF = (
    "\n\nSubmit one short answer, and cite, each with a literal quote of 5 to 40 words, the "
    "documents that prove it, and no others: "
)
_VALUE_PROOF = (
    "the entry (quote its figure), the notice that certifies it (quote the entry's number), and, "
    "if there is one, the notice that withdraws the other entry (quote that entry's number) or the "
    "one that annuls a withdrawal (quote the annulled notice's number). Never cite a document that "
    'is void. If no figure is valid, answer "insufficient evidence" and cite the notice that '
    "withdrew the only entry."
)
_ERROR_PROOF = (
    "the newspaper's report (quote its wrong figure), the valid entry (quote its figure) and the "
    "notice that certifies that entry (quote the entry's number)."
)


class Exhibit(NamedTuple):
    """A document that must be cited: how to find it, what to quote, what the quote must hold."""

    query: str
    document: str
    quote: str
    holds: str


@functools.cache
def files() -> Mapping[str, tuple[Case, ...]]:
    """All cases of all splits, in a fixed order."""
    words = Words(random.Random(f"{VERSION}/names"), ())
    numbers = Numbers(random.Random(f"{VERSION}/numbers"))
    return {
        split: tuple(cases(split, count, words, numbers, random.Random(f"{VERSION}/{split}/cases")))
        for split, count in SPLITS.items()
    }


def documents() -> Iterator[Document]:
    """The archive."""
    for split, all_cases in files().items():
        rng = random.Random(f"{VERSION}/{split}/papers")
        for case in all_cases:
            yield from papers_of(case, rng)


def make_tasks() -> tuple[Task, ...]:
    """All tasks of all splits, shuffled within each."""
    tasks: list[Task] = []
    for split, all_cases in files().items():
        order = list(all_cases)
        random.Random(f"{VERSION}/{split}/order").shuffle(order)
        tasks += [_task(f"{split}-{n:04}", split, case) for n, case in enumerate(order)]
    return tuple(tasks)


def _task(name: str, split: str, case: Case) -> Task:
    exhibits, gold = _file(case)
    return Task(
        id=name,
        prompt=_question(case),
        split=split,
        level=len(exhibits),
        hidden={
            "answer": gold,
            "exhibits": [exhibit._asdict() for exhibit in exhibits],
            "barred": _barred(case),
            "bait": str(case.bait),
        },
        metadata={"plot": case.plot},
    )


def _question(case: Case) -> str:
    subject = case.subject
    if case.plot == "copied":
        asked = (
            f"Which newspaper was the first to print a wrong figure for the {subject.attribute} of "
            f"{subject.name}?"
        )
        return asked + _RULES + _PROOF + _ERROR_PROOF
    asked = (
        f"What is the {subject.attribute} of {subject.name}, in {subject.unit}, by the records "
        "that are valid today?"
    )
    return asked + _RULES + _PROOF + _VALUE_PROOF


def _file(case: Case) -> tuple[list[Exhibit], dict[str, Any]]:
    """What must be cited, and the typed answer."""
    entry = valid(case)
    if entry is None:
        void = case.entries[0]
        return [_withdrawal(void)], INSUFFICIENT.model_dump(mode="json")
    exhibits = [_entry(case, entry), _certificate(entry)]
    if case.plot == "copied":
        paper = case.reports[0].outlet
        answers = (paper.removeprefix("the "), paper)
        return [_report(case), *exhibits], TextGold(answers=answers).model_dump(mode="json")
    if case.plot == "withdrawn":
        exhibits.append(_withdrawal(case.entries[1]))
    if case.plot == "restored":
        exhibits.append(_annulment(case))
    gold = NumberGold(value=Decimal(entry.value), unit=case.subject.unit)
    return exhibits, gold.model_dump(mode="json")


def _barred(case: Case) -> list[str]:
    """Entries that are void and notices that have no effect."""
    if case.annulled:
        return [notice_id(entry.withdrawn) for entry in case.entries if entry.withdrawn]
    return [entry_id(case, entry) for entry in case.entries if entry.withdrawn]


def _entry(case: Case, entry: Entry) -> Exhibit:
    query = f"register of works {case.subject.name}"
    return Exhibit(query, entry_id(case, entry), entry_sentence(case, entry), str(entry.value))


def _certificate(entry: Entry) -> Exhibit:
    number = str(entry.number)
    return Exhibit(f"{number} certified", notice_id(entry.certified), "", number)


def _withdrawal(entry: Entry) -> Exhibit:
    number = str(entry.number)
    quote = f"The register's entry {number} is hereby withdrawn"
    return Exhibit(f"{number} withdrawn", notice_id(entry.withdrawn), quote, number)


def _annulment(case: Case) -> Exhibit:
    number = str(next(entry.withdrawn for entry in case.entries if entry.withdrawn))
    quote = f"The gazette's notice {number} is hereby annulled"
    return Exhibit(f"{number} annulled", notice_id(case.annulled), quote, number)


def _report(case: Case) -> Exhibit:
    report = case.reports[0]
    query = f"{report.outlet} {case.subject.name}"
    return Exhibit(query, report_id(case, 0), report_sentence(case, report), str(report.value))
