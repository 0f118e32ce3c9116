"""Cassettes: what live servers answered, written down, so that episodes need no network again.

A line holds a request, its result and the key that it is found by. For servers that change nothing
the key is the request's (`by_request`); for an episode's own servers it is that of all requests so
far (`by_history`), so that a replay answers only what was really answered then.
"""

import hashlib
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from gymsuite.complaints import complaints
from gymsuite.errors import DefinitionError, InfrastructureError
from gymsuite.mcp.redaction import Redact, nothing
from gymsuite.mcp.requests import Allowance, OpenServers, Request, Result, Servers
from gymsuite.tools import Context
from gymsuite.types import Model

Key = Callable[[str, Request], str]
"""A request's key, from the key of the one before it ("" for an episode's first)."""


class Line(Model):
    """One line of a cassette."""

    key: str
    request: Request
    result: Result


def by_request(_: str, request: Request) -> str:
    """The same answer whenever it is asked."""
    return _digest(["", request.model_dump(mode="json")])


def by_history(before: str, request: Request) -> str:
    """An answer that may depend on all that was asked before."""
    return _digest([before, request.model_dump(mode="json")])


def recorded(
    open_servers: OpenServers, path: Path, key: Key, redact: Redact = nothing
) -> OpenServers:
    """The same servers; what they answer is appended to the cassette, without secrets.

    Episodes get their answers without secrets, too: as a replay will give them.
    """
    known = _read(path) if path.exists() else {}
    tape = _Tape(path, known)

    def open_recorded(context: Context) -> Servers:
        return _Recorded(open_servers(context), tape, key, redact)

    return open_recorded


def replayed(path: Path, key: Key) -> OpenServers:
    """Servers that answer from the cassette alone; raises `DefinitionError` if it is unreadable."""
    lines = _read(path)

    def open_replayed(_: Context) -> Servers:
        return _Replayed(path, lines, key)

    return open_replayed


class _Tape:
    """Appends lines to a file, each key once."""

    def __init__(self, path: Path, known: Mapping[str, Result]) -> None:
        self._path = path
        self._known = dict(known)

    def write(self, line: Line) -> None:
        if line.key in self._known:
            return
        self._known[line.key] = line.result
        with self._path.open("a", encoding="utf-8") as file:
            file.write(line.model_dump_json() + "\n")


class _Recorded:
    """Live servers with a tape running."""

    def __init__(self, inner: Servers, tape: _Tape, key: Key, redact: Redact) -> None:
        self._inner = inner
        self._tape = tape
        self._key = key
        self._redact = redact
        self._last = ""

    async def call(self, request: Request, allowance: Allowance) -> Result:
        result = await self._inner.call(request, allowance)
        result = Result(text=self._redact(result.text), is_error=result.is_error)
        shown = _shown(request, self._redact)
        self._last = self._key(self._last, shown)
        self._tape.write(Line(key=self._last, request=shown, result=result))
        return result

    def fork(self) -> "_Recorded":
        forked = _Recorded(self._inner.fork(), self._tape, self._key, self._redact)
        forked._last = self._last
        return forked

    async def left(self) -> Mapping[str, Any]:
        return await self._inner.left()

    def close(self) -> None:
        self._inner.close()


class _Replayed:
    """No servers, and their answers."""

    def __init__(self, path: Path, lines: Mapping[str, Result], key: Key) -> None:
        self._path = path
        self._lines = lines
        self._key = key
        self._last = ""

    async def call(self, request: Request, _: Allowance) -> Result:
        self._last = self._key(self._last, request)
        result = self._lines.get(self._last)
        if result is None:
            arguments = json.dumps(request.arguments, ensure_ascii=False)
            raise InfrastructureError(
                f"{self._path}: no answer of {request.server!r} to "
                f"{request.tool}({arguments:.200}) was recorded at this point; "
                "record it with the live server",
                retryable=False,
            )
        return result

    def fork(self) -> "_Replayed":
        forked = _Replayed(self._path, self._lines, self._key)
        forked._last = self._last
        return forked

    async def left(self) -> Mapping[str, Any]:
        return {}

    def close(self) -> None:
        """Nothing is held."""


def _shown(request: Request, redact: Redact) -> Request:
    """The request without secrets: a replay, which has none, asks the same."""
    return request.model_copy(update={"arguments": _redacted(request.arguments, redact)})


def _redacted(value: Any, redact: Redact) -> Any:  # noqa: ANN401 - any JSON
    """The same with each string in it redacted: as JSON text it could hide a secret, or break."""
    if isinstance(value, Mapping):
        return {redact(key): _redacted(part, redact) for key, part in value.items()}
    if isinstance(value, list):
        return [_redacted(part, redact) for part in value]
    return redact(value) if isinstance(value, str) else value


def _read(path: Path) -> dict[str, Result]:
    found: dict[str, Result] = {}
    try:
        lines = path.read_text(encoding="utf-8").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise DefinitionError(f"{path}: no readable cassette: {error}") from error
    for number, text in enumerate(lines, 1):
        if not text:
            continue
        try:
            line = Line.model_validate_json(text)
        except ValidationError as error:
            raise DefinitionError(
                f"{path}:{number}: not a line of a cassette: {complaints(error)}"
            ) from error
        found.setdefault(line.key, line.result)
    return found


def _digest(value: object) -> str:
    text = json.dumps(value, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    return hashlib.sha256(text.encode(errors="replace")).hexdigest()[:32]
