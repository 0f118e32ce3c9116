"""The actions of a stored run, looked up one rollout at a time."""

from collections.abc import Sequence
from pathlib import Path

from gymsuite.agents import Recorded
from gymsuite.errors import UsageError
from gymsuite.runs.directory import RunDirectory
from gymsuite.runs.log import Key, read_rollout, read_rows
from gymsuite.types import Action


def last_offsets(path: Path) -> dict[Key, int]:
    """Where the last attempt at each rollout is stored."""
    return {row.key: offset for offset, row in read_rows(path)}


def open_recordings(path: Path) -> Recorded:
    """Index a run directory; raises `UsageError` if it is none."""
    directory = RunDirectory(path)
    directory.read_manifest()
    offsets = last_offsets(directory.rollouts)

    def recorded(environment: str, task: str, repeat: int) -> Sequence[Action]:
        offset = offsets.get(Key(environment, task, repeat))
        if offset is None:
            raise UsageError(f"{path} has no rollout of {environment}, task {task!r}, #{repeat}")
        rollout = read_rollout(directory.rollouts, offset)
        messages = rollout.messages
        if rollout.truncated and messages and not messages[-1].tool_calls:
            messages = messages[:-1]  # cut off while it was said, and never carried out
        return [message for message in messages if message.role == "assistant"]

    return recorded
