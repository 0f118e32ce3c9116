"""What only the docker provider promises, against a real Engine."""

import asyncio
import contextlib
import os
import secrets
import signal
import socket
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any, Self

import pytest
from docker.client import DockerClient

from gymsuite import Sandbox, SandboxSpec
from gymsuite.errors import SandboxError
from gymsuite.sandbox import docker as engine_door
from gymsuite.sandbox.accounts import ROOT
from gymsuite.sandbox.connecting import connect
from gymsuite.sandbox.container import DockerSandbox, open_docker
from gymsuite.sandbox.dockerhost import tag_of
from gymsuite.sandbox.engine import Wish
from gymsuite.sandbox.fleet import Fleet
from gymsuite.sandbox.image import Image
from gymsuite.sandbox.images import Images
from gymsuite.sandbox.owner import this_process
from gymsuite.sandbox.provider import open_provider
from gymsuite.sandbox.reaper import OWNER_LABEL, labels, reap
from gymsuite.sandbox.store import Store
from gymsuite.suite import default_cache

from .conftest import Provider

pytestmark = pytest.mark.docker

SPEC = SandboxSpec(image="fixture")
PATIENCE = 60.0
OWNER = """
import asyncio, sys
from pathlib import Path
from gymsuite.sandbox.provider import open_provider
from gymsuite.suite import default_cache
from gymsuite.types import SandboxSpec

async def main():
    roots = [Path(root) for root in sys.argv[1:]]
    async with open_provider("docker", image_roots=roots, cache=default_cache()) as provider:
        async with provider.open(SandboxSpec(image="fixture")) as sandbox:
            print(sandbox.name, flush=True)
            await asyncio.sleep(600)

asyncio.run(main())
"""


@pytest.fixture
def image(docker_roots: tuple[Path, ...]) -> Image:
    with contextlib.closing(Images(docker_roots, default_cache())) as images:
        return asyncio.run(images.ensure("fixture", base="debian"))


def mine(client: DockerClient) -> list[str]:
    """The containers that this process owns."""
    owner = f"{OWNER_LABEL}={this_process()}"
    found = client.api.containers(all=True, filters={"label": owner})
    return [str(container["Names"]) for container in found]


def is_there(client: DockerClient, name: str) -> bool:
    return bool(client.api.containers(all=True, filters={"name": name}))


@contextlib.asynccontextmanager
async def a_fleet() -> AsyncIterator[Fleet]:
    async with Fleet.connect(Store(default_cache(), None), lambda _: None) as fleet:
        yield fleet


def test_a_container_has_no_network_no_capability_and_the_exec_server_as_its_first_process(
    docker: Provider,
) -> None:
    async def main() -> list[str]:
        async with docker.open(SPEC) as sandbox:
            return [
                (await sandbox.exec(command, timeout=PATIENCE)).stdout.decode()
                for command in (
                    "cat /proc/1/cmdline | tr '\\0' ' '",
                    "grep -E '^(Cap|NoNewPrivs|Seccomp:)' /proc/self/status | sort",
                    "ls /sys/class/net",
                    "env | sort",
                )
            ]

    first, status, interfaces, environment = asyncio.run(main())
    assert first.startswith("/dev/.exec join /dev/.channel serve 0 --memory ")
    none = "\t0000000000000000\n"
    capabilities = "".join(f"Cap{kind}:{none}" for kind in ("Amb", "Bnd", "Eff", "Inh", "Prm"))
    assert status == f"{capabilities}NoNewPrivs:\t1\nSeccomp:\t2\n"
    assert interfaces == "lo\n"
    assert {line.partition("=")[0] for line in environment.splitlines()} <= {
        "HOME",
        "LANG",
        "PATH",
        "PWD",
    }


