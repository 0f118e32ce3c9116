# ruff: noqa: S608 - the queries are bombs of our own
import asyncio
import os
import resource
import sqlite3
from multiprocessing import get_context
from pathlib import Path

import pytest

from gymsuite.tools import ToolError
from gymsuite.worlds.sql import QueryProcesses, Result

VIEWS = {"small": "SELECT * FROM numbers WHERE n < 3"}


@pytest.fixture(scope="module")
def image() -> bytes:
    connection = sqlite3.connect(":memory:")
    connection.execute("CREATE TABLE numbers (n INTEGER, word TEXT)")
    connection.executemany("INSERT INTO numbers VALUES (?, ?)", [(n, f"w{n}") for n in range(300)])
    connection.commit()
    data = connection.serialize()
    connection.close()
    return data


@pytest.fixture(scope="module")
def processes() -> QueryProcesses:
    return QueryProcesses()


def run(processes: QueryProcesses, image: bytes, sql: str) -> Result:
    return asyncio.run(processes.query(image, sql, VIEWS))


def test_reading_is_allowed(processes: QueryProcesses, image: bytes) -> None:
    assert run(processes, image, "SELECT upper(word) AS w FROM small ORDER BY n") == Result(
        ("w",), (("W0",), ("W1",), ("W2",))
    )
    total = "WITH t AS (SELECT sum(n) OVER () FROM small) SELECT * FROM t"
    assert run(processes, image, total).rows[0] == (3,)


def test_cells_come_as_they_are_and_bytes_as_sql_writes_them(
    processes: QueryProcesses, image: bytes
) -> None:
    found = run(processes, image, "SELECT 1, 0.1, 'ä\"', NULL, x'41ff', 9223372036854775807, 9e999")
    assert found.rows == ((1, 0.1, 'ä"', None, "x'41ff'", 9223372036854775807, float("inf")),)


def test_long_results_are_cut_and_say_so(processes: QueryProcesses, image: bytes) -> None:
    found = run(processes, image, "SELECT * FROM numbers")
    assert (len(found.rows), found.cut) == (200, True)


@pytest.mark.parametrize(
    "sql",
    [
        "DELETE FROM numbers",
        "UPDATE numbers SET n = 1",
        "INSERT INTO numbers VALUES (1, 'x')",
        "DROP TABLE numbers",
        "CREATE TABLE x (y)",
        "CREATE TEMP TABLE x (y)",
        "CREATE VIRTUAL TABLE x USING fts5(y)",
        "CREATE VIRTUAL TABLE x USING rtree(a, b, c)",
        "ATTACH '/tmp/x.db' AS x",
        "PRAGMA writable_schema = 1",
        "PRAGMA temp_store_directory = '/tmp'",
        "SELECT * FROM pragma_database_list",
        "VACUUM INTO '/tmp/x.db'",
        "SELECT 1; DELETE FROM numbers",
        "SELECT load_extension('x')",
        "SELECT fts3_tokenizer('simple')",
        "SELECT random()",
        "SELECT randomblob(10)",
        "SELECT zeroblob(1000000000)",
        "SELECT printf('%.*c', 1000000000, 'x')",
        "SELECT hex(word) FROM numbers",
        "SELECT no_such_column FROM numbers",
        "SELECT ?",
        "SELEC",
        "",
        "SELECT '\0'",
        "SELECT '\ud800'",
        "SELECT CAST(x'ff' AS TEXT)",
        "SELECT " + "(" * 500 + "1" + ")" * 500,
        "SELECT " + "(SELECT " * 90 + "1" + ")" * 90,
        "SELECT * FROM json_each('" + "[" * 1900 + "]" * 1900 + "')",
        "SELECT " + "1+" * 1900 + "1",
        "WITH RECURSIVE r AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM r) SELECT count(*) FROM r",
        "SELECT count(*) FROM numbers a, numbers b, numbers c, numbers d",
    ],
)
def test_everything_else_is_refused_in_words(
    processes: QueryProcesses, image: bytes, sql: str
) -> None:
    with pytest.raises(ToolError, match="SQL: "):
        run(processes, image, sql)


