"""The tables of `gymsuite bench`: one run's levels, and how two runs compare."""

import json
from collections.abc import Iterator, Sequence

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from gymsuite.bench.compare import Ratio
from gymsuite.bench.report import (
    BenchReport,
    Level,
    cpu_seconds,
    of_level,
    per_core_hour,
    percentile,
)
from gymsuite.bench.workload import MIX
from gymsuite.cli.plain import plain

_MESSAGE_CHARACTERS = 300


def print_report(console: Console, report: BenchReport) -> None:
    """One row for each level, then the knee and what was measured."""
    table = _table("at once", "episodes", "per core-hour", "p50 s", "p95 s", "p99 s", "create ms",
                   "shell ms", "CPU-s")  # fmt: skip
    for level in report.levels:
        style = "bold" if level.concurrency == report.knee else ""
        table.add_row(str(level.concurrency), *_row(report, level), style=style)
    console.print(table)
    if report.knee is not None:
        rate = max(per_core_hour(report, level) for level in report.levels)
        console.print(
            f"knee: {report.knee} at once; best {rate:,.0f} episodes per core-hour", style="bold"
        )
    console.print(plain(_about(report)), soft_wrap=True)
    if report.failures:
        last = next(text for level in reversed(report.levels) for text in reversed(level.failures))
        message = " ".join(last.split())[:_MESSAGE_CHARACTERS]
        console.print(plain(f"{report.failures} episodes failed; the last: {message}", "red"))


def _row(report: BenchReport, level: Level) -> Iterator[str]:
    yield str(len(level.episodes))
    if not level.episodes:
        yield from ["-"] * 7
        return
    yield f"{per_core_hour(report, level):,.0f}"
    walls = of_level(level, lambda one: one.wall_seconds)
    for share in (0.5, 0.95, 0.99):
        yield f"{percentile(walls, share):.2f}"
    creates = of_level(level, lambda one: one.seconds["create"] * 1000)
    yield f"{percentile(creates, 0.5):.1f}"
    shells = of_level(level, lambda one: one.seconds["shell"] / MIX["shell"] * 1000)
    yield f"{percentile(shells, 0.5):.1f}"
    yield f"{cpu_seconds(level):.2f}"


def _about(report: BenchReport) -> str:
    machine = report.machine
    processor = machine.get("processor") or machine.get("architecture")
    return (
        f"workload {report.workload} (tests by {report.tests},"
        f" {'with' if report.git else 'without'} git), seed {report.seed}; provider"
        f" {report.provider}, image {report.image}; {machine.get('system')}, {processor},"
        f" {report.processors:g} processors"
    )


def print_ratios(
    console: Console, reports: tuple[BenchReport, BenchReport], ratios: Sequence[Ratio]
) -> None:
    """One row for each level and measure, with what may be said of it."""
    for name, report in zip("AB", reports, strict=True):
        console.print(plain(f"{name}: {_about(report)}"), soft_wrap=True)
    table = _table("at once", "", "A", "B", "B / A", "95 %", "")
    for one in ratios:
        words = "differs" if one.differs else "no difference shown"
        table.add_row(
            str(one.concurrency), one.what, _number(one.first), _number(one.second),
            f"{one.ratio:.2f}", f"{one.low:.2f}-{one.high:.2f}",
            Text(words, style="bold" if one.differs else "dim"),
        )  # fmt: skip
    console.print(table)


def ratios_as_json(ratios: Sequence[Ratio]) -> str:
    """The same for a script."""
    return json.dumps({"ratios": [{**one._asdict(), "differs": one.differs} for one in ratios]})


def _table(*headers: str) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    for header in headers:
        table.add_column(header, justify="right" if header else "left")
    return table


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"  # noqa: PLR2004 - three digits
