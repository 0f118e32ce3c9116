"""What a sandbox can reach: nothing, or the hosts that its spec lists."""

import asyncio
import secrets
import socket
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import closing
from typing import Any, NamedTuple

import pytest

from gymsuite import Sandbox, SandboxSpec
from gymsuite.registry import Registry
from gymsuite.sandbox.egress.dialing import Dialer
from gymsuite.sandbox.provider import open_provider
from gymsuite.suite import default_cache

pytestmark = pytest.mark.parametrize(
    "name",
    [
        pytest.param("local", marks=pytest.mark.local),
        pytest.param("docker", marks=pytest.mark.docker),
    ],
)

GET = "python3 -c 'import sys, urllib.request as u; print(len(u.urlopen(sys.argv[1]).read()))' "
CONNECT = """python3 -c '
import socket, sys
family = socket.AF_UNIX if sys.argv[2] == "0" else socket.AF_INET
address = "\\0" + sys.argv[1] if family == socket.AF_UNIX else (sys.argv[1], int(sys.argv[2]))
print(socket.socket(family).connect(address))
' """

POST = """python3 -c '
import sys, urllib.request as u
print(len(u.urlopen(sys.argv[1], data=bytes(3000000)).read()))
' """
REFUSED = """python3 -c '
import socket
clients = [socket.create_connection(("127.0.0.1", 3128)) for _ in range(64)]
for client in clients: client.sendall(b"GET http://evil.example/ HTTP/1.1\\r\\n\\r\\n")
for client in clients:
    while client.recv(4096): pass
again = socket.create_connection(("127.0.0.1", 3128), timeout=30)
again.sendall(b"GET http://evil.example/ HTTP/1.1\\r\\n\\r\\n")
print(again.recv(12))
' """


class World(NamedTuple):
    """A sandbox, and what this machine listens on."""

    sandbox: Sandbox
    port: int
    abstract: str

    async def get(self, host: str) -> str:
        """What a client that knows of the proxy gets: a length, or its last words."""
        result = await self.sandbox.exec(GET + f"http://{host}:{self.port}/x", timeout=60)
        return result.output.strip().rpartition("\n")[2]

    async def connect(self, address: str, port: int) -> str:
        """What a client that knows nothing of it gets."""
        result = await self.sandbox.exec(CONNECT + f"{address} {port}", timeout=60)
        return result.output.strip().rpartition("\n")[2]


@pytest.fixture
def abstract() -> Iterator[str]:
    """A socket without a path, as some daemons listen on."""
    name = f"gymsuite-{secrets.token_hex(8)}"
    with closing(socket.socket(socket.AF_UNIX)) as listener:
        listener.bind(f"\0{name}")
        listener.listen()
        yield name


async def to_loopback(_: str) -> Sequence[str]:
    return ["127.0.0.1"]


def play(
    name: str,
    body: Callable[[World], Awaitable[Any]],
    abstract: str = "",
    *,
    listed: Sequence[str] = (),
    size: int = 100,
    budget: int = 64 << 20,
) -> Any:
    """Run a body in a sandbox that may reach the listed hosts, all of which are this one server."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await reader.readuntil(b"\r\n\r\n")
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % size + b"x" * size)
            await writer.drain()
        except (OSError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()

    async def run() -> Any:
        server = await asyncio.start_server(answer, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        spec = SandboxSpec(
            image="base", network=tuple(f"{host}:{port}" for host in listed), network_bytes=budget
        )
        async with (
            server,
            open_provider(
                name,
                image_roots=Registry.default().image_roots,
                cache=default_cache(),
                dialer=Dialer(to_loopback, may_reach=lambda _: True),
            ) as provider,
            provider.open(spec) as sandbox,
        ):
            return await body(World(sandbox, port, abstract))

    return asyncio.run(run())


async def nothing_by_itself(world: World) -> None:
    """Whatever is listed: without the proxy there is no way."""
    assert "refused" in await world.connect("127.0.0.1", world.port)
    assert "unreachable" in await world.connect("192.0.2.1", 80)
    assert "refused" in await world.connect(world.abstract, 0)
    resolving = "python3 -c 'import socket; socket.gethostbyname(\"example.org\")'"
    assert (await world.sandbox.exec(resolving, timeout=60)).exit_code != 0


def test_by_default_nothing_is_reachable(name: str, abstract: str) -> None:
    async def body(world: World) -> None:
        await nothing_by_itself(world)
        assert "refused" in await world.connect("127.0.0.1", 3128)
        assert "proxy" not in (await world.sandbox.exec("env", timeout=60)).output.lower()
        limits = world.sandbox.description["limits"]
        assert isinstance(limits, dict)
        assert limits["network"] == "none"

    play(name, body, abstract)


def test_what_is_listed_is_reached_and_all_else_is_not(name: str, abstract: str) -> None:
    async def body(world: World) -> None:
        assert await world.get("allowed.example") == "100"
        assert await world.get("a.b.below.example") == "100"
        assert "403" in await world.get("evil.example")
        assert "403" in await world.get("below.example")
        await nothing_by_itself(world)
        description = world.sandbox.description
        assert isinstance(description["limits"], dict)
        assert description["limits"]["network"] == [
            f"allowed.example:{world.port}",
            f"*.below.example:{world.port}",
        ]
        egress = description["egress"]
        assert isinstance(egress, dict)
        assert egress["requests"] == {"allowed": 2, "host": 2}
        assert egress["hosts"][f"evil.example:{world.port}"] == {"host": 1}
        assert egress["bytes_down"] > 200

    play(name, body, abstract, listed=["allowed.example", "*.below.example"])


def test_a_command_that_is_still_sending_hears_why_it_was_refused(name: str) -> None:
    async def body(world: World) -> None:
        url = f"http://evil.example:{world.port}/"
        assert "403" in (await world.sandbox.exec(POST + url, timeout=60)).output

    play(name, body, listed=["allowed.example"])


def test_connections_that_are_over_and_not_closed_keep_nobody_out(name: str) -> None:
    async def body(world: World) -> None:
        assert "403" in (await world.sandbox.exec(REFUSED, timeout=60)).output

    play(name, body, listed=["allowed.example"])


def test_the_budget_ends_what_goes_on_and_what_comes_after(name: str) -> None:
    async def body(world: World) -> None:
        assert "IncompleteRead" in await world.get("allowed.example")
        assert "403" in await world.get("allowed.example")
        egress = world.sandbox.description["egress"]
        assert isinstance(egress, dict)
        assert egress["bytes_up"] + egress["bytes_down"] == 50_000

    play(name, body, listed=["allowed.example"], size=1_000_000, budget=50_000)


def test_the_way_out_comes_back_after_what_ends_all_processes(name: str) -> None:
    async def body(world: World) -> None:
        await world.sandbox.changes("/workspace")
        assert await world.get("allowed.example") == "100"
        await world.sandbox.snapshot()
        assert await world.get("allowed.example") == "100"

    play(name, body, listed=["allowed.example"])


def test_an_agent_that_ends_the_way_out_has_none(name: str) -> None:
    async def body(world: World) -> None:
        kill = (
            'for p in /proc/[0-9]*; do grep -q "[f]orward" $p/cmdline && kill -9 ${p#/proc/}; done'
        )
        await world.sandbox.exec(kill, timeout=60)
        assert "refused" in await world.get("allowed.example")
        assert (await world.sandbox.exec("echo on", timeout=60)).output == "on\n"

    play(name, body, listed=["allowed.example"])
