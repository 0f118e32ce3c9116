import sqlite3

import pytest

from gymsuite.tools import ToolError
from gymsuite.worlds.sql import Result, opened, query


@pytest.fixture(scope="module")
def image() -> bytes:
    connection = sqlite3.connect(":memory:")
    connection.execute("CREATE TABLE numbers (n INTEGER, word TEXT)")
    connection.executemany("INSERT INTO numbers VALUES (?, ?)", [(n, f"w{n}") for n in range(300)])
    connection.commit()
    data = connection.serialize()
    connection.close()
    return data


def run(image: bytes, sql: str) -> Result:
    with opened(image, {"small": "SELECT * FROM numbers WHERE n < 3"}) as connection:
        return query(connection, sql)


def test_reading_is_allowed(image: bytes) -> None:
    assert run(image, "SELECT upper(word) AS w FROM small ORDER BY n") == Result(
        ("w",), (("W0",), ("W1",), ("W2",))
    )
    assert run(image, "WITH t AS (SELECT sum(n) OVER () FROM small) SELECT * FROM t").rows[0] == (
        3,
    )


def test_long_results_are_cut_and_say_so(image: bytes) -> None:
    found = run(image, "SELECT * FROM numbers")
    assert (len(found.rows), found.cut) == (200, True)


@pytest.mark.parametrize(
    "sql",
    [
        "DELETE FROM numbers",
        "UPDATE numbers SET n = 1",
        "INSERT INTO numbers VALUES (1, 'x')",
        "DROP TABLE numbers",
        "CREATE TABLE x (y)",
        "ATTACH '/tmp/x.db' AS x",
        "PRAGMA writable_schema = 1",
        "VACUUM INTO '/tmp/x.db'",
        "SELECT 1; DELETE FROM numbers",
        "SELECT load_extension('x')",
        "SELECT random()",
        "SELECT randomblob(10)",
        "SELECT zeroblob(1000000000)",
        "SELECT printf('%.*c', 1000000000, 'x')",
        "SELECT no_such_column FROM numbers",
        "SELEC",
        "",
        "SELECT '\0'",
        "SELECT " + "(" * 500 + "1" + ")" * 500,
        "WITH RECURSIVE r AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM r) SELECT count(*) FROM r",
        "SELECT count(*) FROM numbers a, numbers b, numbers c, numbers d",
    ],
)
def test_everything_else_is_refused_in_words(image: bytes, sql: str) -> None:
    with pytest.raises(ToolError):
        run(image, sql)
