"""Whatever bytes come from an exec server, a call returns or raises a `SandboxError`, and soon."""

import asyncio
import random
import stat
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gymsuite.errors import SandboxDead, SandboxError
from gymsuite.sandbox import wire
from gymsuite.sandbox.channel import Channel
from gymsuite.sandbox.process import spawn
from gymsuite.sandbox.transfer import download, upload, walk
from gymsuite.sandbox.wire import Request

HELLO = struct.pack("<IIBI", 9, 0, 0x80, wire.VERSION)
UNANSWERED = (Request.CANCEL, Request.INPUT, Request.WINDOW, Request.GONE)
ROUNDS = 400
GRACE = 0.5  # of a server that falls silent, which some do
WITHIN = 20.0


def entry(name: bytes, mode: int, data: bytes | None = None) -> bytes:
    record = struct.pack("<BIQQqqI", 1, mode, 1, 2, 3, 4, len(name)) + name
    return record if data is None else record + struct.pack("<BI", 2, len(data)) + data


def honest(chance: random.Random, kind: int) -> bytes:
    """A reply that could be meant."""
    records = [
        entry(b"d", stat.S_IFDIR | 0o755),
        entry(b"d/f", stat.S_IFREG | 0o644, b"data"),
        entry(b"l", stat.S_IFLNK, chance.choice([b"d", b"../..", b"/"])),
        struct.pack("<BII", 3, 13, 1) + b"s",
    ]
    piece = struct.pack("<BII", chance.choice([0, 0, 1, 2, 3, 4]), chance.choice([0, 2, 20]), 1)
    piece += b"".join(chance.sample(records, chance.randrange(5)))
    split = chance.choice([0, 3, 4, 0xFFFFFFFF])
    replies = {
        Request.EXEC: struct.pack("<iBQQI", chance.choice([0, -1]), 3, 5, 6, split) + b"out",
        Request.READ: struct.pack("<BI", chance.randrange(6), chance.choice([0, 5, 13])) + b"data",
        Request.STATE: struct.pack("<BII", chance.randrange(6), 0, 0o100644) + b"data",
        Request.WRITE: struct.pack("<I", chance.choice([0, 5, 13, 0xFFFFFFFF])),
        Request.STATS: struct.pack("<QQQQBQ", chance.choice([0, (1 << 64) - 1]), 0, 1, 2, 1, 3),
        Request.KILL_ALL: bytes([chance.randrange(3)]),
        Request.SPAWN: struct.pack("<BI", chance.choice([0, 0, 1]), 42) + b"why",
        Request.WALK: piece,
        Request.PACK: piece,
        Request.NEXT: piece,
        Request.UNPACK: struct.pack("<I", chance.choice([0, 5, 13])) + chance.choice([b"", b"p"]),
    }
    return replies.get(Request(kind), b"")


def spoilt(chance: random.Random, payload: bytes) -> bytes:
    data = bytearray(payload)
    for _ in range(chance.choice([0, 1, 4])):
        if data:
            data[chance.randrange(len(data))] = chance.choice([0, 1, 0x7F, 0xFF])
    if chance.random() < 0.2:
        del data[chance.randrange(len(data) + 1) :]
    if chance.random() < 0.2:
        data += chance.randbytes(chance.randrange(60))
    return bytes(data)


class Fiend:
    """An exec server that answers a request with anything, and hangs up after a while."""

    def __init__(self, seed: int) -> None:
        self._chance = random.Random(seed)
        self._patience = self._chance.randrange(1, 12)
        self._hello = HELLO if seed % 10 else spoilt(self._chance, HELLO)
        self._hung_up = False

    def start(
        self, received: Callable[[bytes], None], ended: Callable[[OSError | None], None], /
    ) -> None:
        self._received, self._ended = received, ended
        self._say(self._hello)
        if self._hello != HELLO:
            self._hang_up()

    def send(self, message: bytes, /) -> None:
        chance = self._chance
        _, request, kind = struct.unpack_from("<IIB", message)
        self._patience -= 1
        if self._patience < 0:
            self._hang_up()
        elif chance.random() < 0.03:
            self._say(chance.randbytes(chance.randrange(1, 60)))
            self._hang_up()
        elif kind not in UNANSWERED:
            payload = honest(chance, kind)
            payload = spoilt(chance, payload) if chance.random() < 0.4 else payload
            if chance.random() < 0.02:
                request, kind = chance.randrange(9), chance.randrange(128)
            head = struct.pack("<IIB", 5 + len(payload), request, (kind | 0x80) & 0xFF)
            self._say(spoilt(chance, head) if chance.random() < 0.02 else head)
            self._say(payload)

    async def close(self) -> None:
        self._hang_up()

    def _say(self, data: bytes) -> None:
        size = self._chance.choice([1, 7, 1 << 16])
        for at in range(0, 0 if self._hung_up else len(data), size):
            asyncio.get_running_loop().call_soon(self._received, data[at : at + size])

    def _hang_up(self) -> None:
        if not self._hung_up:
            self._hung_up = True
            asyncio.get_running_loop().call_soon(self._ended, None)


async def spawned(channel: Channel) -> None:
    process = await spawn(channel.link, wire.command_text("true", "/", {}, None), user=None)
    await process.write(b"data")
    await process.kill()


async def tried(seed: int, folder: Path) -> list[Any]:
    """Call everything at once, twice; return what came of it."""
    (folder / "source").mkdir(parents=True)
    (folder / "source/f").write_bytes(b"x")
    channel = Channel(Fiend(seed), grace=GRACE)
    try:
        async with asyncio.timeout(WITHIN):
            await channel.open(within=GRACE)
            found: list[Any] = []
            for number in range(2):
                calls = [
                    channel.exec("true", timeout=GRACE, env={}),
                    channel.read("/f"),
                    channel.state("/f", max_bytes=10),
                    channel.write("/f", b"data"),
                    channel.stats(),
                    channel.kill_all(),
                    spawned(channel),
                    walk(channel, "/d"),
                    download(channel, "/d", folder / f"target{number}"),
                    upload(channel, folder / "source", "/d"),
                ]
                found += await asyncio.gather(*calls, return_exceptions=True)
            return found
    except SandboxDead as error:
        return [error]
    finally:
        await channel.close()


def test_no_answer_makes_a_call_hang_or_raise_anything_else(tmp_path: Path) -> None:
    async def main() -> list[list[Any]]:
        return [await tried(seed, tmp_path / str(seed)) for seed in range(ROUNDS)]

    found = [result for results in asyncio.run(main()) for result in results]
    errors = [result for result in found if isinstance(result, BaseException)]
    assert [error for error in errors if not isinstance(error, SandboxError)] == []
    assert any(isinstance(error, SandboxDead) for error in errors)
    assert len(errors) < len(found), "none succeeded, so nothing was tested"


@pytest.mark.parametrize("seed", range(3))
def test_noise_is_a_dead_sandbox_from_the_start(seed: int) -> None:
    async def main() -> None:
        chance = random.Random(seed)
        for _ in range(200):
            noise = Noise(chance.randbytes(chance.randrange(64)))
            with pytest.raises(SandboxDead):
                await Channel(noise).open(within=WITHIN)

    asyncio.run(main())


class Noise:
    """A stream of what was prepared."""

    def __init__(self, data: bytes) -> None:
        self._data = data

    def start(
        self, received: Callable[[bytes], None], ended: Callable[[OSError | None], None], /
    ) -> None:
        received(self._data)
        ended(None)

    def send(self, data: bytes, /) -> None:
        """Take anything."""

    async def close(self) -> None:
        """Nothing is open."""
