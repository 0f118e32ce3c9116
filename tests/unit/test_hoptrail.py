import asyncio
import importlib
import json
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
    Episode,
    Message,
    Registry,
    Submission,
    Task,
    ToolCall,
)
from gymsuite.search import Corpus, Library
from gymsuite.search.corpus import digest, ordered_lines
from gymsuite.verify.qa_fold import canonical

from .conftest import no_sandbox

ROOT = Path(__file__).parents[2]
TASKS_SHA256 = "1cde0e6f479892c3c32a6d36e0b849c927ea9bf586d5023623a5c1e4a56f377b"
FINGERPRINT = """
import hashlib, json
from gymsuite import Registry
tasks = Registry.default().load("search/hoptrail-v1").tasks
rows = [[t.id, t.prompt, t.split, t.level, dict(t.hidden), dict(t.metadata)] for t in tasks]
print(hashlib.sha256(json.dumps(rows, sort_keys=True).encode()).hexdigest())
"""


@pytest.fixture(scope="module")
def environment() -> Environment:
    return Registry.default().load("search/hoptrail-v1")


def part(environment: Environment, name: str = "environment") -> ModuleType:
    package = environment.verifier.__module__
    return (
        sys.modules[package]
        if name == "environment"
        else importlib.import_module(f"{package}.{name}")
    )


@pytest.fixture(scope="module")
def library(environment: Environment, tmp_path_factory: pytest.TempPathFactory) -> Library:
    cache_folder = tmp_path_factory.mktemp("cache")
    return Library(part(environment).library.corpus, lambda: cache_folder)


def split_of(tasks: Sequence[Task], split: str) -> list[Task]:
    return [task for task in tasks if task.split == split]


def test_the_corpus_is_the_pinned_one(environment: Environment) -> None:
    pinned: Corpus = part(environment).library.corpus
    assert pinned.digest
    assert digest(ordered_lines(Corpus("x", pinned.documents))) == pinned.digest


def test_tasks_are_the_same_bytes_everywhere() -> None:
    for seed, zone in (("4242", "Asia/Tokyo"), ("0", "America/St_Johns")):
        own = subprocess.run(
            [sys.executable, "-c", FINGERPRINT],
            check=True,
            capture_output=True,
            text=True,
            cwd=ROOT,
            env={**os.environ, "PYTHONHASHSEED": seed, "TZ": zone, "LC_ALL": "C"},
        )
        assert own.stdout.strip() == TASKS_SHA256


def test_every_split_has_its_tasks_with_ids_and_questions_of_their_own(
    environment: Environment,
) -> None:
    tasks = environment.tasks
    counts = Counter(task.split for task in tasks)
    assert counts == {"train": 1000, "validation": 200, "test": 200, "ood": 200}
    assert len({task.id for task in tasks}) == len(tasks)
    questions = [task.prompt for task in tasks if task.metadata.get("answerable", 1)]
    assert len(set(questions)) == len(questions)


def test_no_name_is_in_two_splits(environment: Environment) -> None:
    worlds = part(environment, "tasks").worlds()
    names = {
        split: {word for e in world.entities.values() for word in (*e.name.split()[-2:], e.alias)}
        for split, world in worlds.items()
    }
    common = {"Upper", "Lower", "the", "Province", "Institute", "Foundry", "Guild", "Press"}
    common |= {"Observatory", "Archive", "Chronicle", "Ballad", "Atlas", "Letters", "Herbal"}
    common |= {"Diary", "Congress", "Fair", "Regatta", "Exhibition", "Festival"}
    for one, mine in names.items():
        for two, theirs in names.items():
            assert one == two or not (mine & theirs) - common


def test_answers_are_not_in_prompts_titles_or_ids(environment: Environment) -> None:
    said = part(environment, "trail").said_by
    gold = part(environment)._GOLD
    for task in environment.tasks:
        answers = [f" {canonical(a)} " for a in said(gold.validate_python(task.hidden["answer"]))]
        question = f" {canonical(task.prompt.splitlines()[0])} "
        if task.hidden["answer"]["kind"] != "number":
            assert not any(answer in question for answer in answers), task.id
        assert task.id.partition("-")[0] == task.split


