"""The README names only what works."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from gymsuite import Registry
from tests.providers import require

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
SHELL, PYTHON = (
    re.findall(rf"```{language}\n(.*?)```", README, re.DOTALL)[0] for language in ("sh", "python")
)


def test_its_table_has_every_environment_and_no_other() -> None:
    rows = re.findall(
        r"^\| `([a-z-]+/[a-z-]+-v\d+)` \| ([\d,]+|unlimited|yours) \|", README, re.MULTILINE
    )
    registry = Registry.default()
    assert sorted(name for name, _ in rows) == list(registry.specs)
    for name, count in rows:
        if count not in ("unlimited", "yours"):
            assert int(count.replace(",", "")) == len(registry.load(name).tasks), name


def test_its_commands_exist() -> None:
    program = str(Path(sys.executable).with_name("gymsuite"))
    known = subprocess.run([program, "--help"], capture_output=True, text=True, check=True).stdout
    named = re.findall(r"^gymsuite (\w+)", SHELL, re.MULTILINE)
    assert len(named) > 4
    assert [name for name in named if name not in known] == []
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for target in re.findall(r"^make (\w+)", SHELL, re.MULTILINE):
        assert f"\n{target}:" in makefile


@pytest.mark.local
def test_its_python_runs() -> None:
    require("local")
    code = f"{PYTHON}\nprint(reward, terminated)"
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "0.0 True"
