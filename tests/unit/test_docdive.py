import asyncio
import importlib
import json
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from gymsuite import (
    DefinitionError,
    Environment,
    Registry,
    Submission,
    Task,
)
from gymsuite.search import Document
from gymsuite.suite import using_cache

from .conftest import FakeSandbox, no_sandbox

PAGE = """\
Settings
========

.. setting:: WORKER_LIMIT

WORKER_LIMIT
------------

Default: ``250``

How many workers there are.

.. versionadded:: 1.4

.. note:: not so

``soft_time_limit``
~~~~~~~~~~~~~~~~~~~

**Default:** ``30``

.. confval:: html_show_things
   :default: ``7``

   Shows them.

   .. versionadded:: 2.0

   .. versionchanged:: 3.1

.. py:class:: Something(a, b)

   .. method:: do_it_all(x)

      .. versionadded:: 0.9

   .. option:: --hidden

      .. versionadded:: 8.8

Plain heading
-------------

.. versionadded:: 7.7
"""


@pytest.fixture(scope="module")
def environment() -> Environment:
    return Registry.default().load("search/docdive-v1")


def part(environment: Environment, name: str) -> ModuleType:
    return importlib.import_module(f"{environment.verifier.__module__}.{name}")


def passed(
    environment: Environment, task: Task, answer: str, citations: Sequence[Mapping[str, Any]]
) -> bool:
    submission = Submission(answer=answer, state={"citations": list(citations), "searches": 1})
    return asyncio.run(environment.verify(task, submission, no_sandbox)).passed


def test_facts_are_found_by_structure(environment: Environment) -> None:
    mine = part(environment, "mine")
    page = Document(id="proj/settings.rst", text=PAGE)
    facts = mine.mine({page.id: page})
    assert [(f.kind, f.name, f.attribute, f.value) for f in facts] == [
        ("setting", "WORKER_LIMIT", "default", "250"),
        ("setting", "WORKER_LIMIT", "version", "1.4"),
        ("setting", "soft_time_limit", "default", "30"),
        ("configuration value", "html_show_things", "default", "7"),
        ("configuration value", "html_show_things", "version", "2.0"),
        ("method", "do_it_all", "version", "0.9"),
    ]
    for fact in facts:
        assert PAGE[fact.start : fact.end] == fact.value


def test_a_name_with_two_versions_in_a_project_is_no_fact(environment: Environment) -> None:
    mine = part(environment, "mine")
    pages = {f"p/{n}.rst": Document(id=f"p/{n}.rst", text=PAGE) for n in range(2)}
    assert mine.mine(pages) == []


def test_rewriting_changes_the_facts_and_nothing_else(environment: Environment) -> None:
    mine, generate, editions = (part(environment, n) for n in ("mine", "generate", "editions"))
    page = Document(id="proj/settings.rst", text=PAGE)
    changed = generate.perturb(mine.mine({page.id: page}), {page.id: page})
    (new,) = editions.rewritten([page], generate.rewrites(changed))
    again = mine.mine({new.id: new})
    assert [f.value for f in again] == [c.value for c in changed]
    assert all(c.value != c.fact.value for c in changed)
    back = new.text
    for change in changed:
        back = back.replace(f"{change.value}", change.fact.value, 1)
    assert back == PAGE


def test_splits_have_facts_of_their_own_and_the_true_edition_asks_as_test_does(
    environment: Environment,
) -> None:
    splits: dict[str, list[Task]] = {}
    for task in environment.tasks:
        splits.setdefault(task.split, []).append(task)
    assert {split: len(tasks) for split, tasks in splits.items()} == {
        "train": 200,
        "test": 200,
        "true": 200,
    }
    facts = {
        split: {
            (e["query"], str(task.metadata["kind"])[:7] == "version")
            for task in tasks
            for e in task.hidden["exhibits"]
        }
        for split, tasks in splits.items()
    }
    assert not facts["train"] & facts["test"]
    assert [t.prompt for t in splits["true"]] == [t.prompt for t in splits["test"]]
    for true, test in zip(splits["true"], splits["test"], strict=True):
        assert true.hidden["answer"] != test.hidden["answer"]
        assert (true.metadata["edition"], test.metadata["edition"]) == ("true", "perturbed")


def test_no_answer_is_common_and_none_is_in_its_question(environment: Environment) -> None:
    for split in ("train", "test"):
        tasks = [task for task in environment.tasks if task.split == split]
        answers = Counter(json.dumps(task.hidden["answer"]) for task in tasks)
        assert answers.most_common(1)[0][1] <= 0.05 * len(tasks)
        for task in tasks:
            for exhibit in task.hidden["exhibits"]:
                assert exhibit["holds"] not in task.prompt


def test_an_answer_needs_a_quote_of_each_value(environment: Environment) -> None:
    task = next(t for t in environment.tasks if t.metadata["kind"] == "sum")
    whole = [
        {"document": e["document"], "opened": True, "quoted": True, "quote": f"is {e['holds']} so"}
        for e in task.hidden["exhibits"]
    ]
    answer = task.hidden["answer"]["value"]
    assert passed(environment, task, answer, whole)
    assert passed(environment, task, f"{int(answer):,}", whole)
    assert not passed(environment, task, "1", whole)
    assert not passed(environment, task, answer, whole[:1])
    for spoiled in ({"opened": False}, {"quoted": False}, {"quote": "is not here"}):
        assert not passed(environment, task, answer, [whole[0], {**whole[1], **spoiled}])


def test_two_versions_may_come_in_any_order(environment: Environment) -> None:
    task = next(t for t in environment.tasks if t.metadata["kind"] == "versions")
    whole = [
        {"document": e["document"], "opened": True, "quoted": True, "quote": e["holds"]}
        for e in task.hidden["exhibits"]
    ]
    for exhibit in whole:
        exhibit["quote"] = f"a {exhibit['quote'].replace('.', ' ')} b"
    values = [e["holds"] for e in task.hidden["exhibits"]]
    assert passed(environment, task, ", ".join(values), whole)
    assert passed(environment, task, " and ".join(values[::-1]), whole)
    assert not passed(environment, task, values[0], whole)


def test_documents_that_drifted_are_an_error(environment: Environment, tmp_path: Path) -> None:
    editions = part(environment, "editions")
    page = Document(id="proj/settings.rst", text=PAGE)
    drifted = FakeSandbox(files={editions.SOURCE: page.line() + b"\n"})
    with using_cache(tmp_path), pytest.raises(DefinitionError, match="has drifted"):
        asyncio.run(editions._build("true", drifted))
    with using_cache(tmp_path), pytest.raises(DefinitionError, match=r"has no /corpus"):
        asyncio.run(editions._build("true", FakeSandbox()))


def test_only_places_and_values_are_kept_here(environment: Environment) -> None:
    folder = Path(sys.modules[environment.verifier.__module__].__file__ or "").parent
    for line in (folder / "rewrites.jsonl").read_text().splitlines():
        page, start, end, value = json.loads(line)
        assert page.partition("/")[0] in {
            "aiohttp", "celery", "django", "gunicorn", "scrapy", "sphinx", "sqlalchemy",
        }  # fmt: skip
        assert 0 < end - start < 12
        assert len(value) < 8
