"""The channel's promises, against a server that is a script of frames."""

import asyncio
import math
import struct
from typing import Any

import pytest

from gymsuite.errors import PathRefused, SandboxError, UsageError
from gymsuite.sandbox.channel import Channel
from gymsuite.sandbox.protocol import Stream
from tests.unit.scripted_server import (
    REPLY,
    ScriptedServer,
    encode,
    exec_reply,
    lost,
    with_channel,
)

EXEC, CANCEL, READ, WRITE, STATS, KILL_ALL = range(1, 7)
OUTPUT, WINDOW, GONE = 10, 11, 14
REFUSED = 64


def call(channel: Channel, **changed: Any) -> "asyncio.Task[Any]":
    arguments = {"command": ["true"], "timeout": 30.0, "env": {}, **changed}
    return asyncio.create_task(channel.exec(**arguments))


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
        server.say(request, REPLY | EXEC, exec_reply(b"out", code=-1, flags=59) + b"err")
        return await task

    times = 2.0, 0.5
    assert with_channel(body) == (-1, b"out", b"err", True, True, *times, True, True, True)


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
        encode(1, REPLY | OUTPUT, b"\1out"),
        encode(1, REPLY | GONE),
    ],
)
def test_a_malformed_reply_is_a_dead_sandbox(frame: bytes) -> None:
    async def body(channel: Channel, server: ScriptedServer) -> list[str]:
        task = call(channel)
        await server.requests.get()
        server.raw(frame)
        return [await lost(task), await lost(channel.stats())]

    assert all("is lost" in reason for reason in with_channel(body))


@pytest.mark.parametrize(
    "hello",
    [
        (0, 0x80, struct.pack("<I", 1)),
        (0, 0x80, struct.pack("<I", 99)),
        (0, 0x80),
        (0, 0x81),
        (7, 0x80),
    ],
)
def test_a_greeting_of_another_protocol_is_refused(hello: tuple[Any, ...]) -> None:
    async def main() -> str:
        return await lost(Channel(ScriptedServer(hello)).open(within=30))

    assert "exec server" in asyncio.run(main())


def test_a_server_that_does_not_greet_is_given_up() -> None:
    async def main() -> str:
        return await lost(Channel(ScriptedServer(None)).open(within=0.01))

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
        server.say(request, REPLY | STATS, struct.pack("<QQQQBQ", 1_500_000, 0, 7, 100, 1, 2))
        return await stats

    assert with_channel(body) == (1.5, None, 7, 2)


def test_text_with_a_nul_is_refused_before_it_is_sent() -> None:
    async def body(channel: Channel, server: ScriptedServer) -> tuple[Any, ...]:
        refused = await channel.exec("a\0b", timeout=1, env={})
        absent = await channel.read("/a\0b")
        with pytest.raises(PathRefused, match="NUL"):
            await channel.write("/a\0b", b"")
        return refused.exit_code, absent, server.requests.empty()

    assert with_channel(body) == (126, None, True)


def test_what_is_no_number_of_its_kind_is_a_usage_error_and_nothing_is_sent() -> None:
    async def body(channel: Channel, server: ScriptedServer) -> bool:
        with pytest.raises(UsageError, match="timeout of NaN"):
            await channel.exec("true", timeout=math.nan, env={})
        for mode in (-1, 0o10000):
            with pytest.raises(UsageError, match="a file of mode"):
                await channel.write("/f", b"", mode=mode)
        return server.requests.empty()

    assert with_channel(body)


def test_an_unkillable_process_is_an_error() -> None:
    async def body(channel: Channel, server: ScriptedServer) -> None:
        task = asyncio.create_task(channel.kill_all())
        server.say((await server.requests.get())[0], REPLY | KILL_ALL, b"\1")
        with pytest.raises(SandboxError, match="cannot be killed"):
            await task

    with_channel(body)


def test_output_is_told_as_it_comes_and_each_piece_gives_credit_for_more() -> None:
    async def body(channel: Channel, server: ScriptedServer) -> list[Any]:
        told: list[Any] = []
        task = call(channel, on_output=lambda stream, data: told.append((stream, data)))
        request, _, _ = await server.requests.get()
        server.say(request, REPLY | OUTPUT, b"\1ab")
        told.append(await server.requests.get())
        server.say(request, REPLY | OUTPUT, b"\2c")
        told.append(await server.requests.get())
        server.say(request, REPLY | EXEC, exec_reply(b"ab") + b"c")
        told.append((await task).stdout)
        told.append(await server.requests.get())
        return told

    assert with_channel(body) == [
        (Stream.STDOUT, b"ab"),
        (1, WINDOW, struct.pack("<BI", 1, 2)),
        (Stream.STDERR, b"c"),
        (1, WINDOW, struct.pack("<BI", 2, 1)),
        b"ab",
        (1, GONE, b""),
    ]


def test_what_on_output_raises_is_raised_by_exec_and_cancels_the_command() -> None:
    def complain(stream: Stream, data: bytes) -> None:
        raise LookupError(data.decode())

    async def body(channel: Channel, server: ScriptedServer) -> tuple[Any, ...]:
        task = call(channel, on_output=complain)
        request, _, _ = await server.requests.get()
        server.say(request, REPLY | OUTPUT, b"\1enough")
        with pytest.raises(LookupError, match="enough"):
            await task
        kinds = [(await server.requests.get())[1] for _ in range(2)]
        server.say(request, REPLY | OUTPUT, b"\1more")
        server.say(request, REPLY | EXEC, exec_reply())
        kinds += [(await server.requests.get())[1] for _ in range(2)]
        return tuple(kinds)

    assert with_channel(body) == (WINDOW, CANCEL, WINDOW, GONE)


@pytest.mark.parametrize("payload", [b"", b"\0out", b"\3out"])
def test_output_of_no_stream_is_a_dead_sandbox(payload: bytes) -> None:
    async def body(channel: Channel, server: ScriptedServer) -> str:
        task = call(channel, on_output=lambda stream, data: None)
        server.say((await server.requests.get())[0], REPLY | OUTPUT, payload)
        return await lost(task)

    assert "broke the protocol" in with_channel(body)


def test_a_user_that_there_is_not_is_an_error_that_no_retry_mends() -> None:
    async def body(channel: Channel, server: ScriptedServer) -> tuple[str, bool]:
        task = call(channel, user="nobody")
        request, _, payload = await server.requests.get()
        assert b"nobody\0" in payload
        server.say(request, REPLY | EXEC, exec_reply(flags=REFUSED) + b"no such user")
        with pytest.raises(SandboxError) as error:
            await task
        return str(error.value), error.value.retryable

    assert with_channel(body) == ("cannot run a command as 'nobody': no such user", False)
