"""An installed wheel is the whole suite: it lists, checks and plays from an empty folder."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.providers import require

ROOT = Path(__file__).parents[2]

pytestmark = [pytest.mark.local, pytest.mark.slow]


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The bin directory of a fresh virtual environment that holds nothing but the wheel."""
    require("local")
    folder = tmp_path_factory.mktemp("installed")
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder / "dist")]
    subprocess.run(build, cwd=ROOT, check=True, capture_output=True)
    (wheel,) = (folder / "dist").iterdir()
    subprocess.run([sys.executable, "-m", "venv", str(folder / "venv")], check=True)
    pip = [str(folder / "venv/bin/python"), "-m", "pip", "install", "--quiet", str(wheel)]
    done = subprocess.run(pip, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return folder / "venv" / "bin"


def run(installed: Path, folder: Path, *arguments: str) -> dict[str, object]:
    done = subprocess.run(
        [str(installed / "gymsuite"), *arguments, "--json"],
        cwd=folder,
        env={**os.environ, "GYMSUITE_CACHE": str(installed.parent / "cache")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    found = json.loads(done.stdout)
    return found if isinstance(found, dict) else {"listed": found}


def test_it_lists_the_suite(installed: Path, tmp_path: Path) -> None:
    assert "coding/warmup-v1" in json.dumps(run(installed, tmp_path, "list"))
    assert list(tmp_path.iterdir()) == []


def test_its_environments_keep_their_promises(installed: Path, tmp_path: Path) -> None:
    report = run(installed, tmp_path, "check", "coding/warmup-v1", "--tasks", "2")
    assert report["ok"] is True


def test_it_plays_an_oracle_episode(installed: Path, tmp_path: Path) -> None:
    report = run(installed, tmp_path, "eval", "coding/warmup-v1", "--agent", "oracle", "-n", "1")
    assert (report["mean_reward"], report["failures"]) == (1.0, 0)


def test_a_core_install_is_small(installed: Path) -> None:
    """Under 130 MB and 36 packages: numpy alone is 73 MB."""
    site = next((installed.parent / "lib").glob("python*")) / "site-packages"
    tools = {"pip", "setuptools"}
    packages = {p.name.partition("-")[0] for p in site.glob("*.dist-info")} - tools
    files = (
        p for p in site.rglob("*") if p.is_file() and p.relative_to(site).parts[0] not in tools
    )
    size = sum(p.stat().st_size for p in files if p.suffix != ".pyc")
    assert len(packages) < 36, sorted(packages)
    assert size < 130e6
