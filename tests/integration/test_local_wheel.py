"""What is shipped: a wheel with one platform's exec server, also when made from the sdist."""

import platform
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

from gymsuite.sandbox import binary

ROOT = Path(__file__).parents[2]
BINARY = f"gymsuite/sandbox/bin/exec-server-{platform.machine()}"

pytestmark = pytest.mark.local


def hatchling(source: Path, target: str, into: Path) -> Path:
    command = [sys.executable, "-m", "hatchling", "build", "-t", target, "-d", str(into)]
    subprocess.run(command, cwd=source, check=True, capture_output=True)
    (built,) = into.iterdir()
    return built


def test_a_wheel_brings_the_exec_server_and_says_for_which_platform(tmp_path: Path) -> None:
    wheel = hatchling(ROOT, "wheel", tmp_path)
    assert wheel.name.endswith(f"-py3-none-linux_{platform.machine()}.whl")
    with zipfile.ZipFile(wheel) as archive:
        entry = archive.getinfo(BINARY)
        names = archive.namelist()
    assert entry.external_attr >> 16 & 0o111 == 0o111, "pip keeps the execute bits"
    assert "gymsuite/_suite/registry.yaml" in names
    assert not [name for name in names if name.endswith((".c", ".h"))]


def test_the_source_distribution_builds_the_same_wheel(tmp_path: Path) -> None:
    source = hatchling(ROOT, "sdist", tmp_path / "sdist")
    with tarfile.open(source) as archive:
        archive.extractall(tmp_path / "unpacked", filter="data")
    (unpacked,) = (tmp_path / "unpacked").iterdir()
    assert not (unpacked / BINARY).exists(), "an sdist is for every platform"
    direct = hatchling(ROOT, "wheel", tmp_path / "direct")
    again = hatchling(unpacked, "wheel", tmp_path / "again")
    assert direct.name == again.name
    with zipfile.ZipFile(direct) as one, zipfile.ZipFile(again) as other:
        assert {i.filename: i.CRC for i in one.infolist()} == {
            i.filename: i.CRC for i in other.infolist()
        }


def test_without_a_compiler_the_error_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CC", "no-such-compiler")
    with pytest.raises(binary.BuildError, match=r"'no-such-compiler'.*apt-get install gcc"):
        binary.build(tmp_path)


def test_without_a_static_library_the_error_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    compiler = tmp_path / "cc"
    compiler.write_text("#!/bin/sh\necho 'cannot find -lc' >&2; exit 1\n")
    compiler.chmod(0o755)
    monkeypatch.setenv("CC", str(compiler))
    with pytest.raises(binary.BuildError, match=r"(?s)libc6-dev.*cannot find -lc"):
        binary.build(tmp_path / "bin")
    assert not list((tmp_path / "bin").glob("exec-server*"))


def test_a_missing_binary_names_the_way_to_get_it() -> None:
    with pytest.raises(FileNotFoundError, match="pip install -e"):
        binary.exec_server("pdp11")
