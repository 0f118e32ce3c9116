"""Where commands can start, worked out without a sandbox."""

import sys
from pathlib import Path

import pytest

from gymsuite import SandboxError, SandboxSpec
from gymsuite.sandbox.image import Image
from gymsuite.sandbox.workdirs import directory, workdir


@pytest.fixture
def image(tmp_path: Path) -> Image:
    (tmp_path / "etc").mkdir()
    (tmp_path / "etc/passwd").touch()
    (tmp_path / "data").symlink_to("/opt/real")
    (tmp_path / "lib").symlink_to("usr/lib")
    (tmp_path / "kernel").symlink_to("proc")
    (tmp_path / "long").symlink_to("x" * 300)
    (tmp_path / "loop").symlink_to("loop")
    binds = (Path("/usr"), Path(sys.prefix))
    return Image(name="i", digest="1", base="host", layers=(tmp_path,), binds=binds,
                 workdir="/srv")  # fmt: skip


def test_the_workdir_is_the_specs_where_it_names_one(image: Image) -> None:
    assert workdir(image, SandboxSpec(image="i")) == "/srv"
    assert workdir(image, SandboxSpec(image="i", workdir="/workspace")) == "/workspace"


@pytest.mark.parametrize(
    ("path", "found"),
    [
        ("/", "/"),
        ("/new/one", "/new/one"),
        ("/data/new", "/opt/real/new"),
        ("/usr/bin", "/usr/bin"),
        ("/lib", "/usr/lib"),
        ("/long", "/" + "x" * 300),
    ],
)
def test_a_directory_is_found_behind_all_links(image: Image, path: str, found: str) -> None:
    assert directory(image, path) == found


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        ("/etc/passwd", "/etc/passwd is no directory"),
        ("/etc/passwd/below", "/etc/passwd is no directory"),
        ("/usr/no-such", "/usr is this machine's"),
        ("/lib/no-such", "/usr is this machine's"),
        ("/proc", "/proc is the sandbox's own"),
        ("/kernel/x", "/proc is the sandbox's own"),
        ("/dev/shm/x", "/dev is the sandbox's own"),  # noqa: S108 - inside
        ("/sys/x", "/sys is the sandbox's own"),
        ("/loop/x", "too many links"),
    ],
)
def test_where_there_can_be_no_directory_the_reason_is_said(
    image: Image, path: str, reason: str
) -> None:
    with pytest.raises(SandboxError, match=f"cannot start commands in '{path}': {reason}") as error:
        directory(image, path)
    assert not error.value.retryable


def test_what_a_bind_hides_has_nothing_below_it(image: Image) -> None:
    hiding = Image(**{**vars(image), "hides": (Path("/usr/bin"),)})
    assert directory(hiding, "/usr/bin") == "/usr/bin"
    with pytest.raises(SandboxError, match="/usr is this machine's"):
        directory(hiding, "/usr/bin/X11")
