"""What a daemon that dies, is started again, hangs or has no disk left does to sandboxes.

All of it happens to a daemon of the tests' own, so only root on a machine with dockerd runs them.
"""

import asyncio
import contextlib
import os
import secrets
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from gymsuite import Sandbox, SandboxSpec
from gymsuite.errors import SandboxDead, SandboxError
from gymsuite.sandbox import docker as engine_door
from gymsuite.sandbox.container import open_docker
from gymsuite.sandbox.fleet import Fleet
from gymsuite.sandbox.image import Image
from gymsuite.sandbox.reaper import OWNER_LABEL
from gymsuite.sandbox.store import Store

pytestmark = [
    pytest.mark.docker,
    pytest.mark.skipif(
        os.geteuid() != 0 or not shutil.which("dockerd"), reason="needs root and dockerd"
    ),
]

PATIENCE = 60.0
SPEC = SandboxSpec(image="tiny", memory_bytes=128 << 20)


class Daemon:
    """A dockerd with all its files in one directory."""

    def __init__(self, home: Path, data: Path) -> None:
        self.socket = home / "docker.sock"
        self._arguments = [
            "dockerd",
            f"--data-root={data}",
            f"--exec-root={home / 'exec'}",
            f"--pidfile={home / 'pid'}",
            f"--host=unix://{self.socket}",
            "--bridge=none",
            "--iptables=false",
            "--ip6tables=false",
        ]
        self._log = (home / "log").open("wb")
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        self._process = subprocess.Popen(
            self._arguments, stdout=self._log, stderr=self._log, start_new_session=True
        )
        end = time.monotonic() + PATIENCE
        while not self._answers():
            assert self._process.poll() is None, Path(self._log.name).read_text()[-2000:]
            assert time.monotonic() < end, "dockerd does not answer"
            time.sleep(0.1)

    def send(self, number: signal.Signals) -> None:
        assert self._process is not None
        self._process.send_signal(number)

    def end(self, number: signal.Signals) -> None:
        if self._process is not None:
            self.send(number)
            self._process.wait(PATIENCE)
            self._process = None

    def close(self) -> None:
        self.end(signal.SIGTERM)
        self._log.close()

    def _answers(self) -> bool:
        with socket.socket(socket.AF_UNIX) as door, contextlib.suppress(OSError):
            door.settimeout(1)
            door.connect(str(self.socket))
            door.sendall(b"GET /_ping HTTP/1.0\r\nHost: docker\r\n\r\n")
            return b" 200 " in door.recv(64)
        return False


@pytest.fixture
def home() -> Iterator[Path]:
    # In a short place: the daemon makes sockets below it.
    path = Path(tempfile.mkdtemp(prefix="gd-"))
    yield path
    shutil.rmtree(path, ignore_errors=True)


@pytest.fixture
def daemon(home: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Daemon]:
    with contextlib.closing(Daemon(home, home / "data")) as daemon:
        daemon.start()
        monkeypatch.setenv("DOCKER_HOST", f"unix://{daemon.socket}")
        yield daemon


def image_of(folder: Path, size: int) -> Image:
    """An image with one file; it has no command to run."""
    workspace = folder / "workspace"
    workspace.mkdir(parents=True)
    (workspace / "file").write_bytes(b"x")
    (folder / "ballast").write_bytes(secrets.token_bytes(size))
    digest = secrets.token_hex(32)
    return Image(name="tiny", digest=digest, base="debian", layers=(folder,))


@contextlib.asynccontextmanager
async def a_fleet(cache: Path, image: Image) -> AsyncIterator[Fleet]:
    async with Fleet.connect(Store(cache, None), lambda _: None) as fleet:
        await fleet.host.ensure(image)
        yield fleet


async def read_on(sandbox: Sandbox) -> None:
    """Use a sandbox for a while, or until that raises."""
    for _ in range(int(PATIENCE / 0.1)):
        await sandbox.read("file")
        await asyncio.sleep(0.1)


def test_a_daemon_that_is_started_again_is_a_dead_sandbox_and_the_next_one_works(
    daemon: Daemon, tmp_path: Path
) -> None:
    image = image_of(tmp_path / "layer", 10)

    async def main() -> None:
        async with a_fleet(tmp_path, image) as fleet:
            async with open_docker(fleet, image, SPEC) as sandbox:
                await asyncio.to_thread(daemon.end, signal.SIGTERM)
                with pytest.raises(SandboxError, match="Docker"):
                    async with open_docker(fleet, image, SPEC):
                        pass
                await asyncio.to_thread(daemon.start)
                with pytest.raises(SandboxDead, match="is gone"):
                    await read_on(sandbox)
            async with open_docker(fleet, image, SPEC) as sandbox:
                assert await sandbox.read("file") == b"x"
        async with engine_door.connect() as engine:
            assert await engine.containers(OWNER_LABEL) == []

    asyncio.run(main())


def test_a_daemon_that_hangs_is_an_error_in_time(daemon: Daemon) -> None:
    async def main() -> None:
        async with engine_door.connect(within=1.0) as engine:
            daemon.send(signal.SIGSTOP)
            try:
                with pytest.raises(SandboxError, match="did not list containers in 1 seconds"):
                    await engine.containers(OWNER_LABEL)
            finally:
                daemon.send(signal.SIGCONT)

    asyncio.run(main())


def test_an_engine_without_disk_is_a_sandbox_error(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    image = image_of(tmp_path / "layer", 40 << 20)
    data = home / "data"
    data.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=30m", "tmpfs", data], check=True)
    try:
        with contextlib.closing(Daemon(home, data)) as daemon:
            daemon.start()
            monkeypatch.setenv("DOCKER_HOST", f"unix://{daemon.socket}")

            async def main() -> None:
                async with a_fleet(tmp_path, image):
                    pass

            with pytest.raises(SandboxError, match="no space left on device|disk full"):
                asyncio.run(main())
    finally:
        subprocess.run(["umount", data], check=True)
