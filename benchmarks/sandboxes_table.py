"""Rows of the sandbox benchmark: a number, its target, and the peer's number of the same run."""

import statistics
from collections.abc import Sequence
from typing import Any, NamedTuple

_HEAD = ("", "here", "p95", "CPU", "target", "", "peer", "ratio")
_WIDTHS = (42, 12, 10, 10, 10, 7, 30, 7)


class Row(NamedTuple):
    """One measurement. `most` is the target for the median, `least` for what should be high."""

    what: str
    value: float | None
    unit: str = "ms"
    p95: float | None = None
    cpu_ms: float | None = None
    most: float | None = None
    most_p95: float | None = None
    least: float | None = None
    peer: str = ""
    peer_value: float | None = None
    note: str = ""

    @property
    def met(self) -> bool | None:
        """Whether it is as good as it should be; None where there is no target."""
        if self.value is None:
            return None
        checks = [
            self.value <= self.most if self.most is not None else None,
            self.value >= self.least if self.least is not None else None,
            self.p95 <= self.most_p95 if self.p95 is not None and self.most_p95 else None,
        ]
        said = [check for check in checks if check is not None]
        return all(said) if said else None

    @property
    def ratio(self) -> float | None:
        """How many times better than the peer it is."""
        if self.value is None or not self.value or self.peer_value is None:
            return None
        better_when_high = self.least is not None or self.unit.endswith("/s")
        return self.value / self.peer_value if better_when_high else self.peer_value / self.value


def of_times(what: str, seconds: Sequence[float], **more: Any) -> Row:  # noqa: ANN401 - a row's
    """Make a row of wall times: their median and 95th percentile, in milliseconds."""
    ordered = sorted(time * 1000 for time in seconds)
    p95 = ordered[min(len(ordered) - 1, int(len(ordered) * 0.95))]
    return Row(what, statistics.median(ordered), p95=p95)._replace(**more)


def print_head() -> None:
    """Print what the columns are."""
    print(_line(_HEAD), flush=True)


def print_row(row: Row) -> None:
    """Print one line, and below it what there is to say of it."""
    print(_line(_cells(row)), flush=True)
    if row.note:
        print(f"    {row.note}", flush=True)


def print_sum(rows: Sequence[Row]) -> None:
    """Say how many targets were met."""
    judged = [row.met for row in rows if row.met is not None]
    print(f"{sum(judged)} of {len(judged)} targets met")


def _cells(row: Row) -> tuple[str, ...]:
    target = ""
    if row.most is not None:
        target = f"<= {row.most:g}" + (f"/{row.most_p95:g}" if row.most_p95 else "")
    elif row.least is not None:
        target = f">= {row.least:g}"
    ratio = row.ratio
    return (
        row.what,
        "skipped" if row.value is None else f"{_number(row.value)} {row.unit}",
        "" if row.p95 is None else _number(row.p95),
        "" if row.cpu_ms is None else f"{row.cpu_ms:.2f} ms",
        target,
        {None: "", True: "met", False: "MISSED"}[row.met],
        row.peer + ("" if row.peer_value is None else f" {_number(row.peer_value)}"),
        "" if ratio is None else f"{ratio:.0f}x" if ratio >= 10 else f"{ratio:.1f}x",  # noqa: PLR2004
    )


def _line(cells: Sequence[str]) -> str:
    return " ".join(
        f"{cell:{'<' if n in {0, 6} else '>'}{width}}"
        for n, (cell, width) in enumerate(zip(cells, _WIDTHS, strict=True))
    ).rstrip()


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"  # noqa: PLR2004 - three digits
