"""The program of docs/sandboxes.md does what the page says of sandboxes."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.command_line import variables
from tests.providers import require

PAGE = Path(__file__).parents[2] / "docs/sandboxes.md"


@pytest.mark.local
def test_its_program_runs_as_it_is_written(tmp_path: Path) -> None:
    require("local")
    section = PAGE.read_text(encoding="utf-8").partition("## From Python\n")[2]
    [program] = re.findall(r"\A\n```python\n(.*?)```", section, re.DOTALL)
    (tmp_path / "program.py").write_text(program)
    done = subprocess.run(
        [sys.executable, "program.py"],
        cwd=tmp_path,
        env=variables(),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        r"0 b'42\n' False False False",
        r"/workspace/answer FileState(mode=33188, data=b'42\n')",
        r"/workspace/notes/a.txt FileState(mode=33188, data=b'hello\n')",
        r"b'hello\n'",
    ]