def test_one_search_with_the_question_does_not_find_the_answer(
    environment: Environment, library: Library
) -> None:
    said, gold = part(environment, "trail").said_by, part(environment)._GOLD

    async def leaks() -> Counter[str]:
        retriever = await library.open()
        found: Counter[str] = Counter()
        for task in environment.tasks:
            if task.metadata["kind"] == "count" or not task.metadata.get("answerable", 1):
                continue
            hits = await retriever.search(task.prompt.splitlines()[0], 5)
            texts = [f" {canonical(f'{h.document.title} {h.document.text}')} " for h in hits]
            golds = said(gold.validate_python(task.hidden["answer"]))
            found[task.split] += any(f" {canonical(a)} " in text for a in golds for text in texts)
        return found

    found = asyncio.run(leaks())
    for split, count in Counter(task.split for task in environment.tasks).items():
        assert found[split] <= 0.02 * count


def test_one_query_for_each_page_of_a_trail_finds_it(
    environment: Environment, library: Library
) -> None:
    async def missed() -> list[str]:
        retriever = await library.open()
        return [
            task.id
            for task in environment.tasks
            for query, page in task.hidden["trail"]
            if page not in [hit.document.id for hit in await retriever.search(query, 10)]
        ]

    assert not asyncio.run(missed())


def test_no_answer_is_common(environment: Environment) -> None:
    for split in ("train", "validation", "test", "ood"):
        tasks = split_of(environment.tasks, split)
        answers = Counter(json.dumps(dict(task.hidden["answer"])) for task in tasks)
        assert answers.most_common(1)[0][1] <= 0.05 * len(tasks)


def test_unanswerable_twins_ask_the_same_and_miss_the_last_page(environment: Environment) -> None:
    tasks = {task.id: task for task in environment.tasks}
    twins = [task for task in tasks.values() if not task.metadata.get("answerable", 1)]
    assert len(twins) >= 0.03 * len(tasks)
    for twin in twins:
        whole = tasks[str(twin.metadata["pair"])]
        assert whole.prompt == twin.prompt
        assert [whole.hidden["evidence"][-1]] == [twin.hidden["withheld"]]
        assert twin.hidden["evidence"] == whole.hidden["evidence"][: len(twin.hidden["evidence"])]
        assert twin.hidden["evidence"]


def score(environment: Environment, task: Task, answer: str, cited: Sequence[str]) -> bool:
    citations = [{"document": c, "opened": True, "quote": "", "quoted": False} for c in cited]
    submission = Submission(answer=answer, state={"citations": citations, "searches": 1})
    return asyncio.run(environment.verify(task, submission, no_sandbox)).passed


def test_an_answer_counts_with_its_whole_proof_only(environment: Environment) -> None:
    task = next(t for t in environment.tasks if t.hidden["answer"]["kind"] == "text")
    pages = [page for (page,) in task.hidden["evidence"]]
    answer, other = task.hidden["answer"]["answers"][0], environment.tasks[-1]
    strangers = [page for (page,) in other.hidden["evidence"]]
    assert score(environment, task, answer, pages)
    assert score(environment, task, task.hidden["answer"]["answers"][-1], pages[::-1])
    assert score(environment, task, answer, [*pages, strangers[0]])
    assert not score(environment, task, answer, pages[:-1])
    assert not score(environment, task, answer, [])
    assert not score(environment, task, answer, strangers)
    assert not score(environment, task, f"{answer} or {strangers[0]}", pages)
    assert not score(environment, task, "insufficient evidence", pages)


def test_no_reply_to_a_mistake_holds_the_answer(environment: Environment) -> None:
    said, gold = part(environment, "trail").said_by, part(environment)._GOLD
    mistakes: list[tuple[str, dict[str, Any]]] = [
        ("search", {"query": " "}),
        ("search", {"query": "x" * 600}),
        ("open", {"document": "#1"}),
        ("open", {"document": "train/p1/main"}),
        ("find", {"document": "nowhere", "text": "x"}),
        ("submit", {"answer": "x", "citations": ["train/p1/main"]}),
        ("submit", {"answer": 5}),
        ("answer", {}),
    ]
    calls = tuple(
        ToolCall(id=str(n), name=name, arguments=arguments)
        for n, (name, arguments) in enumerate(mistakes)
    )

    async def replies(task: Task) -> str:
        async with Episode(environment, no_sandbox) as episode:
            await episode.reset(task, 0)
            step = await episode.step(Message(role="assistant", tool_calls=calls))
            assert not step.terminated
            return " ".join(message.text for message in step.observation.messages)

    for task in environment.tasks[::100]:
        text = f" {canonical(asyncio.run(replies(task)))} "
        golds = said(gold.validate_python(task.hidden["answer"]))
        assert not any(f" {canonical(answer)} " in text for answer in golds if len(answer) > 3)
