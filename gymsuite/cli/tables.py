"""The table that a run ends with, and the lines below it."""

from collections.abc import Iterator, Sequence

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from gymsuite.cli.plain import plain
from gymsuite.cli.progress import duration
from gymsuite.runs.report import Figures, RunReport

_MESSAGE_CHARACTERS = 300


def print_reports(console: Console, reports: Sequence[RunReport]) -> None:
    """One row for each environment of each run, then what it cost and where it is."""
    console.print(_table(reports))
    for report in reports:
        for line in _lines(report):
            console.print(line, soft_wrap=True)


def _table(reports: Sequence[RunReport]) -> Table:
    k = max(report.repeats for report in reports)
    agents = len(reports) > 1
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False)
    table.add_column("environment", overflow="fold", style="bold")
    if agents:
        table.add_column("agent", overflow="fold")
    right = ["tasks", "reward", "pass@1", "95 %", *([f"pass@{k}"] if k > 1 else []), "solved"]
    for header in (*right, "failed"):
        table.add_column(header, justify="right", no_wrap=True)
    for report in reports:
        rows = dict(report.environments)
        if len(rows) > 1:
            rows["all"] = report.total
        for name, figures in rows.items():
            first = (name, report.agent) if agents else (name,)
            table.add_row(*first, *_row(report, figures, k))
    return table


def _row(report: RunReport, figures: Figures, k: int) -> Iterator[str | Text]:
    yield f"{figures.tasks}" + (f" x {report.repeats}" if report.repeats > 1 else "")
    yield _number(figures.mean_reward)
    yield _share(figures.pass_at_1)
    interval = figures.interval
    yield _range(interval.low * 100, interval.high * 100) if interval else "-"
    if k > 1:
        yield _share(figures.pass_at.get(k))
    yield f"{figures.solved}/{figures.scored}"
    yield Text(str(figures.failures), style="red") if figures.failures else "0"


def _lines(report: RunReport) -> Iterator[Text]:
    usage, total = report.total.usage, report.total
    cost = (
        f"{report.agent}: {duration(report.seconds)} wall, {report.cpu_seconds:.1f} CPU-s "
        f"(suite {report.suite_cpu_seconds:.1f}, sandboxes {usage.sandbox_cpu_seconds:.1f}, "
        f"verifiers {usage.verifier_cpu_seconds:.1f})"
    )
    if usage.queue_seconds:
        cost += f"; {usage.queue_seconds:.1f} s in the queue for a sandbox"
    if usage.model_calls:
        cost += (
            f"; {usage.input_tokens:,} tokens in ({usage.cached_tokens:,} cached), "
            f"{usage.output_tokens:,} out"
        )
    yield Text(cost)
    for kind, count in total.failures_by_kind.items():
        message = " ".join(report.failure_messages.get(kind, "").split())[:_MESSAGE_CHARACTERS]
        yield plain(f"{count} failed ({kind}), no score; the last: {message}", "red")
    if total.missing:
        yield Text(f"{total.missing} not finished", style="red")
    if report.stopped:
        yield plain(report.stopped, "red")
    yield Text.assemble("run directory: ", (report.run, "bold"))


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"


def _range(low: float, high: float) -> str:
    """Whole percents, or with a decimal where both ends would look the same."""
    digits = int(round(low) == round(high))
    return f"{low:.{digits}f}-{high:.{digits}f} %"


def _share(value: float | None) -> str:
    return "-" if value is None else f"{value * 100:.1f} %"
