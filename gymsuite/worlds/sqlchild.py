"""The program that runs an agent's queries, in a process that may be killed.

It reads a head and the image of a database, and writes a reply, until its channel closes. Nothing
is kept from one query to the next. Inside one step of SQLite, or while it reads a query, nobody
can stop it, so no limit within a process holds: what bounds a query is that this process has only
so much memory, and dies of too much work.
"""

import json
import os
import resource
import signal
import sqlite3
import struct
import sys
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, BinaryIO

NAME = "gymsuite-query"
"""By which it is known among the processes of its owner."""

MEMORY_BYTES = 256 << 20
CPU_SECONDS = 2.0
"""What one query may take; who takes more dies of `SIGPROF`."""

MOST_STEPS = 1_000_000
"""Steps of SQLite's virtual machine that one query may take: the same on every machine."""

MOST_CELL_BYTES = 100_000
MOST_REPLY_BYTES = 200_000
_STEPS_AT_ONCE = 10_000
_LENGTH = struct.Struct("!I")
_NOBODY = 65_534
_NAMES = """
abs avg ceil ceiling coalesce count cume_dist date datetime dense_rank first_value floor
group_concat ifnull iif instr julianday lag last_value lead length like lower ltrim max min
mod nth_value ntile nullif percent_rank rank replace round row_number rtrim sign
strftime substr substring sum time total trim typeof unicode upper
"""
_FUNCTIONS = frozenset(_NAMES.split())
_ALLOWED = frozenset((sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_RECURSIVE))
_LIMITS = {
    sqlite3.SQLITE_LIMIT_LENGTH: MOST_CELL_BYTES,
    sqlite3.SQLITE_LIMIT_EXPR_DEPTH: 100,
    sqlite3.SQLITE_LIMIT_COMPOUND_SELECT: 20,
    sqlite3.SQLITE_LIMIT_LIKE_PATTERN_LENGTH: 1000,
}


def main() -> None:
    """Answer queries, with nothing at hand that could do harm."""
    if sys.platform == "linux":
        with open("/proc/self/comm", "w") as file:  # noqa: PTH123 - pathlib would be slow to import
            file.write(NAME)
        # Elsewhere the kernel refuses this limit, or does not keep it.
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
    if os.geteuid() == 0:
        with suppress(OSError):  # a container's root may not be able to; it is one guard of several
            os.setgroups([])
            os.setgid(_NOBODY)
            os.setuid(_NOBODY)
    while head := receive(sys.stdin.buffer):
        reply = answer(json.loads(head), receive(sys.stdin.buffer))
        sys.stdout.buffer.write(_LENGTH.pack(len(reply)) + reply)
        sys.stdout.buffer.flush()


def receive(channel: BinaryIO) -> bytes:
    """The next message; nothing when the channel is closed."""
    head = channel.read(_LENGTH.size)
    return channel.read(_LENGTH.unpack(head)[0]) if len(head) == _LENGTH.size else b""


def answer(head: Mapping[str, Any], image: bytes) -> bytes:
    """The rows of a query, or what is wrong with it, as JSON."""
    signal.setitimer(signal.ITIMER_PROF, CPU_SECONDS)
    try:
        reply = json.dumps(_run(head, image), ensure_ascii=False).encode(errors="replace")
    except (sqlite3.Error, sqlite3.Warning, ValueError) as error:
        reply = _wrong(f"SQL: {error}")
    except MemoryError:
        reply = _wrong(f"the query took more than {MEMORY_BYTES >> 20} MB")
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
    if len(reply) > MOST_REPLY_BYTES:
        return _wrong(f"the result has more than {MOST_REPLY_BYTES:,} bytes; ask for less of it")
    return reply


def _wrong(what: str) -> bytes:
    return json.dumps({"error": what[:1000]}).encode()


def _run(head: Mapping[str, Any], image: bytes) -> dict[str, Any]:
    connection = sqlite3.connect(":memory:", isolation_level=None)
    try:
        connection.deserialize(image)
        connection.execute("PRAGMA temp_store = MEMORY")
        for limit, most in _LIMITS.items():
            connection.setlimit(limit, most)
        for name, query in head["views"].items():
            connection.execute(f'CREATE VIEW "{name}" AS {query}')
        connection.set_authorizer(_authorize)
        return _rows(connection, head["sql"], head["most_rows"])
    finally:
        connection.close()


def _rows(connection: sqlite3.Connection, sql: str, most_rows: int) -> dict[str, Any]:
    left = MOST_STEPS // _STEPS_AT_ONCE

    def tick() -> int:
        nonlocal left
        left -= 1
        return left < 0

    connection.set_progress_handler(tick, _STEPS_AT_ONCE)
    try:
        cursor = connection.execute(sql)
        if cursor.description is None:
            raise ValueError("that is no SELECT")
        rows, size = [], 0
        for row in cursor:
            rows.append([_plain(cell) for cell in row])
            size += sum(len(cell) for cell in row if isinstance(cell, (str, bytes)))
            if len(rows) > most_rows or size > MOST_REPLY_BYTES:
                break
    except sqlite3.OperationalError:
        if left < 0:
            raise ValueError(f"the query took more than {MOST_STEPS:,} steps") from None
        raise
    names = [column[0] for column in cursor.description]
    return {"columns": names, "rows": rows[:most_rows], "cut": len(rows) > most_rows}


def _plain(cell: object) -> object:
    """As JSON has it; bytes as SQL writes them."""
    return f"x'{cell.hex()}'" if isinstance(cell, bytes) else cell


def _authorize(action: int, _: str | None, function: str | None, *__: object) -> int:
    """Reading is allowed, with functions that are always the same and never large."""
    if action in _ALLOWED:
        return sqlite3.SQLITE_OK
    if action == sqlite3.SQLITE_FUNCTION and (function or "").lower() in _FUNCTIONS:
        return sqlite3.SQLITE_OK
    return sqlite3.SQLITE_DENY


if __name__ == "__main__":
    main()
