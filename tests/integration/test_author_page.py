"""docs/author-an-environment.md works as it is written: in a folder, and in a package."""

import re
from pathlib import Path

import pytest

from tests.command_line import gymsuite
from tests.providers import require

PAGE = Path(__file__).parents[2] / "docs/author-an-environment.md"
FILES = dict(
    re.findall(
        r"^`([^`\n]+)`[^\n]*:\n\n```\w+\n(.*?)```",
        PAGE.read_text(encoding="utf-8"),
        re.MULTILINE | re.DOTALL,
    )
)
COMMANDS = re.findall(r"`gymsuite ([^`]+)`", PAGE.read_text(encoding="utf-8"))


def write_page(folder: Path) -> None:
    for name in ("environments/greeting/environment.py", "environments/greeting/tasks.jsonl"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(FILES[name])
    (folder / "registry.yaml").write_text(FILES["registry.yaml"])


@pytest.mark.local
def test_its_commands_work_in_a_folder_of_ones_own(tmp_path: Path) -> None:
    require("local")
    write_page(tmp_path)
    assert {command.split()[0] for command in COMMANDS} == {"check", "play"}
    for command in COMMANDS:
        said = "bash echo hello > greeting.txt\nsubmit\n" if command.startswith("play") else ""
        done = gymsuite(*command.split(), cwd=tmp_path, stdin=said)
        assert done.returncode == 0, done.stderr + done.stdout
        assert "reward 1, passed" in done.stdout or "kept" in done.stdout


def test_its_environment_joins_the_suite_from_a_package(tmp_path: Path) -> None:
    write_page(tmp_path / "my_package")
    (declared,) = re.findall(
        r'"(gymsuite\.registries)"\]\n(\w+) = "([\w:.]+)"', FILES["pyproject.toml"]
    )
    group, name, value = declared
    info = tmp_path / "my_package-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: my-package\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[{group}]\n{name} = {value}\n")
    done = gymsuite("show", "coding/greeting-v1", cwd=tmp_path, PYTHONPATH=str(tmp_path))
    assert done.returncode == 0, done.stderr
    assert "Write the word hello into greeting.txt." in done.stdout
