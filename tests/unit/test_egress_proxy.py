import asyncio
import os
import resource
import socket
import struct
import threading
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from gymsuite.errors import SandboxError
from gymsuite.sandbox.egress.dialing import Dialer
from gymsuite.sandbox.egress.log import Log
from gymsuite.sandbox.egress.policy import Policy
from gymsuite.sandbox.egress.proxy import open_proxy

from .test_egress_parsing import client_hello

PAGE = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"


class Server:
    """A server on loopback that keeps what it was sent, and answers each connection once."""

    def __init__(self, answer: bytes = PAGE, *, speaks_first: bool = False) -> None:
        self.answer = answer
        self.speaks_first = speaks_first
        self.heard: list[bytes] = []
        self.port = 0

    @asynccontextmanager
    async def open(self) -> AsyncIterator["Server"]:
        server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.port = server.sockets[0].getsockname()[1]
        async with server:
            yield self

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.heard.append(b"")
        try:
            if self.speaks_first:
                writer.write(self.answer)
            while data := await reader.read(1 << 16):
                self.heard[-1] += data
                if not self.speaks_first:
                    writer.write(self.answer)
                    await writer.drain()
                    break
            await asyncio.sleep(0.05)
        except OSError:
            pass
        finally:
            writer.close()


async def to_loopback(_: str) -> Sequence[str]:
    return ["127.0.0.1"]


LOOPBACK = Dialer(to_loopback, may_reach=lambda _: True)


class Way:
    """A proxy of a sandbox and a server behind it."""

    def __init__(self, path: Path, log: Log, server: Server) -> None:
        self.path = path
        self.log = log
        self.server = server

    async def ask(self, *pieces: bytes, half_close: bool = False) -> bytes:
        """Send to the proxy, and return all that comes back."""
        reader, writer = await asyncio.open_unix_connection(self.path)
        try:
            for piece in pieces:
                writer.write(piece)
                await writer.drain()
                await asyncio.sleep(0.01)
            if half_close:
                writer.write_eof()
            return await asyncio.wait_for(reader.read(), 20)
        except ConnectionError:
            return b""
        finally:
            writer.close()

    def verdicts(self) -> list[str]:
        return [entry.verdict for entry in self.log.entries]


def through(
    tmp_path: Path,
    body: Callable[[Way], Awaitable[Any]],
    *,
    server: Server | None = None,
    budget: int = 1 << 20,
    dialer: Dialer = LOOPBACK,
    rules: Sequence[str] = (),
) -> Any:
    """Run a body over a proxy that may reach allowed.example on the server's port."""

    async def run() -> Any:
        async with (server or Server()).open() as behind:
            policy = Policy.parse(rules or (f"allowed.example:{behind.port}",))
            path = tmp_path / "socket"
            async with open_proxy(path, policy, budget_bytes=budget, dialer=dialer) as log:
                return await body(Way(path, log, behind))

    return asyncio.run(run())


def get(way: Way, host: str = "allowed.example", *headers: str) -> bytes:
    lines = (f"GET http://{host}:{way.server.port}/x HTTP/1.1", f"Host: {host}:{way.server.port}")
    return "\r\n".join((*lines, *headers, "", "")).encode()


def connect(way: Way, host: str = "allowed.example") -> bytes:
    return f"CONNECT {host}:{way.server.port} HTTP/1.1\r\n\r\n".encode()


def test_an_allowed_host_is_reached_and_noted(tmp_path: Path) -> None:
    async def body(way: Way) -> None:
        assert await way.ask(get(way)) == PAGE
        (heard,) = way.server.heard
        assert heard.startswith(b"GET /x HTTP/1.1\r\nHost: allowed.example:")
        await asyncio.sleep(0.05)
        (entry,) = way.log.entries
        assert (entry.method, entry.verdict) == ("GET", "allowed")
        assert str(entry.endpoint) == f"allowed.example:{way.server.port}"
        assert entry.bytes_up == len("allowed.example") + len(heard)
        assert entry.bytes_down == len(PAGE)
        assert way.log.summary()["bytes_down"] == len(PAGE)

    through(tmp_path, body)


