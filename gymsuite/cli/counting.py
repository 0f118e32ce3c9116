"""A bar that counts steps where a person looks, and nothing elsewhere."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
)


@dataclass(frozen=True)
class Count:
    """How far a command has come; drawn from when it begins."""

    _progress: Progress
    _task: TaskID

    def begin(self, total: int | None) -> None:
        """Say how many steps there are, or None while that is being found out."""
        self._progress.update(self._task, total=total, visible=True)

    def step(self) -> None:
        """One more is done."""
        self._progress.advance(self._task)

    def reach(self, done: int) -> None:
        """So many are done."""
        self._progress.update(self._task, completed=done)

    def say(self, latest: str) -> None:
        """Show what came of the latest."""
        self._progress.update(self._task, latest=latest)


@contextmanager
def counting(console: Console, label: str) -> Iterator[Count]:
    """Draw a bar on the console, if it is a terminal, until the block ends."""
    with Progress(
        TextColumn("{task.description}", markup=False),
        BarColumn(bar_width=20),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("{task.fields[latest]}", style="dim", markup=False),
        console=console,
        transient=True,
        disable=not console.is_terminal,
    ) as progress:
        yield Count(progress, progress.add_task(label, total=None, visible=False, latest=""))
