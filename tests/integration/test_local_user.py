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
    "test_conformance.py",
    "test_local.py",
    "test_local_leftovers.py",
    "test_local_limits.py",
    "test_local_snapshot.py",
    "test_local_keeper.py",
    "test_images_users.py",
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


needs_root = pytest.mark.skipif(
    os.geteuid() != 0, reason="all other tests run as an ordinary user already"
)
needs_setpriv = pytest.mark.skipif(
    not shutil.which("setpriv"), reason="no setpriv to become another user with"
)


def as_somebody(open_path: Path, *command: str) -> "subprocess.CompletedProcess[str]":
    """Run a command as an ordinary user, for whom this checkout and its interpreter can be read."""
    home = open_path / "home"
    home.mkdir()
    os.chown(home, int(SOMEBODY), int(SOMEBODY))
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
    return subprocess.run(
        ["unshare", "-m", "sh", "-c", OPEN_HOME, "sh", *command],
        env=environment,
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


@needs_root
@needs_setpriv
def test_an_ordinary_user_has_the_same_sandboxes(open_path: Path) -> None:
    tests = [str(ROOT / "tests/integration" / name) for name in SUITE]
    # That one takes long, and is run by root.
    options = ["-q", "-rs", "-m", "local", "-k", "not killed_at_any_moment"]
    places = ["-p", "no:cacheprovider", "--basetemp", str(open_path / "home/temp")]
    done = as_somebody(open_path, sys.executable, "-m", "pytest", *options, *places, *tests)
    assert done.returncode == 0, done.stdout[-5000:] + done.stderr[-2000:]
    assert " passed" in done.stdout
    skipped = [line for line in done.stdout.splitlines() if line.startswith("SKIPPED")]
    assert [line for line in skipped if "not limit" not in line] == []


@needs_root
@needs_setpriv
def test_root_that_may_not_mount_as_in_most_containers_has_the_same_sandboxes(
    tmp_path: Path,
) -> None:
    suite = ("test_local.py", "test_local_snapshot.py", "test_images_users.py")
    tests = [str(ROOT / "tests/integration" / name) for name in suite]
    # One mounts something itself.
    options = ["-q", "-rs", "-m", "local", "-k", "not mounts_later", "--basetemp", str(tmp_path)]
    bounds = ["setpriv", "--bounding-set", "-sys_admin,-sys_ptrace", "--inh-caps", "-all"]
    done = subprocess.run(
        [*bounds, sys.executable, "-m", "pytest", *options, "-p", "no:cacheprovider", *tests],
        env={**os.environ, "CI": "true"},
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-5000:] + done.stderr[-2000:]
    assert " passed" in done.stdout
    assert " skipped" not in done.stdout, done.stdout


OPEN_ONE = """
import asyncio, sys, tempfile
from pathlib import Path
from gymsuite import SandboxError, SandboxSpec
from gymsuite.sandbox.image import Image
from gymsuite.sandbox.local import LocalHost, open_local

async def main(layer):
    host = LocalHost.probe(Path(layer, "cache"))
    image = Image("i", "", "host", (Path(layer),), binds=(Path("/usr"),))
    async with open_local(host, image, SandboxSpec(image="i")) as sandbox:
        command = ["/usr/bin/grep", "Cap", "/proc/self/status"]
        print((await sandbox.exec(command, timeout=30)).output)

try:
    with tempfile.TemporaryDirectory(dir=sys.argv[1]) as layer:
        for name in ("usr", "proc", "dev", "workspace"):
            Path(layer, name).mkdir()
        for name in ("bin", "lib", "lib64"):
            Path(layer, name).symlink_to(f"usr/{name}")
        asyncio.run(main(layer))
except SandboxError as error:
    print(error)
"""


NO_CAPABILITIES = "".join(f"Cap{kind}:\t{0:016x}\n" for kind in ("Inh", "Prm", "Eff", "Bnd", "Amb"))


@needs_root
@needs_setpriv
@pytest.mark.parametrize(
    ("setting", "answer"),
    [
        ("true", NO_CAPABILITIES),
        ("echo 0 > /proc/sys/user/max_user_namespaces", "max_user_namespaces = 0"),
    ],
)
def test_root_of_a_users_own_namespace_has_sandboxes_where_those_are_not_blocked(
    open_path: Path, setting: str, answer: str
) -> None:
    inner = f'{setting} && exec "$@"'
    command = ["unshare", "-Ur", "sh", "-c", inner, "sh", sys.executable, "-c", OPEN_ONE]
    done = as_somebody(open_path, *command, str(open_path / "home"))
    assert done.returncode == 0, done.stderr
    assert answer in done.stdout, done.stdout
    if answer != NO_CAPABILITIES:
        assert "use the docker provider" in done.stdout


@needs_root
def test_the_machines_root_alone_in_a_namespace_is_refused(tmp_path: Path) -> None:
    done = subprocess.run(
        ["unshare", "-Ur", sys.executable, "-c", OPEN_ONE, str(tmp_path)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert "start it outside, or as an ordinary user" in done.stdout, done.stderr


@needs_root
@needs_setpriv
def test_root_of_a_users_own_namespace_builds_images_for_itself(open_path: Path) -> None:
    folder = open_path / "sandboxes/image"
    folder.mkdir(parents=True)
    (folder / "Dockerfile").write_text("FROM host\nWORKDIR /new\nRUN id -u > who\n")
    (open_path / "registry.yaml").write_text("environments: {}\n")
    line = [sys.executable, "-c", "from gymsuite.cli.main import main; main()"]
    places = ["--registry", str(open_path / "registry.yaml"), "--cache", str(open_path / "home/c")]
    done = as_somebody(open_path, "unshare", "-Ur", *line, "sandbox", "build", "image", *places)
    assert done.returncode == 0, done.stderr
    assert "3 layers" in done.stdout