def doubled(times: int) -> str:
    """Common tables: `s` has one row, a text of 2^times letters; `r` has the numbers to 1000."""
    return (
        "WITH RECURSIVE d(n, x) AS (SELECT 0, 'a' UNION ALL SELECT n + 1, x || x FROM d "
        f"WHERE n < {times}), s(x) AS MATERIALIZED (SELECT x FROM d WHERE n = {times}), "
        "r(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM r WHERE i < 1000) "
    )


def halves(of: str) -> str:
    """Common tables each of which names the one before twice."""
    tables = ", ".join(
        f"a{n} AS ({of.format(one=f'a{n - 1} p', two=f'a{n - 1} q')})" for n in range(1, 30)
    )
    return f"WITH a0 AS (SELECT 1 AS x), {tables} SELECT count(*) FROM a29"


BOMBS = {
    "a word compared at each place": (
        doubled(15) + "SELECT x || x LIKE '%' || x || 'b' FROM s",
        "too complex",
    ),
    "letters sought in letters": (
        doubled(13) + "SELECT sum(length(trim(x, replace(x, 'a', 'b') || 'a'))) FROM s, r",
        "2 s of a processor",
    ),
    "a query that doubles as it is read": (
        halves("SELECT max(p.x) AS x FROM {one}, {two}"),
        "256 MB",
    ),
    "a union that doubles as it is read": (
        halves("SELECT x FROM {one} UNION ALL SELECT x FROM {two}"),
        "256 MB",
    ),
    "wide rows of long cells": (
        doubled(16) + f"SELECT {'x,' * 1500}x FROM s, r",
        "bytes|256 MB",
    ),
    "many long cells": (doubled(16) + "SELECT x FROM s, r", "bytes"),
    "a table kept for its distinct rows": (
        doubled(16) + "SELECT count(*) FROM (SELECT DISTINCT x || i || n FROM s, r, numbers)",
        "256 MB|processor",
    ),
    "a long text put together": (
        doubled(16) + "SELECT length(group_concat(x)) FROM s, r",
        "too big",
    ),
}


@pytest.mark.parametrize("bomb", BOMBS)
def test_a_bomb_costs_neither_this_process_nor_the_next_query(
    processes: QueryProcesses, image: bytes, bomb: str
) -> None:
    sql, refusal = BOMBS[bomb]
    assert len(sql) < 4000
    before = resource.getrusage(resource.RUSAGE_SELF)
    with pytest.raises(ToolError, match=refusal):
        run(processes, image, sql)
    after = resource.getrusage(resource.RUSAGE_SELF)
    assert after.ru_maxrss - before.ru_maxrss < 32 << 10
    assert after.ru_utime - before.ru_utime < 1
    assert run(processes, image, "SELECT count(*) FROM small").rows == ((3,),)


def test_the_loop_goes_on_while_a_query_runs(processes: QueryProcesses, image: bytes) -> None:
    slow = BOMBS["letters sought in letters"][0]

    async def beside() -> int:
        task = asyncio.ensure_future(processes.query(image, slow, {}))
        turns = 0
        while not task.done():
            await asyncio.sleep(0.01)
            turns += 1
        with pytest.raises(ToolError):
            task.result()
        return turns

    assert asyncio.run(beside()) > 10


def test_many_queries_at_once_share_a_few_processes(
    processes: QueryProcesses, image: bytes
) -> None:
    async def all_at_once() -> list[Result]:
        sqls = [f"SELECT n FROM numbers WHERE n = {n}" for n in range(200)]
        return await asyncio.gather(*(processes.query(image, sql, {}) for sql in sqls))

    assert [found.rows[0][0] for found in asyncio.run(all_at_once())] == [*range(200)]
    assert len(children()) <= 8


def children() -> list[str]:
    """The programs that this process runs."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            parent = folder.joinpath("stat").read_text().rsplit(")", 1)[1].split()[1]
            program = folder.joinpath("cmdline").read_text()
        except OSError:
            continue
        if int(parent) == os.getpid() and "sqlchild" in program:
            found.append(program)
    return found


def asks(processes: QueryProcesses, image: bytes) -> None:
    assert run(processes, image, "SELECT 1").rows == ((1,),)


def test_a_fork_of_this_process_has_processes_of_its_own(
    processes: QueryProcesses, image: bytes
) -> None:
    asks(processes, image)
    child = get_context("fork").Process(target=asks, args=(processes, image))
    child.start()
    child.join(60)
    assert child.exitcode == 0
    asks(processes, image)
