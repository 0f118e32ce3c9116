"""The channel's promises, against a server that is a script of frames."""

import asyncio
import struct
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

import pytest

from gymsuite.errors import PathRefused, SandboxDead, SandboxError
from gymsuite.sandbox.channel import Channel

HELLO = (0, 0x80, struct.pack("<I", 1))
EXEC, CANCEL, READ, WRITE, STATS, KILL_ALL = range(1, 7)
REPLY = 0x80


def encode(request: int, kind: int, payload: bytes = b"") -> bytes:
    return struct.pack("<IIB", 5 + len(payload), request, kind) + payload


def exec_reply(stdout: bytes = b"", *, code: int = 0, flags: int = 0) -> bytes:
    return struct.pack("<iBQQI", code, flags, 2_000_000, 500_000, len(stdout)) + stdout


class ScriptedServer:
    """A byte stream in memory. What it is sent is parsed; what it says is up to the test."""

    def __init__(self) -> None:
        self.requests: asyncio.Queue[tuple[int, int, bytes]] = asyncio.Queue()
        self.closed = False
        self._reader = asyncio.StreamReader()
        self.say(*HELLO)

    def say(self, request: int, kind: int, payload: bytes = b"") -> None:
        self.raw(encode(request, kind, payload))

    def raw(self, data: bytes) -> None:
        self._reader.feed_data(data)

    def hang_up(self) -> None:
        self._reader.feed_eof()

    async def read(self, size: int, /) -> bytes:
        # In small pieces, as a socket may.
        return await self._reader.read(min(size, 3))

    async def write(self, data: bytes, /) -> None:
        length, request, kind = struct.unpack_from("<IIB", data)
        assert length == len(data) - 4
        self.requests.put_nowait((request, kind, data[9:]))

    async def close(self) -> None:
        self.closed = True


Body = Callable[[Channel, ScriptedServer], Coroutine[Any, Any, Any]]


def with_channel(body: Body, *, grace: float = 30.0) -> Any:
    async def main() -> Any:
        server = ScriptedServer()
        channel = Channel(server, grace=grace)
        await channel.open(within=30)
        try:
            return await asyncio.wait_for(body(channel, server), 30)
        finally:
            await channel.close()
            assert server.closed

    return asyncio.run(main())


def call(channel: Channel, **changed: Any) -> "asyncio.Task[Any]":
    arguments = {"command": ["true"], "timeout": 30.0, "env": {}, **changed}
    return asyncio.create_task(channel.exec(**arguments))


async def lost(work: Awaitable[Any]) -> str:
    with pytest.raises(SandboxDead) as error:
        await work
    return str(error.value)


def test_replies_find_the_calls_they_answer_in_any_order() -> None:
    async def body(channel: Channel, server: ScriptedServer) -> list[bytes]:
        first, second = call(channel), call(channel)
        ids = [(await server.requests.get())[0] for _ in range(2)]
        server.say(ids[1], REPLY | EXEC, exec_reply(b"second"))
        server.say(ids[0], REPLY | EXEC, exec_reply(b"first"))
        return [(await task).stdout for task in (first, second)]

    assert with_channel(body) == [b"first", b"second"]


def test_a_result_carries_flags_streams_and_times() -> None:
    async def body(channel: Channel, server: ScriptedServer) -> Any:
        task = call(channel)
        request, _, _ = await server.requests.get()
        server.say(request, REPLY | EXEC, exec_reply(b"out", code=-1, flags=3) + b"err")
        return await task

    assert with_channel(body)[:7] == (-1, b"out", b"err", True, True, 2.0, 0.5)


def test_a_string_goes_to_the_shell_and_a_list_does_not() -> None:
    async def body(channel: Channel, server: ScriptedServer) -> list[bool]:
        tasks = [call(channel, command="a b"), call(channel, command=["a b"])]
        payloads = [(await server.requests.get())[2] for _ in tasks]
        for task in tasks:
            task.cancel()
        return [b"/bin/sh\0" in payload for payload in payloads]

    assert with_channel(body) == [True, False]


def test_a_channel_that_closes_fails_every_waiting_and_every_later_call() -> None:
    async def body(channel: Channel, server: ScriptedServer) -> list[str]:
        waiting = [call(channel), asyncio.create_task(channel.stats())]
        for _ in waiting:
            await server.requests.get()
        server.hang_up()
        later = [channel.read("/f"), channel.write("/f", b""), channel.kill_all()]
        return [await lost(work) for work in (*waiting, *later)]

    reasons = with_channel(body)
    assert len(set(reasons)) == 1
    assert "the channel was closed" in reasons[0]


