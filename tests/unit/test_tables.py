import asyncio
import importlib
import re
import sys
from itertools import combinations
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from gymsuite import Environment, Episode, Message, Task, ToolCall
from gymsuite.registry import Registry
from gymsuite.suite import suite_root
from gymsuite.worlds import baselines
from gymsuite.worlds.gate import check, play
from gymsuite.worlds.procedural import Procedural
from gymsuite.worlds.replay import Source, differing, no_sandbox

SPLITS = ("train", "val", "test-iid", "test-ood")
REGISTRY = suite_root() / "registry.yaml"


@pytest.fixture(scope="module")
def tables() -> Environment:
    return Registry(REGISTRY).load("tools/tables-v1")


def part(name: str) -> ModuleType:
    package = next(m for m in sys.modules if re.fullmatch(r"_gymsuite_tools_tables_v1_\w+", m))
    return importlib.import_module(f"{package}.{name}")


def tasks(tables: Environment, split: str, count: int) -> list[Task]:
    assert isinstance(tables.tasks, Procedural)
    return [tables.tasks.at(split, index) for index in range(count)]


@pytest.mark.parametrize("split", SPLITS)
def test_the_gate_lets_every_family_through(tables: Environment, split: str) -> None:
    gate = part("gate").GATE

    async def run() -> list[Any]:
        return [
            finding
            for task in tasks(tables, split, 15)
            for finding in await check(tables, gate, task, no_sandbox)
        ]

    assert asyncio.run(run()) == []


def test_tasks_are_the_same_in_another_process_zone_and_locale(tables: Environment) -> None:
    assert differing(Source(REGISTRY, "tools/tables-v1", None, Path()), (0, 3, 204, 401, 604)) == ()


def test_no_two_of_many_questions_are_about_the_same_days(tables: Environment) -> None:
    assert tables.tools
    period = part("tasks").period_of
    for split in SPLITS:
        tried = {period(split, index, attempt) for index in range(12_000) for attempt in (0, 39)}
        assert len(tried) == 24_000


def test_no_two_tasks_have_the_same_prompt(tables: Environment) -> None:
    prompts = [task.prompt for split in SPLITS for task in tasks(tables, split, 60)]
    assert len(set(prompts)) == len(prompts)


def test_splits_share_no_schema_and_no_value(tables: Environment) -> None:
    stars = part("stars")
    for one, other in combinations(SPLITS, 2):
        for world in range(8):
            assert stars.star_of(one, world) != stars.star_of(other, world)
            values = stars.attributes(one, world, "first")
            assert not set(values) & set(stars.attributes(other, world, "first"))


def test_ignoring_the_notes_is_not_enough_from_level_three_up(tables: Environment) -> None:
    some = tasks(tables, "train", 50)
    shares = asyncio.run(baselines.success(tables, some, part("greedy").greedy, no_sandbox))
    assert shares[1] == shares[2] == 1
    assert all(shares[level] < 0.5 for level in (3, 4, 5))


def views(tables: Environment) -> Task:
    return next(task for task in tasks(tables, "train", 60) if task.hidden["query"])


def score(tables: Environment, task: Task, sql: str) -> Any:
    call = ToolCall(name="create_view", arguments={"name": "report", "sql": sql})
    return asyncio.run(play(tables, task, (call,), no_sandbox))


def test_a_view_with_the_visible_rows_written_out_is_not_the_answer(tables: Environment) -> None:
    task = views(tables)
    rows = (
        part("tasks")
        .known_results(task.hidden["query"], part("stars").Place(**task.hidden["place"]), 0)[0]
        .rows
    )
    copied = " UNION ALL ".join(f"SELECT '{name}' AS a, {value} AS b" for name, value in rows)
    found = score(tables, task, copied)
    assert found.metrics["state"] == 1
    assert found.metrics["databases"] < 0.5
    assert not found.passed
    assert score(tables, task, task.hidden["query"]).passed