def test_any_other_host_is_refused_and_noted(tmp_path: Path) -> None:
    async def body(way: Way) -> None:
        for request in (get(way, "evil.example"), connect(way, "127.0.0.1")):
            answer = await way.ask(request)
            assert answer.startswith(b"HTTP/1.1 403 ")
            assert b"not among the hosts" in answer
        assert (await way.ask(b"nonsense\r\n\r\n")).startswith(b"HTTP/1.1 400 ")
        assert way.server.heard == []
        assert way.verdicts() == ["host", "host", "request"]
        hosts = way.log.summary()["hosts"]
        assert hosts == {
            f"evil.example:{way.server.port}": {"host": 1},
            f"127.0.0.1:{way.server.port}": {"host": 1},
        }

    through(tmp_path, body)


def test_a_client_that_is_still_sending_hears_why_it_was_refused(tmp_path: Path) -> None:
    async def body(way: Way) -> None:
        request = get(way, "evil.example", "Content-Length: 3000000").replace(b"GET", b"POST", 1)
        assert (await way.ask(request, b"x" * 3_000_000)).startswith(b"HTTP/1.1 403 ")

    through(tmp_path, body)


def test_an_allowed_name_of_a_private_address_is_refused(tmp_path: Path) -> None:
    async def body(way: Way) -> None:
        answer = await way.ask(get(way))
        assert answer.startswith(b"HTTP/1.1 403 ")
        assert way.server.heard == []
        assert way.verdicts() == ["address"]

    through(tmp_path, body, dialer=Dialer(to_loopback))


def test_a_listed_private_address_is_refused_as_well(tmp_path: Path) -> None:
    async def body(way: Way) -> None:
        answer = await way.ask(b"GET http://127.0.0.1/ HTTP/1.1\r\n\r\n")
        assert answer.startswith(b"HTTP/1.1 403 ")
        assert way.verdicts() == ["address"]

    through(tmp_path, body, dialer=Dialer(to_loopback), rules=["127.0.0.1"])


def test_a_name_is_resolved_once(tmp_path: Path) -> None:
    asked: list[str] = []

    async def rebinding(host: str) -> Sequence[str]:
        asked.append(host)
        return ["127.0.0.1"] if len(asked) == 1 else ["169.254.169.254"]

    async def body(way: Way) -> None:
        assert await way.ask(get(way)) == PAGE
        assert asked == ["allowed.example"]
        assert (await way.ask(get(way))).startswith(b"HTTP/1.1 403 ")

    dialer = Dialer(rebinding, may_reach=lambda address: str(address) == "127.0.0.1")
    through(tmp_path, body, dialer=dialer)


@pytest.mark.parametrize("error", [socket.gaierror(), RuntimeError("can't start new thread")])
def test_a_name_without_an_address_says_so(tmp_path: Path, error: Exception) -> None:
    async def nothing(_: str) -> Sequence[str]:
        raise error

    async def body(way: Way) -> None:
        assert (await way.ask(get(way))).startswith(b"HTTP/1.1 502 ")
        assert way.verdicts() == ["resolve"]

    through(tmp_path, body, dialer=Dialer(nothing))


def test_a_second_request_on_the_same_connection_goes_nowhere(tmp_path: Path) -> None:
    async def body(way: Way) -> None:
        smuggled = b"GET /y HTTP/1.1\r\nHost: evil.example\r\n\r\n"
        assert await way.ask(get(way) + smuggled, smuggled) == PAGE
        assert b"evil.example" not in way.server.heard[0]

    through(tmp_path, body)


def test_a_body_is_forwarded_to_its_length(tmp_path: Path) -> None:
    async def body(way: Way) -> None:
        request = get(way, "allowed.example", "Content-Length: 6").replace(b"GET", b"POST", 1)
        await way.ask(request + b"abcdefGET /y HTTP/1.1\r\n\r\n")
        assert way.server.heard[0].endswith(b"\r\n\r\nabcdef")

    through(tmp_path, body)


def test_a_tunnel_carries_the_tls_of_its_host(tmp_path: Path) -> None:
    async def body(way: Way) -> None:
        hello = client_hello("allowed.example")
        answer = await way.ask(connect(way), hello[:100], hello[100:])
        assert answer == b"HTTP/1.1 200 Connection established\r\n\r\n" + PAGE
        assert way.server.heard == [hello]

    through(tmp_path, body)


