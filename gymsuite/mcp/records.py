"""Where the records of ended episodes go: to a file, and a line of each to whoever watches."""

import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Self, TextIO

from gymsuite.types import Rollout


class Records:
    """Appends JSON lines to a file that only its owner may read; leaving the block closes it."""

    def __init__(self, path: Path | None, say: Callable[[str], object] | None) -> None:
        self._path = path
        self._say = say
        self._file: TextIO | None = None

    def __enter__(self) -> Self:
        if self._path is not None:
            self._path.touch(mode=0o600)
            self._file = self._path.open("a", encoding="utf-8")
            # One that was there already may be everybody's to read, and an agent is somebody.
            if stat.S_ISREG(os.fstat(self._file.fileno()).st_mode):
                os.fchmod(self._file.fileno(), 0o600)
        return self

    def __exit__(self, *_: object) -> None:
        if self._file is not None:
            self._file.close()

    def keep(self, name: str, record: Rollout) -> None:
        """Write a record down at once."""
        if self._file is not None:
            self._file.write(record.model_dump_json() + "\n")
            self._file.flush()
        if self._say is not None:
            ended = f"reward {record.score.reward:g}" if record.score else "failed"
            self._say(f"{name} {record.task}: {ended}")