def test_the_order_and_the_names_of_a_views_rows_do_not_matter(tables: Environment) -> None:
    task = views(tables)
    rows = task.hidden["query"]
    second = {"share": "percent", "change": "change"}.get(task.metadata["family"], "value")
    other = f"SELECT grp AS a, {second} AS b FROM ({rows}) ORDER BY 2, 1"  # noqa: S608 - our own
    assert score(tables, task, other).passed


@pytest.mark.parametrize(
    ("name", "arguments", "explanation"),
    [
        ("run_sql", {"sql": "DELETE FROM sales"}, "SQL"),
        ("run_sql", {"sql": "x" * (1 << 20)}, "at most"),
        ("run_sql", {"sql": 7}, "sql"),
        ("run_sql", {}, "sql"),
        ("run_sql", {"sql": "SELECT 1", "limit": 5}, "limit"),
        ("describe_table", {"table": "sqlite_master"}, "list_tables"),
        ("describe_table", {"table": 'sales"; DROP TABLE x; --'}, "list_tables"),
        ("create_view", {"name": "Report; DROP", "sql": "SELECT 1"}, "lower-case"),
        ("create_view", {"name": "report", "sql": "SELECT 1; SELECT 2"}, "SQL"),
        ("create_view", {"name": "report", "sql": "SELECT * FROM report"}, "SQL"),
        ("create_view", {"name": "report", "sql": "EXPLAIN SELECT 1"}, "SQL"),
        ("create_view", {"name": "report", "sql": "SELECT ?"}, "SQL"),
        ("create_view", {"name": "report", "sql": ""}, "SQL"),
        ("drop_view", {"name": "nothing"}, "no view"),
        ("give_answer", {"value": 1.5}, "value"),
        ("give_answer", {"value": True}, "value"),
        ("give_answer", {"value": float("nan")}, "value"),
        ("give_answer", {"value": list(range(99))}, "value"),
        ("give_answer", {"value": {"a": 1}}, "value"),
        ("give_answer", {"value": 10**30}, "value"),
        ("give_answer", {"value": "x" * (1 << 20)}, "value"),
        ("give_answer", {"value": ["x" * (1 << 20)]}, "value"),
        ("give_answer", {"value": "a\0b"}, "NUL"),
    ],
)
def test_a_mistake_is_explained_and_the_episode_goes_on(
    tables: Environment, name: str, arguments: dict[str, Any], explanation: str
) -> None:
    task = tasks(tables, "train", 1)[0]

    async def run() -> None:
        async with Episode(tables, no_sandbox) as episode:
            await episode.reset(task, 0)
            call = ToolCall(id="x", name=name, arguments=arguments)
            step = await episode.step(Message(role="assistant", tool_calls=(call,)))
            reply = step.observation.messages[0].text
            assert reply.startswith("error: ")
            assert explanation in reply
            plan = (*task.solution, ToolCall(name="submit"))
            step = await episode.step(Message(role="assistant", tool_calls=plan))
            assert (step.terminated, step.reward) == (True, 1.0)

    asyncio.run(run())


def test_bytes_are_shown_as_sql_writes_them(tables: Environment) -> None:
    task = tasks(tables, "train", 1)[0]

    async def run() -> str:
        async with Episode(tables, no_sandbox) as episode:
            await episode.reset(task, 0)
            call = ToolCall(id="x", name="run_sql", arguments={"sql": "SELECT x'41ff' AS b"})
            step = await episode.step(Message(role="assistant", tool_calls=(call,)))
            return step.observation.messages[0].text

    assert asyncio.run(run()) == """{"columns": ["b"], "rows": [["x'41ff'"]]}"""


def test_a_dropped_scratch_view_does_no_harm(tables: Environment) -> None:
    task = tasks(tables, "train", 1)[0]
    scratch = ToolCall(name="create_view", arguments={"name": "scratch", "sql": "SELECT 1 AS x"})
    use = ToolCall(name="run_sql", arguments={"sql": "SELECT * FROM scratch"})
    drop = ToolCall(name="drop_view", arguments={"name": "scratch"})
    plan = (scratch, use, drop, *task.solution)
    assert asyncio.run(play(tables, task, plan, no_sandbox)).passed
    assert not asyncio.run(play(tables, task, (scratch, *task.solution), no_sandbox)).passed