@pytest.mark.parametrize("name", ["evil.example", None])
def test_a_tunnel_with_the_tls_of_another_host_is_closed(tmp_path: Path, name: str | None) -> None:
    async def body(way: Way) -> None:
        answer = await way.ask(connect(way) + client_hello(name))
        assert answer.endswith(b"\x15\x03\x01\x00\x02\x02\x70")
        assert b"".join(way.server.heard) == b""
        assert way.verdicts() == ["tls"]

    through(tmp_path, body)


def test_a_tunnel_to_a_server_that_speaks_first_works(tmp_path: Path) -> None:
    async def body(way: Way) -> None:
        answer = await way.ask(connect(way), b"SSH-2.0-client\r\n", half_close=True)
        assert answer.endswith(b"SSH-2.0-server\r\n")
        assert way.server.heard == [b"SSH-2.0-client\r\n"]

    through(tmp_path, body, server=Server(b"SSH-2.0-server\r\n", speaks_first=True))


def test_the_budget_ends_a_connection_and_refuses_the_next(tmp_path: Path) -> None:
    async def body(way: Way) -> None:
        answer = await way.ask(get(way))
        assert len(answer) < 100_000
        await asyncio.sleep(0.05)
        assert way.log.bytes_up + way.log.bytes_down == 100_000
        assert (await way.ask(get(way))).startswith(b"HTTP/1.1 403 ")
        assert way.verdicts() == ["budget", "budget"]

    through(tmp_path, body, server=Server(PAGE + b"x" * 1_000_000), budget=100_000)


def test_names_that_are_looked_up_are_paid_for(tmp_path: Path) -> None:
    asked: list[str] = []

    async def nothing(host: str) -> Sequence[str]:
        asked.append(host)
        raise socket.gaierror

    async def body(way: Way) -> None:
        for _ in range(5):
            await way.ask(b"GET http://%s.allowed.example/ HTTP/1.1\r\n\r\n" % (b"x" * 60))
        assert len(asked) == 2
        assert way.verdicts() == ["resolve", "resolve", "budget", "budget", "budget"]

    dialer = Dialer(nothing)
    through(tmp_path, body, dialer=dialer, budget=200, rules=["*.allowed.example"])


def test_more_clients_than_are_served_at_once_wait(tmp_path: Path) -> None:
    async def body(way: Way) -> None:
        idle = [await asyncio.open_unix_connection(way.path) for _ in range(64)]
        await asyncio.sleep(0.05)
        waiting = asyncio.create_task(way.ask(get(way)))
        await asyncio.sleep(0.2)
        assert not waiting.done()
        for _, writer in idle:
            writer.close()
        assert await waiting == PAGE

    through(tmp_path, body)


def test_an_endless_head_is_refused(tmp_path: Path) -> None:
    async def body(way: Way) -> None:
        answer = await way.ask(b"GET http://allowed.example/ HTTP/1.1\r\nX: " + b"x" * 20_000)
        assert answer.startswith(b"HTTP/1.1 431 ")

    through(tmp_path, body)


def test_what_goes_on_is_in_the_summary_too(tmp_path: Path) -> None:
    async def body(way: Way) -> None:
        reader, writer = await asyncio.open_unix_connection(way.path)
        writer.write(connect(way))
        await reader.readuntil(b"\r\n\r\n")
        assert way.log.summary()["requests"] == {"open": 1}
        writer.close()
        await asyncio.sleep(0.2)
        assert way.log.summary()["requests"] == {"allowed": 1}

    through(tmp_path, body)


def test_a_head_in_countless_pieces_is_refused(tmp_path: Path) -> None:
    async def body(way: Way) -> None:
        pieces = [bytes([byte]) for byte in get(way, "allowed.example", "X: " + "x" * 60)]
        await way.ask(*pieces)
        assert way.server.heard == []
        assert way.verdicts() == ["request"]

    through(tmp_path, body)


def test_a_proxy_listens_in_a_directory_of_any_depth(tmp_path: Path) -> None:
    directory = tmp_path / ("d" * 120)
    directory.mkdir()

    async def main() -> bool:
        path = directory / "socket"
        async with open_proxy(path, Policy(()), budget_bytes=1, dialer=LOOPBACK):
            return path.is_socket()

    assert asyncio.run(main())


