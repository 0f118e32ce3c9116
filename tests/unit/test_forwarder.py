"""The exec server's binary as what leads from a port inside a sandbox to a socket."""

import asyncio
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from gymsuite.sandbox.binary import BuildError, build


@pytest.fixture(scope="session")
def binary(tmp_path_factory: pytest.TempPathFactory) -> Path:
    try:
        return build(tmp_path_factory.mktemp("bin"))
    except BuildError as error:
        pytest.skip(str(error))


@asynccontextmanager
async def forwarding(binary: Path, path: Path) -> AsyncIterator[int]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = int(free.getsockname()[1])
    process = await asyncio.create_subprocess_exec(
        binary, "forward", str(port), path, stdout=asyncio.subprocess.PIPE
    )
    assert process.stdout is not None
    try:
        assert await asyncio.wait_for(process.stdout.readline(), 20) == b"ready\n"
        yield port
    finally:
        process.kill()
        await process.wait()


def over(binary: Path, tmp_path: Path, body: Callable[[int], Awaitable[Any]]) -> Any:
    """Run a body with the port of a forwarder to a server that says everything twice."""

    async def twice(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(1 << 16):
            writer.write(data + data)
            await writer.drain()
        writer.close()

    async def run() -> Any:
        path = tmp_path / "socket"
        server = await asyncio.start_unix_server(twice, path)
        async with server, forwarding(binary, path) as port:
            return await asyncio.wait_for(body(port), 60)

    return asyncio.run(run())


async def say(port: int, data: bytes) -> bytes:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    sending = asyncio.create_task(_send(writer, data))
    answer = await reader.read()
    await sending
    writer.close()
    return answer


async def _send(writer: asyncio.StreamWriter, data: bytes) -> None:
    writer.write(data)
    await writer.drain()
    writer.write_eof()


def test_what_is_sent_arrives_and_so_does_the_answer(binary: Path, tmp_path: Path) -> None:
    data = bytes(range(256)) * 20_000

    async def body(port: int) -> None:
        answer = await say(port, data)
        assert len(answer) == 2 * len(data)

    over(binary, tmp_path, body)


def test_many_connections_are_served_side_by_side(binary: Path, tmp_path: Path) -> None:
    async def body(port: int) -> None:
        words = [b"%d," % number for number in range(200)]
        answers = await asyncio.gather(*(say(port, word) for word in words))
        assert answers == [word * 2 for word in words]

    over(binary, tmp_path, body)


def test_a_client_that_reads_nothing_holds_nobody_up(binary: Path, tmp_path: Path) -> None:
    async def body(port: int) -> None:
        _, stuck = await asyncio.open_connection("127.0.0.1", port)
        sending = asyncio.create_task(_send(stuck, b"x" * 50_000_000))
        await asyncio.sleep(0.2)
        assert await say(port, b"hello") == b"hellohello"
        sending.cancel()
        stuck.transport.abort()

    over(binary, tmp_path, body)


def test_without_a_proxy_a_connection_is_closed_at_once(binary: Path, tmp_path: Path) -> None:
    async def run() -> bytes:
        async with forwarding(binary, tmp_path / "nothing") as port:
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            answer = await asyncio.wait_for(reader.read(), 20)
            writer.close()
            return answer

    assert asyncio.run(run()) == b""
