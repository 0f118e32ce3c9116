from itertools import combinations
from typing import Any

import pytest

from gymsuite import Message, Task, ToolCall
from tests.tool_worlds import SPLITS, ToolWorld, load


@pytest.fixture(scope="module")
def tables() -> ToolWorld:
    return load("tools/tables-v1")


def test_no_two_of_many_questions_are_about_the_same_days(tables: ToolWorld) -> None:
    period = tables.part("tasks").period_of
    for split in SPLITS:
        tried = {period(split, index, attempt) for index in range(12_000) for attempt in (0, 39)}
        assert len(tried) == 24_000


def test_splits_share_no_schema_and_no_value(tables: ToolWorld) -> None:
    stars = tables.part("stars")
    for one, other in combinations(SPLITS, 2):
        for world in range(8):
            assert stars.star_of(one, world) != stars.star_of(other, world)
            values = stars.attributes(one, world, "first")
            assert not set(values) & set(stars.attributes(other, world, "first"))


def views(tables: ToolWorld) -> Task:
    return next(task for task in tables.tasks("train", 60) if task.hidden["query"])


def score(tables: ToolWorld, task: Task, sql: str) -> Any:
    call = ToolCall(name="create_view", arguments={"name": "report", "sql": sql})
    return tables.score(task, (call,))


def test_a_view_with_the_visible_rows_written_out_is_not_the_answer(tables: ToolWorld) -> None:
    task = views(tables)
    place = tables.part("stars").Place(**task.hidden["place"])
    rows = tables.part("tasks").known_results(task.hidden["query"], place, 0)[0].rows
    copied = " UNION ALL ".join(f"SELECT '{name}' AS a, {value} AS b" for name, value in rows)
    found = score(tables, task, copied)
    assert found.metrics["state"] == 1
    assert found.metrics["databases"] < 0.5
    assert not found.passed
    assert score(tables, task, task.hidden["query"]).passed


def test_the_order_and_the_names_of_a_views_rows_do_not_matter(tables: ToolWorld) -> None:
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
    tables: ToolWorld, name: str, arguments: dict[str, Any], explanation: str
) -> None:
    task = tables.tasks("train", 1)[0]
    assert explanation in tables.complaint(task, name, arguments)


def test_bytes_are_shown_as_sql_writes_them(tables: ToolWorld) -> None:
    task = tables.tasks("train", 1)[0]

    call = ToolCall(name="run_sql", arguments={"sql": "SELECT x'41ff' AS b"})
    reply = tables.reply(task, Message(role="assistant", tool_calls=(call,)))
    assert reply == """{"columns": ["b"], "rows": [["x'41ff'"]]}"""


def test_a_dropped_scratch_view_does_no_harm(tables: ToolWorld) -> None:
    task = tables.tasks("train", 1)[0]
    scratch = ToolCall(name="create_view", arguments={"name": "scratch", "sql": "SELECT 1 AS x"})
    use = ToolCall(name="run_sql", arguments={"sql": "SELECT * FROM scratch"})
    drop = ToolCall(name="drop_view", arguments={"name": "scratch"})
    plan = (scratch, use, drop, *task.solution)
    assert tables.score(task, plan).passed
    assert not tables.score(task, (scratch, *task.solution)).passed
