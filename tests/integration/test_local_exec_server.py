"""The exec server against frames that nobody honest would send, with its memory watched."""

import asyncio
import os
import random
import struct
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from gymsuite import Sandbox, SandboxDead, SandboxError, SandboxSpec
from gymsuite.errors import PathRefused
from gymsuite.sandbox import binary
from gymsuite.sandbox.cgroups import Cgroups
from gymsuite.sandbox.image import Image
from gymsuite.sandbox.keepers import Keepers
from gymsuite.sandbox.limits import Quota
from gymsuite.sandbox.local import LocalHost, LocalSandbox, open_local
from gymsuite.sandbox.place import Place, words
from gymsuite.sandbox.resident import Resident
from tests.providers import missing

pytestmark = pytest.mark.local

SPEC = SandboxSpec(image="fixture")
PATIENCE = 60.0
SANDBOXES = 150
FRAMES = 25
HARMLESS = {0, 70}  # the channel ended, or it refused what it was sent


@pytest.fixture(scope="session")
def watched_server(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An exec server that checks each access to its memory, and dies of the first bad one."""
    server = tmp_path_factory.mktemp("watched") / "exec-server"
    sources = (Path(binary.__file__).parent / "exec_server").glob("*.c")
    flags = ("-g", "-O1", "-fsanitize=address,undefined", "-fno-sanitize-recover=all")
    compiler = os.environ.get("CC", "cc")
    probe = [compiler, *flags, "-x", "c", "-o", str(server), "-"]
    if subprocess.run(probe, input=b"int main(void) { return 0; }", check=False).returncode:
        missing("a compiler with AddressSanitizer", f"{compiler} {' '.join(flags)} fails")
    subprocess.run([compiler, *flags, "-o", str(server), *map(str, sources)], check=True)
    return server


@pytest.fixture(scope="module")
def watched_host(local_host: LocalHost, watched_server: Path) -> Iterator[LocalHost]:
    keepers = Keepers(watched_server, local_host.uid, local_host.gid, local_host.cgroups)
    yield replace(local_host, keepers=keepers)
    keepers.close()


def frame(request: int, kind: int, payload: bytes) -> bytes:
    return struct.pack("<IIB", 5 + len(payload), request, kind) + payload


def text(value: bytes) -> bytes:
    return struct.pack("<I", len(value) + 1) + value + b"\0"


def entries() -> bytes:
    """One entry of each kind, for an UNPACK."""
    kinds = (b"", struct.pack("<I", 4) + b"data", struct.pack("<I", 4) + b"more", text(b"f"), b"")
    names = (b"d", b"d/f", b"d/f", b"l", b"d")
    numbered = enumerate(zip(names, kinds, strict=True), start=1)
    return b"".join(struct.pack("<BI", kind, 0o755) + text(n) + d for kind, (n, d) in numbered)


WHERE = text(b"") + text(b"/")
TRUE = WHERE + struct.pack("<I", 1) + text(b"/bin/true") + struct.pack("<I", 0)
CAT = frame(
    1,
    8,
    struct.pack("<I", 100)
    + WHERE
    + struct.pack("<I", 1)
    + text(b"/bin/cat")
    + struct.pack("<I", 0),
)


def valid_frame(chance: random.Random) -> bytes:
    """One honest frame of any kind."""
    request = chance.randrange(1, 1 << 32)
    window = struct.pack("<I", chance.choice([0, 1, 100, 1 << 18]))
    limits = struct.pack("<II", chance.choice([1, 50, 5000]), chance.choice([0, 1, 7, 5000]))
    user = text(chance.choice([b"", b"", b"0", b"root", b"1:1", b"nobody", b":"]))
    command = text(chance.choice([b"true", b"/bin/echo", b"sleep", b"cat", b"/bin/sh"]))
    argument = text(chance.choice([b"-c", b"0.01", b"/etc/passwd"]))
    one = struct.pack("<I", 1)
    two = struct.pack("<I", 2)
    started = user + text(b"/") + two + command + argument + one + text(b"PATH=/usr/bin:/bin")
    run = limits + window + started
    job = chance.randrange(1, 4)
    return chance.choice(
        [
            frame(request, 1, run + chance.randbytes(chance.choice([0, 3, 90_000]))),
            frame(job, 8, window + started),
            frame(job, 8, window + started),
            frame(job, 9, chance.randbytes(chance.choice([0, 3, 90_000]))),
            frame(job, 11, struct.pack("<BI", chance.choice([1, 2]), chance.choice([1, 100]))),
            frame(request, 13, struct.pack("<I", job)),
            frame(job, 14, b""),
            frame(request, 15, b""),
            frame(request, 2, struct.pack("<I", chance.randrange(1 << 32))),
            frame(
                request, 3, struct.pack("<I", chance.choice([0, 9, 1 << 20])) + text(b"/etc/hosts")
            ),
            frame(request, 4, struct.pack("<I", 0o644) + text(b"/workspace/a/b") + b"data"),
            frame(request, 5, b""),
            frame(request, 6, b""),
            frame(request, 7, struct.pack("<I", 1 << 20) + text(b"/workspace/link")),
            frame(request, 16, struct.pack("<IQ", 1000, 0) + text(b"/workspace")),
            frame(request, 17, struct.pack("<IQ", 100, 1 << 20) + text(b"/workspace/tree")),
            frame(request, 18, text(b"/workspace/new") + entries()),
            frame(request, 19, struct.pack("<I", chance.choice([request, 0]))),
        ]
    )


def spoilt(chance: random.Random, honest: bytes) -> bytes:
    """The frame with a few bytes or its size changed, and mostly with a length that fits."""
    data = bytearray(honest)
    for _ in range(chance.choice([0, 0, 1, 3])):
        data[chance.randrange(len(data))] = chance.choice([0, 1, 0x7F, 0xFF, chance.randrange(256)])
    if chance.random() < 0.1:
        del data[chance.randrange(9, len(data) + 1) :]
    if chance.random() < 0.1:
        data += chance.randbytes(chance.randrange(20))
    if chance.random() < 0.9:
        data[:4] = struct.pack("<I", len(data) - 4)
    return bytes(data)


async def fed(host: LocalHost, image: Image, data: bytes) -> tuple[int, str]:
    """Send bytes to a fresh server and hang up; return how it ended and what it complained of."""
    place = Place(image, {}, "/workspace", Quota(pids=64))
    box = await host.keeper().box()
    resident = await Resident.start(box, words(replace(host, cgroups=Cgroups()), place))
    reader, writer = await asyncio.open_connection(sock=resident._socket)
    try:
        async with asyncio.timeout(PATIENCE):
            writer.write(data)
            writer.write_eof()
            with suppress(ConnectionError):
                while await reader.read(1 << 16):
                    pass
        return await resident.ended(), resident.complaint()
    finally:
        writer.transport.abort()
        resident.close()
        await box.end()


def test_frames_of_any_kind_end_the_server_in_order_or_are_answered(
    watched_host: LocalHost, local_image: Image
) -> None:
    async def one(gate: asyncio.Semaphore, seed: int) -> tuple[int, int, str]:
        chance = random.Random(seed)
        data = b"".join(spoilt(chance, valid_frame(chance)) for _ in range(FRAMES))
        async with gate:
            return seed, *await fed(watched_host, local_image, data)

    async def main() -> list[tuple[int, int, str]]:
        gate = asyncio.Semaphore(4)
        return await asyncio.gather(*(one(gate, seed) for seed in range(SANDBOXES)))

    ends = asyncio.run(main())
    assert [end for end in ends if end[1] not in HARMLESS or "ERROR" in end[2]] == []
    assert {code for _, code, _ in ends} == HARMLESS, "some of both, or nothing was tested"


@pytest.mark.parametrize(
    "data",
    [
        struct.pack("<I", 0),
        struct.pack("<I", 4) + b"abcd",
        struct.pack("<I", 0xFFFFFFFF),
        frame(1, 0, b""),
        frame(1, 7, b""),
        frame(1, 1, b""),
        frame(1, 1, struct.pack("<III", 1000, 0xFFFFFFFF, 0)),
        frame(1, 1, struct.pack("<III", 1000, 10, 0xFFFFFFFF)),
        frame(1, 1, struct.pack("<III", 1000, 10, 0) + WHERE + struct.pack("<I", 0) * 2),
        frame(1, 1, struct.pack("<III", 1000, 10, 0) + WHERE + struct.pack("<I", 0xFFFFFFFF)),
        frame(1, 8, b""),
        frame(1, 8, struct.pack("<I", 0) + TRUE),
        frame(1, 8, struct.pack("<I", 0xFFFFFFFF) + TRUE),
        frame(1, 8, struct.pack("<I", 100) + TRUE + b"x"),
        frame(1, 8, struct.pack("<I", 100) + text(b"")),
        frame(1, 9, b"data"),
        frame(1, 11, struct.pack("<BI", 1, 1)),
        frame(0, 13, struct.pack("<I", 1)),
        frame(1, 13, struct.pack("<I", 1)),
        frame(1, 14, b""),
        frame(1, 15, b"x"),
        CAT + frame(1, 9, bytes((256 << 10) + 1)),
        CAT + frame(1, 9, b"") + frame(1, 9, b""),
        CAT + frame(1, 11, struct.pack("<BI", 0, 1)),
        CAT + frame(1, 11, struct.pack("<BI", 1, 1)),
        CAT + frame(1, 11, struct.pack("<BI", 1, 0xFFFFFFFF)),
        CAT + frame(1, 11, struct.pack("<B", 1)),
        CAT + frame(1, 14, b""),
        CAT + frame(2, 13, struct.pack("<I", 1)) + frame(3, 13, struct.pack("<I", 1)),
        CAT + CAT,
        frame(1, 2, b"abc"),
        frame(1, 2, b"abcde"),
        frame(1, 3, struct.pack("<I", 10) + struct.pack("<I", 5) + b"abc"),
        frame(1, 3, struct.pack("<I", 10) + struct.pack("<I", 4) + b"abcd"),
        frame(1, 3, struct.pack("<I", 10) + struct.pack("<I", 4) + b"a\0b\0"),
        frame(1, 3, struct.pack("<I", 10) + struct.pack("<I", 0)),
        frame(1, 3, struct.pack("<I", 0xFFFFFFFF) + text(b"/etc/passwd")),
        frame(1, 4, struct.pack("<I", 0o644)),
        frame(1, 5, b"x"),
        frame(1, 16, b""),
        frame(1, 16, struct.pack("<IQ", 1, 1) + text(b"/") + b"x"),
        frame(1, 17, struct.pack("<IQ", 1, 1) + b"/workspace"),
        frame(1, 18, b""),
        frame(1, 18, text(b"/workspace") + b"\1"),
        frame(1, 18, text(b"/workspace") + struct.pack("<BI", 9, 0) + text(b"a")),
        frame(1, 18, text(b"/workspace") + struct.pack("<BI", 2, 0) + text(b"a") + b"\1\0\0\0"),
        frame(1, 18, text(b"/workspace") + struct.pack("<BI", 4, 0) + text(b"a") + b"\1\0\0\0x"),
        frame(1, 19, b"abc"),
        frame(1, 19, struct.pack("<IB", 1, 0)),
    ],
)
def test_a_malformed_request_ends_the_server_with_a_word(
    local_host: LocalHost, local_image: Image, data: bytes
) -> None:
    code, complaint = asyncio.run(fed(local_host, local_image, data))
    assert code == 70
    assert "malformed frame" in complaint


def test_two_commands_of_one_id_end_the_server(local_host: LocalHost, local_image: Image) -> None:
    head = struct.pack("<III", 60_000, 10, 0) + WHERE + struct.pack("<I", 2)
    sleep = frame(1, 1, head + text(b"/bin/sleep") + text(b"60") + struct.pack("<I", 0))
    code, complaint = asyncio.run(fed(local_host, local_image, sleep + sleep))
    assert (code, "in use" in complaint) == (70, True)


def test_a_broken_request_kills_its_sandbox_and_not_the_caller(
    local_host: LocalHost, local_image: Image
) -> None:
    async def main() -> str:
        async with open_local(local_host, local_image, SPEC) as sandbox:
            assert isinstance(sandbox, LocalSandbox)
            waiting = asyncio.create_task(sandbox.exec("sleep 1000", timeout=1000))
            await sandbox.exec("true", timeout=PATIENCE)
            sandbox._verbs.channel.link._stream.send(frame(1, 99, b""))
            with pytest.raises(SandboxDead) as error:
                await asyncio.wait_for(waiting, PATIENCE)
            return str(error.value)

    assert "closed" in asyncio.run(main())


async def talked_to(sandbox: Sandbox) -> None:
    """Spawn processes, and use all that they can be asked."""
    cat, flood = await sandbox.spawn(["cat"]), await sandbox.spawn("seq 1 100000; seq 1 9 >&2")
    gone, missing = await sandbox.spawn("kill -9 $PPID"), await sandbox.spawn(["no-such-program"])
    await cat.write(b"x" * 100_000)
    read = 0
    while read < 100_000:
        read += len(await cat.read())
    await cat.close_stdin()
    await flood.read(10)
    await flood.kill()
    for process in (cat, flood, gone, missing):
        await process.wait()
        await process.kill()
        while await process.read() or await process.read_error():
            pass


def test_a_full_day_of_a_server_touches_only_its_own_memory(
    watched_host: LocalHost, local_image: Image, tmp_path: Path
) -> None:
    tree = tmp_path / "tree"
    (tree / "deep").mkdir(parents=True)
    for number in range(300):
        (tree / f"deep/{number}").write_bytes(bytes(number * 10))
    (tree / "large").write_bytes(bytes(2_000_000))
    (tree / "link").symlink_to("deep/1")

    async def main() -> list[Any]:
        async with open_local(watched_host, local_image, SPEC) as sandbox:
            assert isinstance(sandbox, LocalSandbox)
            errors = os.dup(sandbox._running.resident._errors)
            await sandbox.write("a/b/c", bytes(range(256)) * 4000)
            assert await sandbox.read("a/b/c") == bytes(range(256)) * 4000
            assert await sandbox.read("a/none") is None
            with pytest.raises(SandboxError):
                await sandbox.read("a/b/c", max_bytes=3)
            await sandbox.upload(tree, "up")
            await sandbox.download("up", tmp_path / "down")
            await sandbox.exec("ln -s up at; chmod 0 up/deep; mkfifo up/fifo", timeout=PATIENCE)
            await sandbox.upload(tree, "at")
            for place in ("up", "at", "absent", "plain.txt", "/proc"):
                with pytest.raises(PathRefused):
                    await sandbox.download(place, tmp_path / "other", max_files=3)
            flood = "seq 1 300000; seq 1 300000 >&2"
            results = await asyncio.gather(
                *(
                    sandbox.exec(flood, timeout=PATIENCE, max_output=n)
                    for n in (0, 1, 2, 7, 99_999)
                ),
                sandbox.exec("sleep 100 & setsid sleep 100 & sleep 100", timeout=0.3),
                sandbox.exec("kill -9 $PPID; sleep 100", timeout=0.3),
                sandbox.exec(flood, timeout=PATIENCE, on_output=lambda stream, data: None),
                sandbox.exec("exec yes", timeout=0.3, on_output=lambda stream, data: None),
                sandbox.exec("true", timeout=PATIENCE, user="root"),
                sandbox.exec("true", timeout=PATIENCE, env={"LONG": "x" * 100_000}),
                sandbox.exec(["wc", "-c"], stdin=b"x" * 3_000_000, timeout=PATIENCE),
                sandbox.exec("sleep 100 & seq 1 1000", timeout=PATIENCE),
                sandbox.exec(["no-such-program"], timeout=PATIENCE),
            )
            for _ in range(3):
                await sandbox.exec("kill -STOP -1; kill -9 -1", timeout=PATIENCE)
            with pytest.raises(SandboxError, match="no such user"):
                await sandbox.exec("true", timeout=PATIENCE, user="nobody-such")
            await talked_to(sandbox)
            await sandbox.changes("/workspace")
            await sandbox.stats()
        with os.fdopen(errors, "rb") as file:
            assert os.pread(file.fileno(), 20_000, 0) == b""
        return [result.exit_code for result in results]

    codes = asyncio.run(main())
    assert len(codes) == 14


def test_a_full_day_of_a_keeper_touches_only_its_own_memory(
    watched_server: Path, local_host: LocalHost, local_image: Image
) -> None:
    keepers = Keepers(watched_server, local_host.uid, local_host.gid, local_host.cgroups)
    host = replace(local_host, keepers=keepers)
    broken = replace(local_image, layers=(Path("/no-such-layer"),))

    async def episode() -> bytes | None:
        async with open_local(host, local_image, SPEC) as sandbox:
            await sandbox.write("f", b"data")
            image = await sandbox.snapshot()
            async with open_local(host, image, SPEC) as child:
                await child.changes("/workspace")
                return await child.read("f")

    async def main() -> None:
        assert await asyncio.gather(*(episode() for _ in range(4))) == [b"data"] * 4
        cancelled = asyncio.create_task(episode())
        await asyncio.sleep(0.05)
        cancelled.cancel()
        await asyncio.gather(cancelled, return_exceptions=True)
        with pytest.raises(SandboxError, match="no-such-layer"):
            async with open_local(host, broken, SPEC):
                pytest.fail("it opened")
        box = await keepers.current().box()
        for verb in ("", "start", "room", "freeze", "upper", "no-such-verb"):
            with suppress(SandboxError):
                await box.ask(verb, within=PATIENCE)
        await box.end()

    asyncio.run(main())
    keeper = keepers.current()
    errors = os.dup(keeper._errors)
    keepers.close()
    with os.fdopen(errors, "rb") as file:
        assert os.pread(file.fileno(), 20_000, 0) == b""
    assert keeper._process.returncode == 0