def test_limits_are_those_of_the_spec_and_are_enforced(
    docker: Provider, client: DockerClient
) -> None:
    spec = SPEC.model_copy(update={"memory_bytes": 64 << 20, "pids": 20, "cpus": 0.5})

    async def main() -> Any:
        async with docker.open(spec) as sandbox:
            assert isinstance(sandbox, DockerSandbox)
            wished = client.api.inspect_container(sandbox.name)["HostConfig"]
            hungry = await sandbox.exec(["python3", "-c", "bytearray(1 << 29)"], timeout=PATIENCE)
            script = "for i in $(seq 50); do sleep 0.5 & done; wait"
            many = await sandbox.exec(script, timeout=PATIENCE)
            await asyncio.sleep(1)
            alive = await sandbox.exec("echo alive", timeout=PATIENCE)
            return wished, hungry, many, alive, sandbox.description["limits"]

    wished, hungry, many, alive, limits = asyncio.run(main())
    assert (wished["Memory"], wished["MemorySwap"]) == (64 << 20, 64 << 20)
    assert (wished["PidsLimit"], wished["NanoCpus"]) == (20, 500_000_000)
    assert wished["CapDrop"] == ["ALL"]
    assert set(wished["CapAdd"]) <= {"SETUID", "SETGID", "SETPCAP", "KILL"}
    assert wished["SecurityOpt"] == ["no-new-privileges"]
    assert (wished["NetworkMode"], wished["IpcMode"]) == ("none", "private")
    assert (wished["ReadonlyRootfs"], wished["Init"], wished["Privileged"]) == (True, False, False)
    assert wished["LogConfig"]["Type"] == "none"
    assert "/proc/kcore" in wished["MaskedPaths"]
    (server,) = (one for one in wished["Mounts"] if one["Target"] == "/dev/.exec")
    assert Path(server["Source"]).is_relative_to(default_cache() / "live"), "others replace theirs"
    assert limits == {
        "network": "none",
        "pids": 20,
        "memory_bytes": 64 << 20,
        "cpus": 0.5,
        "disk_bytes": 32 << 20,
        "inodes": 100_000,
    }
    assert (hungry.exit_code, hungry.oom) == (128 + signal.SIGKILL, True)
    assert b"fork" in many.stderr
    assert many.pids
    assert alive.output == "alive\n"


def test_a_container_is_gone_after_its_block_an_error_and_a_cancellation(
    docker: Provider, client: DockerClient
) -> None:
    async def hold(opened: "asyncio.Future[str]", end: Callable[[], Awaitable[None]]) -> None:
        async with docker.open(SPEC) as sandbox:
            assert isinstance(sandbox, DockerSandbox)
            opened.set_result(sandbox.name)
            await end()

    async def run(end: Callable[[], Awaitable[None]], *, cancel: bool = False) -> str:
        opened = asyncio.get_running_loop().create_future()
        task = asyncio.create_task(hold(opened, end))
        name: str = await opened
        if cancel:
            task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        return name

    async def nothing() -> None:
        pass

    async def fail() -> None:
        raise ValueError

    async def wait() -> None:
        await asyncio.sleep(600)

    for end, cancel in ((nothing, False), (fail, False), (wait, True)):
        name = asyncio.run(run(end, cancel=cancel))
        assert not is_there(client, name)


def test_a_cancellation_at_any_moment_of_the_start_leaves_no_container(
    docker: Provider, client: DockerClient
) -> None:
    async def main(delay: float) -> None:
        async def hold() -> None:
            async with docker.open(SPEC):
                await asyncio.sleep(600)

        task = asyncio.create_task(hold())
        await asyncio.sleep(delay)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    for step in range(10):
        asyncio.run(main(step * 0.06))
        assert mine(client) == []


def test_a_container_ends_with_its_owner(
    docker_roots: tuple[Path, ...], client: DockerClient
) -> None:
    owner = subprocess.Popen(
        [sys.executable, "-c", OWNER, *docker_roots], stdout=subprocess.PIPE, text=True
    )
    assert owner.stdout is not None
    name = owner.stdout.readline().strip()
    assert is_there(client, name)
    owner.send_signal(signal.SIGKILL)
    owner.communicate()
    wait_until(lambda: not is_there(client, name))


def wait_until(is_so: Callable[[], bool]) -> None:
    async def poll() -> None:
        async with asyncio.timeout(PATIENCE):
            while not is_so():  # noqa: ASYNC110 - it is in another world
                await asyncio.sleep(0.05)

    asyncio.run(poll())