def test_a_server_that_says_nothing_is_dead_after_the_deadline_and_its_grace() -> None:
    async def body(channel: Channel, server: ScriptedServer) -> list[str]:
        other = asyncio.create_task(channel.stats())
        return [await lost(call(channel, timeout=0.01)), await lost(other)]

    reasons = with_channel(body, grace=0.05)
    assert all("fell silent" in reason for reason in reasons)


def test_a_deadline_is_the_commands_timeout_and_not_the_grace_alone() -> None:
    async def body(channel: Channel, server: ScriptedServer) -> Any:
        task = call(channel, timeout=30)
        request, _, _ = await server.requests.get()
        await asyncio.sleep(0.1)
        server.say(request, REPLY | EXEC, exec_reply(b"late"))
        return (await task).stdout

    assert with_channel(body, grace=0.01) == b"late"


@pytest.mark.parametrize(
    "frame",
    [
        struct.pack("<I", 0),
        struct.pack("<I", 4) + b"abcd",
        struct.pack("<I", 0xFFFFFFFF) + b"x" * 20,
        encode(999, REPLY | EXEC, exec_reply()),
        encode(1, EXEC, exec_reply()),
        encode(1, REPLY | READ, exec_reply()),
        encode(1, REPLY | EXEC, b""),
        encode(1, REPLY | EXEC, exec_reply()[:-1]),
        encode(1, REPLY | EXEC, struct.pack("<iBQQI", 0, 0, 0, 0, 5) + b"four"),
    ],
)
def test_a_malformed_reply_is_a_dead_sandbox(frame: bytes) -> None:
    async def body(channel: Channel, server: ScriptedServer) -> list[str]:
        task = call(channel)
        await server.requests.get()
        server.raw(frame)
        return [await lost(task), await lost(channel.stats())]

    assert all("is lost" in reason for reason in with_channel(body))


@pytest.mark.parametrize("hello", [(0, 0x80, struct.pack("<I", 99)), (0, 0x80, b""), (0, 0x81)])
def test_a_greeting_of_another_protocol_is_refused(hello: tuple[Any, ...]) -> None:
    async def main() -> str:
        server = ScriptedServer()
        await server.read(3)
        await server.read(3)
        await server.read(3)
        await server.read(3)
        await server.read(3)
        server.say(*hello)
        return await lost(Channel(server).open(within=30))

    assert "exec server" in asyncio.run(main())


def test_a_server_that_does_not_greet_is_given_up() -> None:
    async def main() -> str:
        server = ScriptedServer()
        for _ in range(5):
            await server.read(3)
        return await lost(Channel(server).open(within=0.01))

    assert "said nothing" in asyncio.run(main())


def test_a_cancelled_call_is_cancelled_in_the_sandbox_and_its_late_reply_ignored() -> None:
    async def body(channel: Channel, server: ScriptedServer) -> tuple[Any, ...]:
        task = call(channel)
        request, _, _ = await server.requests.get()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        _, kind, payload = await server.requests.get()
        server.say(request, REPLY | EXEC, exec_reply(b"late"))
        other = call(channel)
        server.say((await server.requests.get())[0], REPLY | EXEC, exec_reply(b"other"))
        return kind, payload == struct.pack("<I", request), (await other).stdout

    assert with_channel(body) == (CANCEL, True, b"other")


def test_a_write_that_fails_says_why_without_ending_the_sandbox() -> None:
    async def body(channel: Channel, server: ScriptedServer) -> Any:
        task = asyncio.create_task(channel.write("/f", b"data"))
        request, _, payload = await server.requests.get()
        assert payload.endswith(b"/f\0data")
        server.say(request, REPLY | WRITE, struct.pack("<I", 28))
        with pytest.raises(SandboxError, match="cannot write /f: No space left"):
            await task
        stats = asyncio.create_task(channel.stats())
        request, _, _ = await server.requests.get()
        server.say(request, REPLY | STATS, struct.pack("<QQ", 1_500_000, 0))
        return await stats

    assert with_channel(body)[:2] == (1.5, None)


def test_text_with_a_nul_is_refused_before_it_is_sent() -> None:
    async def body(channel: Channel, server: ScriptedServer) -> tuple[Any, ...]:
        refused = await channel.exec("a\0b", timeout=1, env={})
        absent = await channel.read("/a\0b")
        with pytest.raises(PathRefused, match="NUL"):
            await channel.write("/a\0b", b"")
        return refused.exit_code, absent, server.requests.empty()

    assert with_channel(body) == (126, None, True)


def test_an_unkillable_process_is_an_error() -> None:
    async def body(channel: Channel, server: ScriptedServer) -> None:
        task = asyncio.create_task(channel.kill_all())
        server.say((await server.requests.get())[0], REPLY | KILL_ALL, b"\1")
        with pytest.raises(SandboxError, match="cannot be killed"):
            await task

    with_channel(body)
