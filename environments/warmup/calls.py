"""Call a function of solution.py inside a sandbox. What it should return stays on this side."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from gymsuite import ExecResult, Sandbox

FILE = "solution.py"
_RUNNER = (Path(__file__).parent / "runner.py").read_text(encoding="utf-8")
_CALL_SECONDS = 5.0
_CALL_CPU_SECONDS = 0.25
_TOTAL_SECONDS = 20.0
_START_SECONDS = 20.0
_MEMORY_BYTES = 256 << 20
_RESULT_BYTES = 1 << 16
_OUTPUT_BYTES = 2 << 20


class Reply(NamedTuple):
    """What one call gave: JSON text of its value, or a sentence about its error."""

    is_value: bool
    text: str


NO_REPLY = Reply(
    is_value=False, text="it was not called: the time was up, or what calls it was killed"
)


class NotStartedError(Exception):
    """The sandbox's Python did not get as far as the first call."""


async def call_each(
    sandbox: Sandbox, function: str, arguments: Sequence[object]
) -> tuple[Reply, ...]:
    """Call the function once with each argument, each time in a new process.

    A call that hangs, dies, prints or returns what JSON cannot carry gives an error, and the
    others go on. Raises `NotStartedError`.
    """
    job = {
        "path": FILE,
        "function": function,
        "calls": list(arguments),
        "call_seconds": _CALL_SECONDS,
        "call_cpu_seconds": _CALL_CPU_SECONDS,
        "total_seconds": _TOTAL_SECONDS,
        "memory_bytes": _MEMORY_BYTES,
        "result_bytes": _RESULT_BYTES,
    }
    result = await sandbox.exec(
        ["python3", "-I", "-S", "-c", _RUNNER],
        stdin=json.dumps(job).encode(),
        timeout=_START_SECONDS + _TOTAL_SECONDS,
        max_output=_OUTPUT_BYTES,
    )
    replies = _replies(result)
    return tuple(replies.get(number, NO_REPLY) for number in range(len(arguments)))


def as_json(value: object) -> str:
    """The text that a call's value has when it is right."""
    return json.dumps(value, sort_keys=True)


def _replies(result: ExecResult) -> Mapping[int, Reply]:
    """The lines by number; the first one counts, and what is no such line is noise."""
    first, *lines = result.stdout.decode(errors="replace").split("\n")
    if first != "ready":
        why = result.stderr[-500:].decode(errors="replace").strip().split("\n")[-1]
        raise NotStartedError(f"python3 ended with exit code {result.exit_code}: {why}")
    replies: dict[int, Reply] = {}
    for line in lines:
        number, _, rest = line.partition(" ")
        kind, _, text = rest.partition(" ")
        if number.isdecimal() and len(number) < 4 and kind in {"value", "error"}:  # noqa: PLR2004 - int() of a long text is slow
            replies.setdefault(int(number), Reply(kind == "value", text))
    return replies
