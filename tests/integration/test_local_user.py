"""The local provider as an ordinary user, where the tests themselves run as root."""

import os
import pwd
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOMEBODY = "1234"  # who has no account, as in many containers
SUITE = (
    "test_sandbox_contract_isolation.py",
    "test_sandbox_contract_files.py",
    "test_local.py",
    "test_local_leftovers.py",
)

pytestmark = pytest.mark.local

# What lies in root's closed home is shown at the same place in an open directory; only this
# process and its children see it so.
OPEN_HOME = """
set -e
mount --make-rprivate /
for path in $OPENED; do
    case $path in "$HOME_OF_ROOT"/*)
        mkdir -p "$STAGE$path" && mount --bind "$path" "$STAGE$path";;
    esac
done
mkdir -p "$STAGE$HOME_OF_ROOT"
chmod 755 "$STAGE$HOME_OF_ROOT"
mount --rbind "$STAGE$HOME_OF_ROOT" "$HOME_OF_ROOT"
exec setpriv --reuid "$SOMEBODY" --regid "$SOMEBODY" --clear-groups "$@"
"""


@pytest.fixture
def open_path() -> Iterator[Path]:
    """A directory that others can enter, unlike tmp_path."""
    with tempfile.TemporaryDirectory() as name:
        path = Path(name)
        path.chmod(0o755)
        yield path


@pytest.mark.skipif(os.geteuid() != 0, reason="all other tests run as an ordinary user already")
@pytest.mark.skipif(not shutil.which("setpriv"), reason="no setpriv to become another user with")
def test_an_ordinary_user_has_the_same_sandboxes(open_path: Path) -> None:
    home = open_path / "home"
    home.mkdir()
    os.chown(home, int(SOMEBODY), int(SOMEBODY))
    tests = [str(ROOT / "tests/integration" / name) for name in SUITE]
    options = ["-q", "-m", "local", "-p", "no:cacheprovider", "--basetemp", str(home / "temp")]
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(home),
        "CI": "true",
        "PYTHONDONTWRITEBYTECODE": "1",
        "OPENED": f"{sys.base_prefix} {sys.prefix} {ROOT}",
        "HOME_OF_ROOT": pwd.getpwuid(0).pw_dir,
        "STAGE": str(open_path / "stage"),
        "SOMEBODY": SOMEBODY,
    }
    done = subprocess.run(
        [
            "unshare",
            "-m",
            "sh",
            "-c",
            OPEN_HOME,
            "sh",
            sys.executable,
            "-m",
            "pytest",
            *options,
            *tests,
        ],
        env=environment,
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-5000:] + done.stderr[-2000:]
    assert " passed" in done.stdout
    assert "skipped" not in done.stdout
