"""The promises of a spawned process, against a server that is a script of frames."""

import asyncio
import struct
from typing import Any

import pytest

from gymsuite.errors import SandboxError, UsageError
from gymsuite.sandbox.channel import Channel
from gymsuite.sandbox.process import SpawnedProcess, spawn
from gymsuite.sandbox.wire import INPUT_WINDOW, OUTPUT_WINDOW, command_text
from tests.unit.scripted_server import REPLY, ScriptedServer, exec_reply, lost, with_channel

CANCEL, SPAWN, INPUT, OUTPUT, WINDOW, EXIT, KILL, GONE, PING = 2, *range(8, 16)
COMMAND = command_text(["cat"], "/", {}, None)
EXITED = exec_reply(code=3)


async def started(channel: Channel, server: ScriptedServer) -> tuple[SpawnedProcess, int]:
    task = asyncio.create_task(spawn(channel.link, COMMAND, user=None))
    request, kind, _ = await server.requests.get()
    assert kind == SPAWN
    server.say(request, REPLY | SPAWN, struct.pack("<BI", 0, 42))
    return await task, request


def test_a_process_has_its_pid_its_streams_apart_and_its_end() -> None:
    async def body(channel: Channel, server: ScriptedServer) -> list[Any]:
        process, request = await started(channel, server)
        server.say(request, REPLY | OUTPUT, b"\1one")
        server.say(request, REPLY | OUTPUT, b"\2two")
        server.say(request, REPLY | EXIT, EXITED)
        heard: list[Any] = [process.pid, await process.read_error(), await process.read(2)]
        heard += [await process.read(), (await process.wait()).exit_code]
        for stream in (b"\1", b"\2"):
            server.say(request, REPLY | OUTPUT, stream)
        return [*heard, await process.read(), await process.read_error()]

    assert with_channel(body) == [42, b"two", b"on", b"e", 3, b"", b""]


