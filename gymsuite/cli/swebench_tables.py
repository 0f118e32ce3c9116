"""What `gymsuite swebench` prints."""

from collections.abc import Sequence
from pathlib import Path

from rich import box
from rich.console import Console
from rich.table import Table

from gymsuite.cli.plain import plain
from gymsuite.swe.harness import Done
from gymsuite.swe.rows import Row
from gymsuite.swe.vetting import Vetted

_STYLES = {"resolved": "green", "unresolved": "yellow", "empty": "dim"}
_MOST_SHOWN = 120


def print_outcomes(console: Console, seen: Sequence[Done], rows: Sequence[Row], path: Path) -> None:
    """One line for each row, what they add up to, and where the report is."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for title in ("row", "", "rests on", "tests", "why"):
        table.add_column(title, justify="right" if title == "tests" else "left")
    order = {row.instance_id: at for at, row in enumerate(rows)}
    for done in sorted(seen, key=lambda one: order.get(one.instance_id, 0)):
        one = done.stored
        why = one.error or one.reason
        table.add_row(
            plain(done.instance_id),
            plain(one.ending or "no verdict", _STYLES.get(one.ending, "red")),
            one.evidence,
            f"{one.test_seconds:.1f} s" if one.test_seconds else "",
            plain(why if len(why) <= _MOST_SHOWN else f"{why[:_MOST_SHOWN]}...", "dim"),
        )
    console.print(table)
    resolved = sum(done.stored.ending == "resolved" for done in seen)
    kept = sum(done.kept for done in seen)
    differ = sum(bool(done.stored.differences) for done in seen)
    console.print(f"{resolved} of {len(rows)} resolved", end="", highlight=False)
    console.print(f"; {kept} were there already" if kept else "", end="", highlight=False)
    console.print(f"; SWE-bench reads {differ} logs otherwise" if differ else "", highlight=False)
    console.print(f"report: {path}", markup=False, highlight=False, soft_wrap=True)


def vetted_table(vetted: Sequence[Vetted]) -> Table:
    """One line for each row: how often it was resolved with its gold patch, and with none."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for title in ("row", "gold", "nothing", "flaky", "rests on", "tests", "why"):
        table.add_column(title)
    for one in vetted:
        table.add_row(
            plain(one.instance_id),
            f"{one.gold.count('resolved')}/{len(one.gold)}",
            f"{one.empty.count('resolved')}/{len(one.empty)}",
            str(len(one.flaky) or ""),
            one.evidence,
            f"{one.seconds:.1f} s",
            plain("; ".join(one.reasons)[:_MOST_SHOWN], "dim"),
        )
    return table
