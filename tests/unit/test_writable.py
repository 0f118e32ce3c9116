"""Where a container can be written to, worked out without one."""

from pathlib import Path

import pytest

from gymsuite import SandboxSpec
from gymsuite.sandbox.image import Image
from gymsuite.sandbox.writable import Writable, places

MIB = 1 << 20


def image(tmp_path: Path, *, workdir: str = "/workspace") -> Image:
    for folder in ("workspace/library", "tmp", "root", "var/tmp", "run/lock"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "tmp").chmod(0o1777)
    (tmp_path / "root").chmod(0o700)
    (tmp_path / "var/run").symlink_to("/run")
    return Image(name="a", digest="1" * 64, base="debian", layers=(tmp_path,), workdir=workdir)


def by_path(image: Image, spec: SandboxSpec) -> dict[str, Writable]:
    return {place.path: place for place in places(image, spec)}


@pytest.mark.parametrize("disk", [1 * MIB, 100 * MIB, 1 << 40])
@pytest.mark.parametrize("memory", [16 * MIB, 512 * MIB, 4 << 30])
def test_all_places_together_leave_a_quarter_of_the_memory(
    tmp_path: Path, disk: int, memory: int
) -> None:
    spec = SandboxSpec(image="a", disk_bytes=disk, memory_bytes=memory)
    found = by_path(image(tmp_path), spec)
    whole = min(disk, memory // 2)
    assert found["/workspace"].size_bytes == whole
    assert all(0 < place.size_bytes <= whole for place in found.values())
    assert sum(place.size_bytes for place in found.values()) <= memory * 3 // 4


def test_a_workdir_below_the_images_shares_its_place(tmp_path: Path) -> None:
    spec = SandboxSpec(image="a", workdir="/workspace/library")
    names = {path.lstrip("/") for path in by_path(image(tmp_path), spec)}
    assert names == {"workspace", "tmp", "root", "dev/shm", "home", "run", "var/tmp"}


@pytest.mark.parametrize(
    ("workdir", "main"), [("/srv/new", "/srv/new"), ("/var/run/x", "/run/x"), ("/", "/workspace")]
)
def test_another_workdir_is_a_place_behind_all_links(
    tmp_path: Path, workdir: str, main: str
) -> None:
    spec = SandboxSpec(image="a", workdir=workdir, inodes=5000)
    found = by_path(image(tmp_path), spec)
    assert (found[main].size_bytes, found[main].inodes) == (1 << 30, 5000)


def test_a_place_that_is_the_workdir_is_there_once(tmp_path: Path) -> None:
    found = places(image(tmp_path, workdir="/"), SandboxSpec(image="a", workdir="/root"))
    paths = [place.path for place in found]
    assert len(set(paths)) == len(paths)
    assert max(found, key=lambda place: place.size_bytes).path == "/root"


def test_places_keep_their_modes(tmp_path: Path) -> None:
    found = by_path(image(tmp_path), SandboxSpec(image="a"))
    modes = [found[f"/{name}"].mode for name in ("tmp", "root", "dev/shm", "workspace")]
    assert modes == [0o1777, 0o700, 0o1777, 0o755]
