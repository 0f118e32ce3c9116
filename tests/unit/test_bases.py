"""Images by name, and the two bases as far as they need no sandbox and no root."""

import asyncio
import contextlib
import os
import subprocess
import sys
from pathlib import Path

import pytest

from gymsuite.errors import DefinitionError, SandboxError, UsageError
from gymsuite.sandbox.debian import Source, find_source, python_version
from gymsuite.sandbox.host import host_base
from gymsuite.sandbox.image import Image
from gymsuite.sandbox.images import Images
from gymsuite.sandbox.owner import is_gone, this_process
from gymsuite.sandbox.provider import open_provider

ONE_LINE = """\
# deb http://commented/ bookworm main
deb-src http://sources/ bookworm main
deb http://security/ bookworm-security main
deb [arch=amd64 signed-by=/keys/one.gpg] http://mirror/debian bookworm main contrib  # here
"""
DEB822 = """\
Types: deb
# a comment
URIs: http://mirror/debian
Suites: bookworm bookworm-updates
Components: main contrib
Signed-By: /keys/two.gpg

Types: deb
URIs: http://security/
Suites: bookworm-security
Components: main
"""
INLINE_KEY = """\
Types: deb deb-src
URIs: http://inline/debian
Suites: trixie
Components: main
Signed-By:
 -----BEGIN PGP PUBLIC KEY BLOCK-----
 .
 abc
"""
DISABLED = "Enabled: no\n" + INLINE_KEY


def apt(tmp_path: Path, name: str, text: str) -> Path:
    path = tmp_path / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)
    return tmp_path


@pytest.mark.parametrize(
    ("name", "text", "release", "expected"),
    [
        ("sources.list", ONE_LINE, "bookworm", Source("http://mirror/debian", "/keys/one.gpg")),
        ("sources.list.d/debian.list", ONE_LINE, "trixie", None),
        (
            "sources.list.d/debian.sources",
            DEB822,
            "bookworm",
            Source("http://mirror/debian", "/keys/two.gpg"),
        ),
        ("sources.list.d/a.sources", INLINE_KEY, "trixie", Source("http://inline/debian", "")),
        ("sources.list.d/a.sources", DISABLED, "trixie", None),
        ("sources.list.d/debian.sources.bak", DEB822, "bookworm", None),
    ],
)
def test_the_mirror_is_the_one_that_apt_uses(
    tmp_path: Path, name: str, text: str, release: str, expected: Source | None
) -> None:
    assert find_source(apt(tmp_path, name, text), release) == expected


def test_the_python_of_a_debian_is_read_without_running_it(tmp_path: Path) -> None:
    assert python_version(tmp_path) == ""
    status = tmp_path / "var/lib/dpkg/status"
    status.parent.mkdir(parents=True)
    status.write_text(
        "Package: python3\nStatus: install ok installed\nVersion: 3.11.2-1+b1\n\n"
        "Package: python3.11\nStatus: install ok installed\nVersion: 3.11.2-6+deb12u6\n\n"
    )
    assert python_version(tmp_path) == "3.11.2"


def test_the_host_base_shares_programs_and_no_homes() -> None:
    prefix = Path(sys.base_prefix).resolve()
    programs = {Path("/", name) for name in ("usr", "bin", "sbin", "lib", "lib32", "lib64")}
    binds = set(host_base().binds)
    assert any(prefix.is_relative_to(bind) for bind in binds)
    others = binds - programs - {prefix, Path(sys.base_prefix)}
    assert all(bind.is_relative_to("/etc") and bind != Path("/etc") for bind in others)


def test_the_host_base_has_accounts_of_its_own(tmp_path: Path) -> None:
    async def make() -> str:
        return await host_base().make(tmp_path)

    version = asyncio.run(make())
    assert version == ".".join(map(str, sys.version_info[:3]))
    users = [line.split(":")[0] for line in (tmp_path / "etc/passwd").read_text().splitlines()]
    assert users == ["root", "nobody"]
    assert not (tmp_path / "etc/shadow").exists()
    interpreter = (tmp_path / "opt/gymsuite/bin/python3").readlink()
    assert interpreter.resolve() == Path(sys.executable).resolve()
    assert (tmp_path / "tmp").stat().st_mode & 0o7777 == 0o1777


