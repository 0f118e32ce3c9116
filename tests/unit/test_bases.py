"""Images by name, and the two bases as far as they need no sandbox and no root."""

import asyncio
import contextlib
import os
import subprocess
import sys
from pathlib import Path

import pytest

from gymsuite.errors import DefinitionError, SandboxError, UsageError
from gymsuite.sandbox.debian import Source, find_source, python_version, unknown_release
from gymsuite.sandbox.host import host_base
from gymsuite.sandbox.image import Image
from gymsuite.sandbox.images import Images
from gymsuite.sandbox.layers import lookup
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


def test_packages_are_hidden_under_every_name_of_the_interpreter(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    prefix = Path(sys.base_prefix).resolve()
    link = tmp_path / "python"
    link.symlink_to(prefix)
    monkeypatch.setattr(sys, "base_prefix", str(link))
    base = host_base()
    assert link in base.binds
    below = {path.relative_to(prefix) for path in base.hides if path.is_relative_to(prefix)}
    under_link = {path.relative_to(link) for path in base.hides if path.is_relative_to(link)}
    packages = {path for path in below if "python3" in path.parent.name}
    assert packages
    assert packages <= under_link


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


def test_a_release_that_debootstrap_does_not_know_is_told_which_was_meant(tmp_path: Path) -> None:
    assert unknown_release("bokworm", tmp_path) == "", "without debootstrap nobody knows"
    for name in ("bookworm", "trixie"):
        (tmp_path / name).touch()
    assert unknown_release("trixie", tmp_path) == ""
    assert "did you mean 'bookworm'?" in unknown_release("bokworm", tmp_path)
    assert "it knows 'bookworm'" in unknown_release("x", tmp_path)


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


def test_an_image_is_no_suggestion_for_itself(tmp_path: Path) -> None:
    recipe(tmp_path, "PyBugs", "FROM host\n")
    (tmp_path / "folder/Dockerfile").mkdir(parents=True)
    with contextlib.closing(Images([tmp_path], tmp_path / "cache")) as images:
        with pytest.raises(DefinitionError, match="'PyBugs' is no name .* lower case.* none"):
            ensure(images, "PyBugs")
        with pytest.raises(DefinitionError, match="no image 'folder' .* there are: none"):
            ensure(images, "folder")


def test_an_image_that_starts_from_elsewhere_is_refused_at_its_line(tmp_path: Path) -> None:
    recipe(tmp_path, "image", "# note\nFROM alpine\n")
    with (
        contextlib.closing(Images([tmp_path], tmp_path / "cache")) as images,
        pytest.raises(DefinitionError, match=r"Dockerfile:2: FROM alpine: images start from host"),
    ):
        ensure(images, "image")


def test_an_image_of_two_roots_has_to_be_the_same_in_both(tmp_path: Path) -> None:
    for root in ("one", "two"):
        recipe(tmp_path / root, "image", "FROM host\nCOPY file /opt/\n")
        (tmp_path / root / "image/file").write_text("alike")
    roots = [tmp_path / "none", tmp_path / "two", tmp_path / "one"]
    with contextlib.closing(Images(roots, tmp_path / "cache")) as images:
        assert ensure(images, "image").name == "image"
    (tmp_path / "one/image/file").write_text("other")
    with (
        contextlib.closing(Images(roots, tmp_path / "cache")) as images,
        pytest.raises(DefinitionError, match="in two folders, and they differ: .*two.* one of"),
    ):
        ensure(images, "image")


def test_an_image_starts_from_another_and_has_its_files_and_settings(tmp_path: Path) -> None:
    recipe(tmp_path, "low", "ARG BASE\nFROM $BASE\nENV A=low\nUSER 7\nWORKDIR /opt/low\n")
    recipe(tmp_path, "high", "FROM low\nENV B=${A}er\nCOPY Dockerfile here\n")
    with contextlib.closing(Images([tmp_path], tmp_path / "cache")) as images:
        high, low = ensure(images, "high"), ensure(images, "low")
    assert high.layers[:-1] == low.layers
    assert (high.env["A"], high.env["B"], high.user, high.base) == ("low", "lower", "7", "host")
    assert lookup(high.layers, "/opt/low/here") is not None
    assert high.digest != low.digest


def test_images_that_start_from_each_other_are_named_as_a_circle(tmp_path: Path) -> None:
    for name, base in (("one", "two"), ("two", "three"), ("three", "two")):
        recipe(tmp_path, name, f"FROM {base}\n")
    with (
        contextlib.closing(Images([tmp_path], tmp_path / "cache")) as images,
        pytest.raises(DefinitionError) as caught,
    ):
        ensure(images, "one")
    assert str(caught.value) == (
        f"{tmp_path}/three/Dockerfile:1: FROM two: these images start from each other:"
        " two -> three -> two"
    )


def test_a_mistake_in_a_base_of_ours_is_shown_where_it_is(tmp_path: Path) -> None:
    recipe(tmp_path, "low", "FROM host\nEXPOSE 80\n")
    recipe(tmp_path, "high", "FROM low\n")
    with (
        contextlib.closing(Images([tmp_path], tmp_path / "cache")) as images,
        pytest.raises(DefinitionError, match=r"^\S*/low/Dockerfile:2: EXPOSE"),
    ):
        ensure(images, "high")


def test_a_build_argument_that_no_arg_declares_is_a_mistake_of_usage(tmp_path: Path) -> None:
    recipe(tmp_path, "image", "FROM host\nARG A=1\nENV B=$A\n")
    with contextlib.closing(Images([tmp_path], tmp_path / "cache")) as images:
        given = asyncio.run(images.ensure("image", base="host", arguments={"A": "2"}))
        assert (given.env["B"], ensure(images, "image").env["B"]) == ("2", "1")
        with pytest.raises(UsageError, match="has no ARG C; there are: A"):
            asyncio.run(images.ensure("image", base="host", arguments={"C": "2"}))


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

    for wrong in ("dokcer", "docker:"):
        with pytest.raises(UsageError, match="did you mean 'docker'"):
            asyncio.run(enter(wrong))
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