def test_the_reaper_removes_a_dead_owners_container_and_spares_a_living_ones(
    client: DockerClient, image: Image
) -> None:
    script = "from gymsuite.sandbox.owner import this_process; print(this_process())"
    dead = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    ).stdout.strip()
    names = {
        owner: str(
            client.containers.run(
                tag_of(image),
                ["sleep", "600"],
                detach=True,
                network_mode="none",
                labels={OWNER_LABEL: owner},
            ).name
        )
        for owner in (dead, this_process())
    }

    async def main() -> list[str]:
        async with engine_door.connect() as engine:
            return await reap(engine, default_cache())

    try:
        reaped = asyncio.run(main())
        # Another process of this machine may have come first.
        assert names[this_process()] not in reaped
        assert not is_there(client, names[dead])
        assert is_there(client, names[this_process()])
    finally:
        for name in names.values():
            if is_there(client, name):
                client.api.remove_container(name, force=True)


@pytest.fixture
def tiny(tmp_path: Path) -> Image:
    """An image that is imported in no time; it has no command to run."""
    workspace = tmp_path / "layer/workspace"
    workspace.mkdir(parents=True)
    (workspace / "plain.txt").write_text("plain\n")
    digest = secrets.token_hex(32)
    return Image(name="tiny", digest=digest, base="debian", layers=(tmp_path / "layer",))


def test_an_image_that_somebody_removed_in_mid_run_is_imported_again(
    tiny: Image, client: DockerClient
) -> None:
    async def main() -> bytes | None:
        async with a_fleet() as fleet:
            await fleet.host.ensure(tiny)
            client.images.remove(tag_of(tiny))
            await fleet.host.ensure(tiny)
            async with open_docker(fleet, tiny, SPEC) as sandbox:
                return await sandbox.read("plain.txt")

    try:
        assert asyncio.run(main()) == b"plain\n"
    finally:
        client.images.remove(tag_of(tiny))


@pytest.mark.parametrize("address", ["unix://{tmp_path}/none.sock", "tcp://127.0.0.1:9"])
def test_a_dead_daemon_is_a_sandbox_error_that_names_the_fix(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, address: str
) -> None:
    monkeypatch.setenv("DOCKER_HOST", address.format(tmp_path=tmp_path))

    async def main() -> None:
        async with open_provider("docker", image_roots=(), cache=tmp_path):
            pass

    with pytest.raises(SandboxError, match="no Docker Engine answers: .* start it"):
        asyncio.run(main())