def recipe(root: Path, name: str, text: str) -> None:
    (root / name).mkdir(parents=True)
    (root / name / "Dockerfile").write_text(text)


def ensure(images: Images, name: str, base: str = "host") -> Image:
    return asyncio.run(images.ensure(name, base=base))


def test_an_unknown_image_is_told_which_one_was_meant(tmp_path: Path) -> None:
    recipe(tmp_path / "sandboxes", "pybugs", "FROM host\n")
    with contextlib.closing(Images([tmp_path / "sandboxes"], tmp_path / "cache")) as images:
        with pytest.raises(DefinitionError, match="no image 'pybug' .* did you mean 'pybugs'"):
            ensure(images, "pybug")
        with pytest.raises(DefinitionError, match="there are: pybugs"):
            ensure(images, "../sandboxes/pybugs")


def test_an_image_that_starts_from_elsewhere_is_refused_at_its_line(tmp_path: Path) -> None:
    recipe(tmp_path, "image", "# note\nFROM alpine\n")
    with (
        contextlib.closing(Images([tmp_path], tmp_path / "cache")) as images,
        pytest.raises(DefinitionError, match=r"Dockerfile:2: FROM alpine: images start from host"),
    ):
        ensure(images, "image")


def test_the_first_root_that_has_an_image_gives_it(tmp_path: Path) -> None:
    for root in ("one", "two"):
        recipe(tmp_path / root, "image", f"FROM host\nENV ROOT={root}\n")
    roots = [tmp_path / "none", tmp_path / "two", tmp_path / "one"]
    with contextlib.closing(Images(roots, tmp_path / "cache")) as images:
        assert ensure(images, "image").env["ROOT"] == "two"


def test_an_image_is_built_once_and_then_remembered(tmp_path: Path) -> None:
    recipe(tmp_path, "image", "ARG BASE\nFROM $BASE\nWORKDIR /opt/new\n")
    reports: list[str] = []
    with contextlib.closing(Images([tmp_path], tmp_path / "cache", report=reports.append)) as one:
        first = ensure(one, "image")
        (tmp_path / "image/Dockerfile").unlink()
        assert ensure(one, "image") is first
    recipe(tmp_path / "again", "image", "ARG BASE\nFROM $BASE\nWORKDIR /opt/new\n")
    with contextlib.closing(
        Images([tmp_path / "again"], tmp_path / "cache", report=reports.append)
    ) as other:
        assert ensure(other, "image") == first
    assert reports == ["image: FROM host", "image: WORKDIR /opt/new"]


def test_a_provider_that_does_not_exist_is_told_which_one_was_meant(tmp_path: Path) -> None:
    async def enter(name: str) -> None:
        async with open_provider(name, image_roots=(), cache=tmp_path):
            pass

    with pytest.raises(UsageError, match="did you mean 'docker'"):
        asyncio.run(enter("dokcer"))
    with pytest.raises(UsageError, match="there are: local, local:debian, docker"):
        asyncio.run(enter("subprocess"))


def test_a_machine_without_any_sandbox_is_told_both_reasons_and_ways_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/none.sock")
    cache = tmp_path / "file"
    cache.touch()

    async def enter() -> None:
        async with open_provider(None, image_roots=(), cache=cache):
            pass

    with pytest.raises(SandboxError) as caught:
        asyncio.run(enter())
    first, local, docker = str(caught.value).split("\n")
    assert first == "no sandbox can be made on this machine"
    assert local.startswith("  local: ")
    assert docker.startswith("  docker: no Docker Engine answers: ")
    assert "start it" in docker


def test_an_owner_is_gone_only_when_that_is_certain() -> None:
    script = "from gymsuite.sandbox.owner import this_process; print(this_process())"
    ended = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    ).stdout.strip()
    mine = this_process()
    world, pid, start = mine.rsplit("/", 2)
    assert is_gone(ended)
    assert not is_gone(mine)
    assert is_gone(f"{world}/{pid}/{int(start) - 1}"), "the id was used again"
    assert pid == str(os.getpid())
    assert not is_gone(f"another-boot/pid:[1]/{pid}/0"), "another world's ids mean nothing here"
    assert not is_gone("nonsense")
