"""How a run is watched: a bar on a terminal, a line now and then elsewhere, or not at all."""

import asyncio
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    SpinnerColumn,
    TextColumn,
    TimeElapsedColumn,
)

from gymsuite.runs.plan import Plan
from gymsuite.runs.report import RunReport
from gymsuite.runs.runner import Attempt, Job

_LINE_SECONDS = 10.0


@dataclass
class Counts:
    """How far a command has come; `queued` says how many episodes wait for a sandbox."""

    total: int = 0
    done: int = 0
    solved: int = 0
    failed: int = 0
    retried: int = 0
    started: float = field(default_factory=time.monotonic)
    queued: Callable[[], int] = lambda: 0

    def add(self, attempt: Attempt) -> None:
        """Count one attempt."""
        score = attempt.rollout.score
        if not attempt.final:
            self.retried += 1
            return
        self.done += 1
        if score is None:
            self.failed += 1
        elif score.passed:
            self.solved += 1

    def __str__(self) -> str:
        rate = self.done / max(time.monotonic() - self.started, 1e-9)
        parts = [f"solved {self.solved}", f"failed {self.failed}"]
        if self.retried:
            parts.append(f"retried {self.retried}")
        if queued := self.queued():
            parts.append(f"queued {queued}")
        parts.append(_rate(rate))
        if rate and self.done < self.total:
            parts.append(f"eta {duration((self.total - self.done) / rate)}")
        return "  ".join(parts)


def duration(seconds: float) -> str:
    """A time span for a person to read."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def _rate(per_second: float) -> str:
    if per_second >= 1 or not per_second:
        return f"{per_second:.1f}/s"
    return f"{per_second * 60:.1f}/min"


class Silent:
    """Shows nothing, and keeps the figures."""

    def __init__(self) -> None:
        self.report: RunReport | None = None

    def note(self, text: str) -> None:
        """Show nothing."""

    def begin(
        self, plan: Plan, jobs: Sequence[Job], outdated: int, queued: Callable[[], int]
    ) -> None:
        """Show nothing."""

    def attempt(self, attempt: Attempt) -> None:
        """Show nothing."""

    def end(self, report: RunReport) -> None:
        """Keep the figures."""
        self.report = report

    def close(self) -> None:
        """Nothing to close."""


class Lines:
    """Writes a line every ten seconds, for logs; it does so too while nothing happens."""

    def __init__(self, console: Console, label: str) -> None:
        self.report: RunReport | None = None
        self._console = console
        self._label = label
        self._counts = Counts()
        self._timer: asyncio.TimerHandle | None = None

    def note(self, text: str) -> None:
        """Write it down."""
        self._say(text)

    def begin(
        self, plan: Plan, jobs: Sequence[Job], outdated: int, queued: Callable[[], int]
    ) -> None:
        """Start the clock."""
        self._counts = Counts(total=len(jobs), queued=queued)
        for line in preface(plan, jobs, outdated):
            self._say(line)
        self._tick()

    def attempt(self, attempt: Attempt) -> None:
        """Count it."""
        self._counts.add(attempt)

    def end(self, report: RunReport) -> None:
        """Write the last line."""
        self.report = report
        if self._timer is not None:
            self._timer.cancel()
            self._line()

    def close(self) -> None:
        """Nothing to close."""

    def _tick(self) -> None:
        if self._counts.done or self._counts.queued():
            self._line()
        self._timer = asyncio.get_running_loop().call_later(_LINE_SECONDS, self._tick)

    def _line(self) -> None:
        self._say(f"{self._label} {self._counts.done}/{self._counts.total}  {self._counts}")

    def _say(self, text: str) -> None:
        self._console.print(text, markup=False, highlight=False, soft_wrap=True)


class Bar:
    """A progress bar on a terminal; while tasks and images are made, how long that takes."""

    def __init__(self, console: Console, label: str) -> None:
        self.report: RunReport | None = None
        self._console = console
        self._label = label
        self._counts = Counts()
        self._building = Progress(
            SpinnerColumn(),
            TextColumn("preparing"),
            TimeElapsedColumn(),
            console=console,
            transient=True,
        )
        self._playing = Progress(
            TextColumn("{task.description}"),
            BarColumn(bar_width=20),
            MofNCompleteColumn(),
            TextColumn("{task.fields[counts]}"),
            console=console,
            transient=True,
        )

    def note(self, text: str) -> None:
        """Print it, faintly, above a clock."""
        if not self._building.tasks:
            self._building.add_task("", total=None)
            self._building.start()
        self._say(text)

    def begin(
        self, plan: Plan, jobs: Sequence[Job], outdated: int, queued: Callable[[], int]
    ) -> None:
        """Draw the bar."""
        self._building.stop()
        self._counts = Counts(total=len(jobs), queued=queued)
        for line in preface(plan, jobs, outdated):
            self._say(line)
        # As an object, so that each time the bar is drawn it says how it stands.
        self._playing.add_task(self._label, total=len(jobs), counts=self._counts)
        self._playing.start()

    def attempt(self, attempt: Attempt) -> None:
        """Move the bar."""
        self._counts.add(attempt)
        (task,) = self._playing.task_ids
        self._playing.update(task, completed=self._counts.done)

    def end(self, report: RunReport) -> None:
        """Remember the figures; the table comes in the bar's place."""
        self.report = report

    def close(self) -> None:
        """Leave the terminal as it was."""
        self._building.stop()
        self._playing.stop()

    def _say(self, text: str) -> None:
        self._console.print(text, style="dim", markup=False, highlight=False)


Screen = Silent | Lines | Bar


@contextmanager
def open_screen(*, as_json: bool, label: str) -> Iterator[Screen]:
    """A bar where a person looks, lines where a log is kept, nothing where a script reads."""
    console = Console(stderr=True)
    screen: Screen
    if as_json:
        screen = Silent()
    elif console.is_terminal:
        screen = Bar(console, label)
    else:
        screen = Lines(console, label)
    with closing(screen):
        yield screen


def preface(plan: Plan, jobs: Sequence[Job], outdated: int) -> list[str]:
    """What a person should know before a run goes on that was begun earlier."""
    lines = []
    if len(jobs) < len(plan):
        lines.append(f"{len(plan) - len(jobs)} of {len(plan)} rollouts are there already")
    if outdated:
        lines.append(f"{outdated} of them are of tasks that have changed since, and run again")
    return lines