def test_credit_is_given_for_what_was_read_and_for_no_more() -> None:
    async def body(channel: Channel, server: ScriptedServer) -> list[Any]:
        process, request = await started(channel, server)
        server.say(request, REPLY | OUTPUT, b"\1" + bytes(OUTPUT_WINDOW))
        await process.read(OUTPUT_WINDOW // 2 - 1)
        silent = server.requests.empty()
        await process.read(1)
        return [silent, await server.requests.get()]

    credit = struct.pack("<BI", 1, OUTPUT_WINDOW // 2)
    assert with_channel(body) == [True, (1, WINDOW, credit)]


def test_more_output_than_there_was_credit_for_is_a_dead_sandbox() -> None:
    async def body(channel: Channel, server: ScriptedServer) -> str:
        process, request = await started(channel, server)
        server.say(request, REPLY | OUTPUT, b"\1" + bytes(OUTPUT_WINDOW))
        server.say(request, REPLY | OUTPUT, b"\1x")
        return await lost(process.wait())

    assert "than it had credit for" in with_channel(body)


def test_a_write_waits_until_the_sandbox_has_room() -> None:
    async def body(channel: Channel, server: ScriptedServer) -> list[Any]:
        process, request = await started(channel, server)
        task = asyncio.create_task(process.write(bytes(INPUT_WINDOW + 10)))
        first = len((await server.requests.get())[2])
        await asyncio.sleep(0)
        waiting = not task.done()
        server.say(request, REPLY | WINDOW, struct.pack("<BI", 0, 4))
        second = len((await server.requests.get())[2])
        server.say(request, REPLY | WINDOW, struct.pack("<BI", 0, 100))
        await task
        return [first, waiting, second, len((await server.requests.get())[2])]

    assert with_channel(body) == [INPUT_WINDOW, True, 4, 6]


def test_stdin_is_closed_once_and_nothing_is_written_after_it() -> None:
    async def body(channel: Channel, server: ScriptedServer) -> list[Any]:
        process, _ = await started(channel, server)
        await process.write(b"")
        await process.close_stdin()
        await process.close_stdin()
        with pytest.raises(UsageError, match="closed"):
            await process.write(b"late")
        return [await server.requests.get(), server.requests.empty()]

    assert with_channel(body) == [(1, INPUT, b""), True]


def test_when_both_sides_let_a_job_go_nothing_is_said_of_it_any_more() -> None:
    async def body(channel: Channel, server: ScriptedServer) -> list[Any]:
        process, request = await started(channel, server)
        server.say(request, REPLY | OUTPUT, b"\1" + bytes(OUTPUT_WINDOW))
        server.say(request, REPLY | EXIT, EXITED)
        server.say(request, REPLY | GONE)
        released = await server.requests.get()
        await process.write(b"dropped")
        await process.close_stdin()
        await process.kill()
        await process.read(OUTPUT_WINDOW)
        return [released, server.requests.empty()]

    assert with_channel(body) == [(1, GONE, b""), True]


def test_a_process_that_is_gone_can_be_closed_when_its_server_is_gone_too() -> None:
    async def body(channel: Channel, server: ScriptedServer) -> int:
        process, request = await started(channel, server)
        server.say(request, REPLY | EXIT, EXITED)
        server.say(request, REPLY | GONE)
        server.hang_up()
        await process.close_stdin()
        await process.kill()
        return (await process.wait()).exit_code

    assert with_channel(body) == 3


def test_kill_is_asked_for_once_and_waits_for_the_answer() -> None:
    async def body(channel: Channel, server: ScriptedServer) -> list[Any]:
        process, _ = await started(channel, server)
        tasks = [asyncio.create_task(process.kill()) for _ in range(2)]
        request, kind, payload = await server.requests.get()
        tasks[0].cancel()
        await asyncio.sleep(0)
        server.say(request, REPLY | KILL)
        await tasks[1]
        return [kind, payload, server.requests.empty()]

    assert with_channel(body) == [KILL, struct.pack("<I", 1), True]


def test_a_spawn_that_is_cancelled_is_cancelled_in_the_sandbox_and_its_output_let_through() -> None:
    async def body(channel: Channel, server: ScriptedServer) -> list[Any]:
        task = asyncio.create_task(spawn(channel.link, COMMAND, user=None))
        request, _, _ = await server.requests.get()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        kinds = [(await server.requests.get())[1]]
        server.say(request, REPLY | SPAWN, struct.pack("<BI", 0, 42))
        server.say(request, REPLY | OUTPUT, b"\1" + bytes(OUTPUT_WINDOW))
        kinds.append((await server.requests.get())[1])
        server.say(request, REPLY | EXIT, EXITED)
        server.say(request, REPLY | GONE)
        kinds.append((await server.requests.get())[1])
        return kinds

    assert with_channel(body) == [CANCEL, WINDOW, GONE]


def test_a_spawn_that_is_cancelled_as_it_is_answered_is_cancelled_in_the_sandbox() -> None:
    async def body(channel: Channel, server: ScriptedServer) -> tuple[int, bytes]:
        task = asyncio.create_task(spawn(channel.link, COMMAND, user=None))
        request, _, _ = await server.requests.get()
        server.say(request, REPLY | SPAWN, struct.pack("<BI", 0, 42))
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        _, kind, payload = await asyncio.wait_for(server.requests.get(), 5)
        return kind, payload

    assert with_channel(body) == (CANCEL, struct.pack("<I", 1))


def test_a_user_that_there_is_not_makes_no_process() -> None:
    async def body(channel: Channel, server: ScriptedServer) -> str:
        task = asyncio.create_task(spawn(channel.link, COMMAND, user="who"))
        request, _, _ = await server.requests.get()
        server.say(request, REPLY | SPAWN, struct.pack("<BI", 1, 0) + b"no such user")
        with pytest.raises(SandboxError, match="'who': no such user"):
            await task
        assert channel.lost == ""
        return "alive"

    assert with_channel(body) == "alive"


@pytest.mark.parametrize(
    ("kind", "payload"),
    [
        (SPAWN, b""),
        (OUTPUT, b""),
        (OUTPUT, b"\0x"),
        (WINDOW, b""),
        (WINDOW, struct.pack("<BI", 1, 1)),
        (WINDOW, struct.pack("<BI", 0, 1)),
        (EXIT, b"short"),
        (GONE, b"x"),
        (INPUT, b""),
        (99, b""),
    ],
)
def test_a_corrupt_frame_about_a_process_is_a_dead_sandbox(kind: int, payload: bytes) -> None:
    async def body(channel: Channel, server: ScriptedServer) -> str:
        process, request = await started(channel, server)
        waiting = asyncio.create_task(process.wait())
        await asyncio.sleep(0)
        server.say(request, REPLY | kind, payload)
        return await lost(waiting)

    assert "broke the protocol" in with_channel(body)


@pytest.mark.parametrize("verb", ["read", "read_error", "wait"])
def test_a_lost_sandbox_wakes_whoever_waits_for_a_process(verb: str) -> None:
    async def body(channel: Channel, server: ScriptedServer) -> list[str]:
        process, _ = await started(channel, server)
        waiting = asyncio.create_task(getattr(process, verb)())
        await asyncio.sleep(0)
        server.hang_up()
        return [await lost(waiting), await lost(process.write(b"x"))]

    assert all("closed" in reason for reason in with_channel(body))


def test_a_server_that_falls_silent_under_a_process_is_found_out() -> None:
    async def body(channel: Channel, server: ScriptedServer) -> list[Any]:
        process, _ = await started(channel, server)
        reason = await lost(process.wait())
        return [(await server.requests.get())[1], "no answer to PING" in reason]

    assert with_channel(body, grace=0.02) == [PING, True]
