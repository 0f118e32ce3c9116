"""Queries of an agent over a database that it may read and nothing else, within limits.

They run in processes of their own, a few for all episodes: see `sqlchild` for the reason.
"""

import asyncio
import json
import os
import signal
import socket
import struct
import subprocess
import sys
import weakref
from collections import deque
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

from gymsuite.errors import InfrastructureError
from gymsuite.tools import ToolError
from gymsuite.worlds import sqlchild

MOST_ROWS = 200
_MOST_PROCESSES = 4
_DEADLINE_SECONDS = 60
_MOST_BYTES = sqlchild.MOST_REPLY_BYTES
_LENGTH = struct.Struct("!I")


class Result(NamedTuple):
    """The rows of a query, and whether there were more than are kept."""

    columns: tuple[str, ...]
    rows: tuple[tuple[object, ...], ...]
    cut: bool = False


class QueryProcesses:
    """Processes that carry out queries: none before the first query, gone with this process."""

    def __init__(self) -> None:
        self._of = _Pool()

    async def query(
        self, image: bytes, sql: str, views: Mapping[str, str], *, most_rows: int = MOST_ROWS
    ) -> Result:
        """The result of one SELECT over a database with these views.

        Raises `ToolError` with what SQLite says is wrong, or which limit was hit.
        """
        if self._of.owner != os.getpid():  # a fork has its parent's memory, but not its threads
            self._of = _Pool()
        head = json.dumps({"sql": sql, "views": dict(views), "most_rows": most_rows}).encode()
        return await asyncio.get_running_loop().run_in_executor(
            self._of.threads, self._of.ask, head, image
        )


class _Pool:
    """As many processes as there are threads that wait for them."""

    def __init__(self) -> None:
        self.owner = os.getpid()
        self.threads = ThreadPoolExecutor(min(_MOST_PROCESSES, os.cpu_count() or 1), "query")
        self._idle: deque[_Child] = deque()
        weakref.finalize(self, _end, self._idle, self.owner)

    def ask(self, head: bytes, image: bytes) -> Result:
        """What a process answers; one that died of the query is replaced when the next comes."""
        child = self._idle.pop() if self._idle else _Child()
        try:
            reply = child.ask(head, image)
        except BaseException:
            child.close()
            raise
        self._idle.append(child)
        if "error" in reply:
            raise ToolError(reply["error"])
        return Result(tuple(reply["columns"]), tuple(map(tuple, reply["rows"])), reply["cut"])


def _end(idle: "deque[_Child]", owner: int) -> None:
    while idle and owner == os.getpid():
        idle.pop().close()


class _Child:
    """One process, and the channel to it."""

    def __init__(self) -> None:
        self._channel, other = socket.socketpair()
        with other:
            self._process = subprocess.Popen(
                [sys.executable, "-I", "-S", "-B", str(Path(sqlchild.__file__))],
                stdin=other.fileno(),
                stdout=other.fileno(),
                stderr=subprocess.DEVNULL,
                env={},
                cwd="/",
            )
        self._channel.settimeout(_DEADLINE_SECONDS)

    def ask(self, head: bytes, image: bytes) -> dict[str, Any]:
        """The reply to a query."""
        try:
            for part in (head, image):
                self._channel.sendall(_LENGTH.pack(len(part)) + part)
            (size,) = _LENGTH.unpack(self._receive(_LENGTH.size))
            reply: dict[str, Any] = json.loads(self._receive(min(size, _MOST_BYTES)))
        except TimeoutError:
            raise InfrastructureError(
                f"a query had no answer in {_DEADLINE_SECONDS} s, though it may take no more than "
                f"{sqlchild.CPU_SECONDS:g} s of a processor"
            ) from None
        except (OSError, EOFError, ValueError):
            raise self._died() from None
        return reply

    def _receive(self, size: int) -> bytes:
        found = bytearray()
        while len(found) < size:
            part = self._channel.recv(size - len(found))
            if not part:
                raise EOFError
            found += part
        return bytes(found)

    def _died(self) -> ToolError | InfrastructureError:
        """A death that a query can bring about is the agent's mistake, any other is not."""
        self._channel.close()
        code = self._process.wait(_DEADLINE_SECONDS)
        if code == -signal.SIGPROF:
            return ToolError(f"the query took more than {sqlchild.CPU_SECONDS:g} s of a processor")
        if code in {-signal.SIGSEGV, -signal.SIGABRT, -signal.SIGBUS}:
            return ToolError("the query is more than SQLite can carry out")
        return InfrastructureError(f"the process for queries ended with {code}")

    def close(self) -> None:
        """End the process; may be called again."""
        self._channel.close()
        self._process.kill()
        self._process.wait()