def test_an_engine_of_another_machine_is_refused_by_name(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("DOCKER_HOST", "tcp://engine.example.org:2375")

    async def main() -> None:
        async with open_provider("docker", image_roots=(), cache=tmp_path):
            pass

    with pytest.raises(SandboxError, match=r"engine\.example\.org:2375 is not on this machine"):
        asyncio.run(main())


class Nobody:
    """A place that no exec server can come to."""

    def __init__(self, path: Path) -> None:
        self.path = path
        path.touch()

    async def accept(self) -> int:
        await asyncio.sleep(600)
        return 0

    def take(self) -> socket.socket:
        raise AssertionError

    def close(self) -> None:
        pass


def test_where_no_socket_of_ours_can_be_reached_docker_relays(tiny: Image, tmp_path: Path) -> None:
    async def main() -> bytes | None:
        async with a_fleet() as fleet:
            await fleet.host.ensure(tiny)
            wish = Wish(
                name=f"gymsuite-relayed-{tiny.digest[:16]}",
                image=tag_of(tiny),
                server=fleet.host.server,
                channel=Path(),
                labels=labels(60),
                runtime="",
                account=ROOT,
                memory_bytes=64 << 20,
                cpus=1,
                pids=10,
                places=(),
            )
            try:
                _, channel = await connect(fleet.host.engine, wish, Nobody(tmp_path / "plain"))
                try:
                    return await channel.read("/workspace/plain.txt")
                finally:
                    await channel.close()
            finally:
                await fleet.host.engine.remove(wish.name)
                await fleet.host.engine.remove_image(tag_of(tiny))

    assert asyncio.run(main()) == b"plain\n"


def test_a_sandbox_goes_on_without_the_daemon_and_is_gone_at_its_end(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, docker: Provider, client: DockerClient
) -> None:
    path = tmp_path / "proxy.sock"
    real = client.api.base_url
    assert real.startswith("http+docker://"), "the proxy speaks to a unix socket"
    address = os.environ.get("DOCKER_HOST", "unix:///var/run/docker.sock")
    monkeypatch.setenv("DOCKER_HOST", f"unix://{path}")

    async def main() -> str:
        behind = address.removeprefix("unix://")
        async with Proxy(path, behind) as proxy, docker.open(SPEC) as sandbox:
            assert isinstance(sandbox, DockerSandbox)
            command = asyncio.create_task(sandbox.exec("sleep 0.2; echo on", timeout=PATIENCE))
            await sandbox.exec("true", timeout=PATIENCE)
            proxy.cut()
            assert (await command).output == "on\n"
            return sandbox.name

    name = asyncio.run(main())
    wait_until(lambda: not is_there(client, name))


class Proxy:
    """A unix socket in front of the Engine's, whose connections can all be cut."""

    def __init__(self, path: Path, behind: str) -> None:
        self._path = path
        self._behind = behind
        self._open: list[asyncio.StreamWriter] = []
        self._tasks: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_unix_server(self._serve, self._path)
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()
        self.cut()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def cut(self) -> None:
        self._server.close()
        for writer in self._open:
            writer.transport.abort()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        back_reader, back_writer = await asyncio.open_unix_connection(self._behind)
        self._open += [writer, back_writer]
        for source, sink in ((reader, back_writer), (back_reader, writer)):
            task = asyncio.create_task(self._pump(source, sink))
            self._tasks.add(task)

    async def _pump(self, source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError):
            while data := await source.read(1 << 16):
                sink.write(data)
                await sink.drain()
            if sink.can_write_eof():
                sink.write_eof()


@pytest.mark.slow
def test_processes_that_need_an_image_at_once_import_it_once(
    tmp_path: Path, client: DockerClient
) -> None:
    (tmp_path / "sandboxes/once").mkdir(parents=True)
    (tmp_path / "sandboxes/once/Dockerfile").write_text("FROM debian\nCOPY unique /opt/\n")
    (tmp_path / "sandboxes/once/unique").write_text("in no other image")
    script = (
        "import asyncio, sys\n"
        "from pathlib import Path\n"
        "from gymsuite.sandbox.dockerhost import tag_of\n"
        "from gymsuite.sandbox.provider import open_provider\n"
        "from gymsuite.suite import default_cache\n"
        "async def main():\n"
        "    async with open_provider('docker', image_roots=[Path(sys.argv[1])],\n"
        "                             cache=default_cache(), report=print) as provider:\n"
        "        print('tag', tag_of(await provider.ensure('once')))\n"
        "asyncio.run(main())\n"
    )
    both = [
        subprocess.Popen(
            [sys.executable, "-c", script, tmp_path / "sandboxes"],
            stdout=subprocess.PIPE,
            text=True,
        )
        for _ in range(2)
    ]
    lines = [line for process in both for line in process.communicate()[0].splitlines()]
    tags = {line.removeprefix("tag ") for line in lines if line.startswith("tag ")}
    try:
        assert len(tags) == 1
        assert lines.count("once: importing into Docker") == 1
    finally:
        for tag in tags:
            client.images.remove(tag)


def test_a_workdir_that_the_image_has_not_is_made(docker: Provider) -> None:
    async def main() -> str:
        spec = SandboxSpec(image="fixture", workdir="/srv/new/place")
        async with docker.open(spec) as sandbox:
            return (await sandbox.exec("pwd", timeout=PATIENCE)).output

    assert asyncio.run(main()) == "/srv/new/place\n"


def test_sandboxes_started_together_are_all_there(
    docker_roots: tuple[Path, ...], client: DockerClient
) -> None:
    async def one(sandbox: Sandbox, number: int) -> str:
        return (await sandbox.exec(f"echo {number}", timeout=PATIENCE)).output

    async def main() -> list[str]:
        opening = open_provider("docker", image_roots=docker_roots, cache=default_cache())
        async with opening as provider:

            async def run(number: int) -> str:
                async with provider.open(SPEC) as sandbox:
                    return await one(sandbox, number)

            return await asyncio.gather(*map(run, range(12)))

    assert asyncio.run(main()) == [f"{number}\n" for number in range(12)]
    assert mine(client) == []
