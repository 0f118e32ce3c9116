"""Small parts of the command line."""

import asyncio
import inspect
import io
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import typer
from rich.console import Console

from gymsuite import Failure, Rollout, Score
from gymsuite.cli.main import build
from gymsuite.cli.plain import plain
from gymsuite.cli.progress import Counts, Lines, duration
from gymsuite.cli.typing_in import Typed
from gymsuite.runs.runner import Attempt


def _attempt(*, passed: bool | None, final: bool = True) -> Attempt:
    score = None if passed is None else Score(reward=float(passed), passed=passed)
    failure = Failure(kind="model", stage="agent", message="m") if passed is None else None
    return Attempt(
        Rollout(id="i", environment="e", task="t", seed=1, score=score, failure=failure), final
    )


def test_progress_tells_solved_failed_and_retried_apart() -> None:
    counts = Counts(total=10)
    for attempt in (
        _attempt(passed=True),
        _attempt(passed=False),
        _attempt(passed=None, final=False),
        _attempt(passed=None),
    ):
        counts.add(attempt)
    assert (counts.done, counts.solved, counts.failed, counts.retried) == (3, 1, 1, 1)
    shown = str(counts)
    for part in ("solved 1", "failed 1", "retried 1", "/s", "eta"):
        assert part in shown


def test_progress_says_how_many_episodes_wait_for_a_sandbox() -> None:
    assert "queued 936" in str(Counts(total=1000, queued=lambda: 936))
    assert "queued" not in str(Counts(total=1000))


def test_progress_says_so_too_while_nothing_is_finished() -> None:
    assert str(Counts(total=5)) == "solved 0  failed 0  0.0/s"


@pytest.mark.parametrize(
    ("seconds", "shown"), [(0.4, "0:00"), (59.7, "1:00"), (61, "1:01"), (3725, "1:02:05")]
)
def test_durations_are_for_people(seconds: float, shown: str) -> None:
    assert duration(seconds) == shown


def test_a_log_gets_what_images_say() -> None:
    out = io.StringIO()
    Lines(Console(file=out), "oracle").note("base: RUN [x]")
    assert out.getvalue() == "base: RUN [x]\n"


def test_control_characters_do_not_reach_the_terminal() -> None:
    shown = plain("a\x1b]0;title\x07b\tc\nd\r\u202eé中")
    assert shown.plain == "a\ufffd]0;title\ufffdb\tc\nd\ufffd\ufffdé中"


def _type(data: bytes) -> list[str]:
    reader, writer = os.pipe()
    os.write(writer, data)
    os.close(writer)
    said: list[str] = []

    async def read() -> list[str]:
        typed, lines = Typed(reader, said.append), []
        while True:
            try:
                lines.append(await typed.line("> "))
            except EOFError:
                return lines

    try:
        return asyncio.run(read())
    finally:
        os.close(reader)


def test_lines_are_read_to_the_last_one_without_an_end() -> None:
    assert _type(b"one\r\n\ntwo\xff\nthree") == ["one", "", "two\ufffd", "three"]


def test_lines_of_an_ordinary_file_are_read_too(tmp_path: Path) -> None:
    path = tmp_path / "in"
    path.write_text("one\n")

    async def read() -> str:
        with path.open("rb") as file:
            return await Typed(file.fileno(), lambda _: None).line("")

    assert asyncio.run(read()) == "one"


IMPATIENT = """
import asyncio, gc, os, signal
from gymsuite.cli.loop import Interrupted, run

def press():
    os.kill(os.getpid(), signal.SIGINT)

async def work():
    try:
        press()
        await asyncio.sleep(60)
    finally:
        asyncio.get_running_loop().call_soon(press)
        try:
            await asyncio.sleep(60)
        finally:
            press()

try:
    run(work())
except Interrupted:
    print("interrupted")
gc.collect()
"""


def test_who_presses_ctrl_c_several_times_sees_no_traceback() -> None:
    done = subprocess.run(
        [sys.executable, "-c", IMPATIENT], capture_output=True, text=True, check=True
    )
    assert (done.stdout, done.stderr) == ("interrupted\n", "")


def _help_texts(app: typer.Typer) -> Iterator[str]:
    for command in app.registered_commands:
        yield inspect.getdoc(command.callback) or ""
    for group in app.registered_groups:
        if group.typer_instance is not None:
            yield from _help_texts(group.typer_instance)


def test_help_texts_keep_their_lines_on_a_terminal_of_80_columns() -> None:
    # Only the first paragraph is wrapped anew; the others keep their line ends, and get more.
    for text in _help_texts(build([])):
        for paragraph in text.split("\n\n")[1:]:
            lines = paragraph.splitlines()
            assert len(lines) == 1 or max(map(len, lines)) <= 78, paragraph
