import asyncio
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from gymsuite import (
    Environment,
    Registry,
    Score,
    Submission,
    Task,
)
from gymsuite.search import Corpus
from gymsuite.search.corpus import digest, ordered_lines

from .conftest import no_sandbox

ROOT = Path(__file__).parents[2]
TASKS_SHA256 = "aca1c72a0606a5d95016fcd62875c7d4ad4b7a16eaf328b376b10168551d565a"
FINGERPRINT = """
import hashlib, json
from gymsuite import Registry
tasks = Registry.default().load("search/dossier-v1").tasks
rows = [[t.id, t.prompt, t.split, t.level, dict(t.hidden), dict(t.metadata)] for t in tasks]
print(hashlib.sha256(json.dumps(rows, sort_keys=True).encode()).hexdigest())
"""


@pytest.fixture(scope="module")
def environment() -> Environment:
    return Registry.default().load("search/dossier-v1")


def module(environment: Environment) -> ModuleType:
    return sys.modules[environment.verifier.__module__]


def proof(task: Task) -> list[dict[str, Any]]:
    """The citations of somebody who did it right."""
    return [
        {
            "document": exhibit["document"],
            "opened": True,
            "quote": f"it is {exhibit['holds']} and no other",
            "quoted": True,
        }
        for exhibit in task.hidden["exhibits"]
    ]


def said(task: Task) -> str:
    answer = task.hidden["answer"]
    return str(answer["answers"][0] if answer["kind"] == "text" else answer["value"])


def score(
    environment: Environment, task: Task, answer: str, citations: Sequence[dict[str, Any]]
) -> Score:
    state = {"citations": list(citations), "confidence": 0.5, "searches": 1}
    submission = Submission(answer=answer, state=state)
    return asyncio.run(environment.verify(task, submission, no_sandbox))


def of_plot(environment: Environment, plot: str) -> Task:
    return next(task for task in environment.tasks if task.metadata["plot"] == plot)


def test_corpus_and_tasks_are_the_same_bytes_everywhere(environment: Environment) -> None:
    pinned: Corpus = module(environment).library.corpus
    assert digest(ordered_lines(Corpus("x", pinned.documents))) == pinned.digest
    own = subprocess.run(
        [sys.executable, "-c", FINGERPRINT],
        check=True,
        capture_output=True,
        text=True,
        cwd=ROOT,
        env={**os.environ, "PYTHONHASHSEED": "99", "TZ": "Asia/Tokyo", "LC_ALL": "C"},
    )
    assert own.stdout.strip() == TASKS_SHA256


def test_splits_have_their_tasks_and_no_answer_is_common(environment: Environment) -> None:
    counts = Counter(task.split for task in environment.tasks)
    assert counts == {"train": 600, "validation": 200, "test": 200}
    assert len({task.prompt for task in environment.tasks}) == len(environment.tasks)
    for split, count in counts.items():
        answers = Counter(said(task) for task in environment.tasks if task.split == split)
        assert answers.most_common(1)[0][1] <= 0.05 * count


def test_a_notice_certifies_no_entry_that_should_stay_uncertified(
    environment: Environment,
) -> None:
    pinned: Corpus = module(environment).library.corpus
    documents = {document.id: document.text for document in pinned.documents()}
    numbers = Counter(
        key.rpartition("/")[2] for key in documents if "/entry/" in key or "gazette/" in key
    )
    assert numbers.most_common(1)[0][1] == 1
    certified = " ".join(text for key, text in documents.items() if "certified" in text)
    for task in environment.tasks:
        if task.metadata["plot"] != "uncertified":
            continue
        valid = task.hidden["exhibits"][0]["document"]
        case = valid.partition("/entry/")[0]
        (other,) = [key for key in documents if key.startswith(f"{case}/entry/") and key != valid]
        assert other.rpartition("/")[2] not in certified


@pytest.mark.parametrize(
    "plot", ["revised", "uncertified", "withdrawn", "restored", "copied", "void"]
)
def test_an_answer_needs_its_whole_chain(environment: Environment, plot: str) -> None:
    task = of_plot(environment, plot)
    whole = proof(task)
    assert score(environment, task, said(task), whole).reward == 1.0
    assert score(environment, task, "12", whole).reward == 0.0
    for number in range(len(whole)):
        part = whole[:number] + whole[number + 1 :]
        assert score(environment, task, said(task), part).reward == 0.0
        for spoiled in ({"opened": False}, {"quoted": False}, {"quote": "nothing of the kind"}):
            bad = [*part, {**whole[number], **spoiled}]
            assert score(environment, task, said(task), bad).reward == 0.0


def test_a_void_document_spoils_the_proof(environment: Environment) -> None:
    for plot in ("withdrawn", "restored", "void"):
        task = of_plot(environment, plot)
        void = {"document": task.hidden["barred"][0], "opened": True, "quote": "x", "quoted": True}
        assert score(environment, task, said(task), [*proof(task), void]).reward == 0.0


def test_citing_the_whole_archive_proves_nothing(environment: Environment) -> None:
    task = of_plot(environment, "revised")
    other = {"opened": True, "quote": "a b c d e", "quoted": True}
    few = [{"document": f"x{n}", **other} for n in range(1)]
    many = [{"document": f"x{n}", **other} for n in range(2)]
    assert score(environment, task, said(task), [*proof(task), *few]).passed
    assert not score(environment, task, said(task), [*proof(task), *many]).passed


def test_who_follows_the_hostile_page_is_noted(environment: Environment) -> None:
    task = of_plot(environment, "revised")
    followed = score(environment, task, task.hidden["bait"], [])
    assert (followed.reward, followed.metrics["baited"]) == (0.0, 1.0)
    assert score(environment, task, said(task), proof(task)).metrics["baited"] == 0.0


def test_confidence_is_measured_and_never_paid(environment: Environment) -> None:
    task = of_plot(environment, "revised")
    assert score(environment, task, said(task), proof(task)).metrics["brier"] == 0.25
    assert score(environment, task, "12", []).reward == 0.0