def test_the_proxy_ends_with_its_block_and_takes_its_clients_along(tmp_path: Path) -> None:
    async def run() -> None:
        policy = Policy.parse(("allowed.example",))
        path = tmp_path / "socket"
        async with open_proxy(path, policy, budget_bytes=1, dialer=LOOPBACK):
            reader, writer = await asyncio.open_unix_connection(path)
            await asyncio.sleep(0.02)
        assert await asyncio.wait_for(reader.read(), 10) == b""
        writer.close()
        assert not path.exists()

    asyncio.run(run())


@contextmanager
def descriptors_left(count: int) -> Iterator[None]:
    """Let this process have so many more of them."""
    next_one = os.dup(0)
    os.close(next_one)
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (next_one + count, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)


def test_a_machine_without_descriptors_is_an_error_and_never_a_proxy_that_is_deaf(
    tmp_path: Path,
) -> None:
    async def opens(left: int) -> bool:
        path = tmp_path / str(left)
        async with AsyncExitStack() as stack:
            proxy = open_proxy(path, Policy(()), budget_bytes=1, dialer=LOOPBACK)
            with descriptors_left(left):
                try:
                    await stack.enter_async_context(proxy)
                except SandboxError:
                    return False
            reader, writer = await asyncio.open_unix_connection(path)
            writer.write(b"\n")
            assert (await asyncio.wait_for(reader.read(), 20)).startswith(b"HTTP/1.1 400 ")
            writer.close()
            return True

    async def main() -> None:
        assert [await opens(left) for left in (0, 1, 2, 40)] == [False, False, False, True]

    before = len(list(Path("/proc/self/fd").iterdir()))
    asyncio.run(main())
    assert len(list(Path("/proc/self/fd").iterdir())) == before


def lingering() -> tuple[socket.socket, socket.socket]:
    """Two ends of a connection, the first of which takes 20 seconds to close."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        one = socket.create_connection(listener.getsockname())
        other, _ = listener.accept()
    one.setblocking(False)
    with suppress(BlockingIOError):
        while True:
            one.send(b"x" * 65536)
    one.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 20))
    return one, other


def test_descriptors_that_take_long_to_close_hold_up_nobody_else(tmp_path: Path) -> None:
    async def body(way: Way) -> None:
        slow, held = lingering()
        with held, socket.socket(socket.AF_UNIX) as client:
            client.connect(str(way.path))
            with suppress(PermissionError):
                socket.send_fds(client, [b"GET"], [slow.fileno()])
            threading.Thread(target=slow.close, daemon=True).start()
            before = time.monotonic()
            await asyncio.sleep(0.2)
            assert time.monotonic() - before < 10

    through(tmp_path, body)


@pytest.mark.parametrize("goes_on", [True, False])
def test_a_proxy_that_is_held_up_holds_up_nobody(tmp_path: Path, *, goes_on: bool) -> None:
    held, free, late = threading.Event(), threading.Event(), threading.Event()

    async def stuck(_: str) -> Sequence[str]:
        held.set()
        if not free.wait(20):
            late.set()
        return ["127.0.0.1"]

    async def body(way: Way) -> None:
        asking = asyncio.create_task(way.ask(get(way)))
        assert await asyncio.to_thread(held.wait, 20)
        if goes_on:
            free.set()
            assert await asking == PAGE
        asking.cancel()

    through(tmp_path, body, dialer=Dialer(stuck, may_reach=lambda _: True))
    assert not late.is_set()
    free.set()


def test_refused_hosts_do_not_crowd_the_listed_ones_out_of_the_log(tmp_path: Path) -> None:
    async def body(way: Way) -> None:
        await asyncio.gather(*(way.ask(get(way, f"evil{n}.example")) for n in range(40)))
        await way.ask(get(way))
        await asyncio.sleep(0.2)
        hosts = way.log.summary()["hosts"]
        assert isinstance(hosts, dict)
        assert len(hosts) == 33
        assert hosts[f"allowed.example:{way.server.port}"] == {"allowed": 1}

    through(tmp_path, body)


def test_the_log_does_not_grow_without_end(tmp_path: Path) -> None:
    log = Log(1000)
    for _ in range(5000):
        entry = log.begin()
        entry.verdict = "host"
        log.end(entry)
    assert len(log.entries) == 1000
    assert log.summary()["requests"] == {"host": 5000}
