"""`gymsuite play`: a person, or a pipe, plays in the terminal."""

import os
import pty
import subprocess
import time
from pathlib import Path

from tests.command_line import command, gymsuite, make_suite, variables


def _play(folder: Path, *lines: str) -> str:
    done = gymsuite(
        "play", "test/yes-v1", "--registry", make_suite(folder), cwd=folder, stdin="\n".join(lines)
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_tool_is_asked_for_its_arguments(tmp_path: Path) -> None:
    shown = _play(tmp_path, "think", "deeply", "submit yes")
    assert "Say yes, 0." in shown
    assert "thought about deeply" in shown
    assert "reward 1, passed" in shown


def test_arguments_come_on_the_same_line_too(tmp_path: Path) -> None:
    shown = _play(
        tmp_path, "think so much", 'think {"thought": "json"}', 'submit {"answer": "yes"}'
    )
    assert "thought about so much" in shown
    assert "thought about json" in shown
    assert "reward 1, passed" in shown


def test_a_longer_text_stands_between_quotes(tmp_path: Path) -> None:
    shown = _play(tmp_path, "think", '"""', "one", "two", '"""', "submit no")
    assert "thought about one\ntwo\n" in shown
    assert "not passed" in shown


def test_plain_text_is_an_answer(tmp_path: Path) -> None:
    assert "reward 1, passed" in _play(tmp_path, "yes", "")


def test_a_slip_is_not_taken_for_an_answer(tmp_path: Path) -> None:
    shown = _play(tmp_path, "thnk x", "think {broken", "submit yes")
    assert "did you mean 'think'?" in shown
    assert "not JSON" in shown
    assert "reward 1, passed" in shown


def test_the_end_of_input_leaves_without_a_score(tmp_path: Path) -> None:
    shown = _play(tmp_path, "think x")
    assert "no score" in shown
    assert "reward" not in shown


def test_a_sandbox_cannot_speak_to_the_terminal(tmp_path: Path) -> None:
    assert "\x1b" not in _play(tmp_path, "think \x1b[2J").partition("think \x1b[2J")[2]


def test_ctrl_c_ends_it(tmp_path: Path) -> None:
    person, terminal = pty.openpty()
    line = command("play", "test/yes-v1", "--registry", make_suite(tmp_path))
    process = subprocess.Popen(
        ["setsid", "--ctty", "--wait", *line],
        stdin=terminal,
        stdout=terminal,
        stderr=subprocess.PIPE,
        cwd=tmp_path,
        env=variables(),
    )
    shown = b""
    while b"> " not in shown:
        shown += os.read(person, 4096)
    time.sleep(0.1)
    os.write(person, b"\x03")
    _, stderr = process.communicate(timeout=30)
    os.close(person)
    os.close(terminal)
    assert process.returncode == 130
    assert b"Traceback" not in stderr
