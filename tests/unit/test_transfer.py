"""What a sandbox says it has in a directory is an adversary's word: what becomes of it here."""

import asyncio
import os
import stat
import struct
from collections.abc import Callable, Coroutine, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from gymsuite.errors import PathRefused, SandboxDead, SandboxError, UsageError
from gymsuite.sandbox import wire
from gymsuite.sandbox.channel import Channel
from gymsuite.sandbox.gathering import batches
from gymsuite.sandbox.transfer import download, upload, walk

HELLO = struct.pack("<IIBI", 9, 0, 0x80, wire.VERSION)
MORE, DONE, TOO_MANY, TOO_LARGE, FAILED = range(5)
FILE, DIRECTORY, LINK = stat.S_IFREG | 0o644, stat.S_IFDIR | 0o755, stat.S_IFLNK | 0o777
HANDLE = 7


def entry(path: str, mode: int = FILE, size: int = 0) -> bytes:
    name = path.encode("utf-8", "surrogateescape")
    return struct.pack("<BIQQqqI", 1, mode, 1, size, 5, 6, len(name)) + name


def data(content: bytes) -> bytes:
    return struct.pack("<BI", 2, len(content)) + content


def skipped(path: str, error: int) -> bytes:
    return struct.pack("<BII", 3, error, len(path)) + path.encode()


def link(path: str, target: str) -> bytes:
    return entry(path, LINK) + data(target.encode("utf-8", "surrogateescape"))


def file(path: str, content: bytes = b"x") -> bytes:
    return entry(path) + data(content)


def piece(*records: bytes, state: int = DONE, error: int = 0) -> bytes:
    return struct.pack("<BII", state, error, HANDLE) + b"".join(records)


class Server:
    """An exec server that answers its requests with what was prepared, whatever they are."""

    def __init__(self, answers: Sequence[bytes]) -> None:
        self.requests: list[tuple[int, bytes]] = []
        self._answers = list(answers)

    def start(
        self, received: Callable[[bytes], None], ended: Callable[[OSError | None], None], /
    ) -> None:
        self._received = received
        received(HELLO)

    def send(self, message: bytes, /) -> None:
        _, request, kind = struct.unpack_from("<IIB", message)
        self.requests.append((kind, message[9:]))
        if kind != wire.Request.CANCEL and self._answers:
            answer = self._answers.pop(0)
            self._received(struct.pack("<IIB", 5 + len(answer), request, kind | 0x80) + answer)

    async def close(self) -> None:
        pass

    def kinds(self) -> list[int]:
        return [kind for kind, _ in self.requests]


Body = Callable[[Channel], Coroutine[Any, Any, Any]]


def answered(body: Body, *answers: bytes) -> tuple[Any, Server]:
    """Run something over a channel whose server gives these answers."""

    async def main() -> tuple[Any, Server]:
        server = Server(answers)
        channel = Channel(server, grace=30)
        await channel.open(within=30)
        try:
            async with asyncio.timeout(30):
                result = await body(channel)
                await asyncio.sleep(0)
                return result, server
        finally:
            await channel.close()

    return asyncio.run(main())


def fetch(target: Path, *answers: bytes, max_bytes: int = 1000, max_files: int = 10) -> Server:
    async def body(channel: Channel) -> None:
        await download(channel, "/d", target, max_bytes=max_bytes, max_files=max_files)

    return answered(body, *answers)[1]


def refused(folder: Path, *records: bytes, **caps: int) -> str:
    """Say why a download is refused, which leaves nothing."""
    with pytest.raises(PathRefused) as error:
        fetch(folder / "target", piece(*records), **caps)
    assert list(folder.iterdir()) == []
    assert not error.value.retryable
    return str(error.value)


HOSTILE_PATHS = {
    "up": "../outside",
    "up from below": "d/../../outside",
    "only up": "..",
    "up and back": "d/../file",
    "absolute": "/etc/cron.d/job",
    "empty": "",
    "an empty part": "d//file",
    "a slash at its end": "file/",
    "itself": ".",
    "itself below": "d/.",
    "a NUL": "fi\0le",
    "a long name": "n" * 256,
    "a long path": "/".join(["n" * 200] * 20),
    "nowhere": "absent/file",
}


@pytest.mark.parametrize("path", HOSTILE_PATHS.values(), ids=HOSTILE_PATHS)
@pytest.mark.parametrize("mode", [FILE, DIRECTORY, LINK])
def test_a_member_that_is_not_below_its_directory_is_refused(
    tmp_path: Path, path: str, mode: int
) -> None:
    complaint = refused(tmp_path, entry("d", DIRECTORY), entry(path, mode), max_bytes=10_000)
    assert repr(path[:200]) in complaint


@pytest.mark.parametrize(
    "kind", [stat.S_IFIFO, stat.S_IFSOCK, stat.S_IFCHR, stat.S_IFBLK, 0, 0xF000, 0x30000]
)
def test_a_member_that_is_no_file_directory_or_link_is_refused(tmp_path: Path, kind: int) -> None:
    assert "'d/odd'" in refused(tmp_path, entry("d", DIRECTORY), entry("d/odd", kind | 0o644))


@pytest.mark.parametrize(
    ("path", "target"),
    [
        ("l", "/etc/passwd"),
        ("l", ".."),
        ("l", "../x"),
        ("d/l", "../.."),
        ("d/l", "../../target/d"),
        ("d/l", "x/../../.."),
        ("l", "d/../.."),
        ("l", "d/.."),
        ("l", "./../x"),
        ("l", ""),
        ("l", "a\0b"),
        ("l", "n" * 4096),
    ],
)
def test_a_link_that_leads_out_or_might_is_refused(tmp_path: Path, path: str, target: str) -> None:
    complaint = refused(tmp_path, entry("d", DIRECTORY), link(path, target), max_bytes=10_000)
    assert repr(path) in complaint


@pytest.mark.parametrize(
    "records",
    [
        [file("name"), file("name")],
        [file("name"), link("name", "d")],
        [link("name", "d"), file("name")],
        [link("name", "d"), entry("name", DIRECTORY)],
        [entry("name", DIRECTORY), link("name", "d")],
        [entry("name", DIRECTORY), entry("name", DIRECTORY)],
        [link("name", "d"), file("name/below")],
        [link("name", "."), entry("name/below", DIRECTORY)],
        [link("name", "d"), link("name/below", "x")],
        [file("name"), file("name/below")],
        [entry("name", LINK), file("other")],
        [entry("name", LINK)],
        [entry("name", DIRECTORY), data(b"of a directory")],
        [link("name", "d"), data(b"another target")],
        [file("other"), skipped("name", 13)],
    ],
)
def test_members_that_fight_for_a_place_or_make_no_sense_are_refused(
    tmp_path: Path, records: list[bytes]
) -> None:
    assert "'name" in refused(tmp_path, entry("d", DIRECTORY), *records)


def test_contents_that_come_first_belong_to_nothing_and_are_refused(tmp_path: Path) -> None:
    assert "no file" in refused(tmp_path, data(b"x"))


def test_more_than_was_allowed_is_refused_whatever_the_server_promised(tmp_path: Path) -> None:
    assert "'b'" in refused(tmp_path, file("a"), file("b"), max_files=1)
    assert "'a'" in refused(tmp_path, file("a", b"12345678"), max_bytes=8)
    assert "'nnn'" in refused(tmp_path, entry("a"), entry("nnn"), max_bytes=3)


@pytest.mark.parametrize(("state", "reason"), [(TOO_MANY, "more than 10"), (TOO_LARGE, "larger")])
def test_a_cap_that_the_server_kept_is_a_refusal(tmp_path: Path, state: int, reason: str) -> None:
    with pytest.raises(PathRefused, match=reason):
        fetch(tmp_path / "target", piece(file("a"), state=state))
    assert list(tmp_path.iterdir()) == []


def test_what_is_no_directory_is_refused_by_its_name(tmp_path: Path) -> None:
    with pytest.raises(PathRefused, match="/d: Not a directory"):
        fetch(tmp_path / "target", piece(state=FAILED, error=20))


def test_an_honest_directory_arrives_whole_piece_by_piece(tmp_path: Path) -> None:
    odd = "odd \udcff\nname"
    server = fetch(
        tmp_path / "deep/target",
        piece(entry("d", DIRECTORY), entry("d/empty", DIRECTORY), entry("d/f"), state=MORE),
        piece(state=MORE),
        piece(data(b"one "), data(b"two"), link("d/l", "../d/f"), link("up", "d/empty")),
    )
    target = tmp_path / "deep/target"
    assert server.kinds() == [wire.Request.PACK, wire.Request.NEXT, wire.Request.NEXT]
    assert (target / "d/l").read_bytes() == b"one two"
    assert [path.name for path in (target / "up").iterdir()] == []
    assert [path.name for path in target.parent.iterdir()] == ["target"]
    fetch(tmp_path / "other", piece(file(odd)))
    assert [path.name for path in (tmp_path / "other").iterdir()] == [odd]


def test_an_empty_directory_is_a_directory(tmp_path: Path) -> None:
    fetch(tmp_path / "target", piece())
    assert list((tmp_path / "target").iterdir()) == []


@pytest.fixture(params=[0o022, 0o077])
def umask(request: pytest.FixtureRequest) -> Iterator[int]:
    before = os.umask(request.param)
    yield request.param
    os.umask(before)


@pytest.mark.usefixtures("umask")
def test_no_mode_gives_power_to_others_or_locks_the_owner_out(tmp_path: Path) -> None:
    modes = {"all": 0o7777, "none": 0, "read": 0o444, "run": 0o755}
    files = [entry(name, stat.S_IFREG | mode) for name, mode in modes.items()]
    directories = [entry(f"d{name}", stat.S_IFDIR | mode) for name, mode in modes.items()]
    mask = os.umask(0)
    try:
        fetch(tmp_path / "target", piece(*files, *directories))
    finally:
        os.umask(mask)
    found = {
        path.name: stat.S_IMODE(path.lstat().st_mode) for path in (tmp_path / "target").iterdir()
    }
    assert found == {
        "all": 0o755,
        "none": 0o400,
        "read": 0o444,
        "run": 0o755,
        "dall": 0o755,
        "dnone": 0o700,
        "dread": 0o744,
        "drun": 0o755,
    }


def test_a_target_that_exists_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "target").mkdir()
    with pytest.raises(UsageError, match="exists"):
        fetch(tmp_path / "target", piece(file("a")))
    (tmp_path / "link").symlink_to("nowhere")
    with pytest.raises(UsageError, match="exists"):
        fetch(tmp_path / "link", piece(file("a")))
    assert list((tmp_path / "target").iterdir()) == []


def test_nothing_is_seen_of_a_download_that_is_cancelled(tmp_path: Path) -> None:
    def written() -> bool:
        return any(tmp_path.rglob("a"))

    async def body(channel: Channel) -> None:
        task = asyncio.create_task(download(channel, "/d", tmp_path / "target"))
        while not written():  # noqa: ASYNC110 - a thread writes it
            await asyncio.sleep(0.001)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    _, server = answered(body, piece(file("a"), state=MORE))
    assert list(tmp_path.iterdir()) == []
    assert (wire.Request.CANCEL, struct.pack("<I", HANDLE)) in server.requests


def test_a_server_is_told_to_forget_a_walk_that_was_refused(tmp_path: Path) -> None:
    async def body(channel: Channel) -> None:
        with pytest.raises(PathRefused):
            await download(channel, "/d", tmp_path / "target")

    _, server = answered(body, piece(file("../a"), state=MORE))
    assert server.requests[-1] == (wire.Request.CANCEL, struct.pack("<I", HANDLE))


@pytest.mark.parametrize(
    "answer",
    [
        b"",
        b"\0" * 8,
        struct.pack("<BII", 5, 0, 0),
        piece(b"\4"),
        piece(b"\1"),
        piece(entry("a")[:-1]),
        piece(data(b"abc")[:-1]),
        piece(struct.pack("<BI", 2, 0xFFFFFFFF)),
        piece(skipped("a", 1)[:-1]),
    ],
)
def test_records_that_cannot_be_read_are_a_dead_sandbox(tmp_path: Path, answer: bytes) -> None:
    with pytest.raises(SandboxDead, match="broke the protocol"):
        fetch(tmp_path / "target", answer)
    assert list(tmp_path.iterdir()) == []


def test_a_walk_tells_what_is_there_and_what_it_could_not_see() -> None:
    async def body(channel: Channel) -> Any:
        return await walk(channel, "/d", max_files=3)

    first = piece(entry("d", DIRECTORY), skipped("d", 13), state=MORE)
    found, _ = answered(body, first, piece(entry("f", FILE, 9), state=TOO_MANY))
    assert [(e.path, e.mode, e.size, e.ctime_ns) for e in found.entries] == [
        ("d", DIRECTORY, 0, 5),
        ("f", FILE, 9, 5),
    ]
    assert (found.skipped, found.complete) == ((("d", 13),), False)


def test_an_upload_sends_links_as_links_and_locks_directories_when_they_are_full(
    tmp_path: Path,
) -> None:
    (tmp_path / "d").mkdir()
    (tmp_path / "d/f").write_bytes(b"content")
    (tmp_path / "out").symlink_to("/etc/passwd")
    (tmp_path / "d").chmod(0o500)
    made = b"".join(batches(tmp_path))
    assert made.index(b"d/f\0") < made.index(struct.pack("<BI", 5, 0o500))
    assert b"/etc/passwd\0" in made
    assert b"root:" not in made


def test_an_upload_of_what_cannot_be_sent_is_the_callers_mistake(tmp_path: Path) -> None:
    async def body(channel: Channel) -> None:
        with pytest.raises(UsageError, match="no-such"):
            await upload(channel, tmp_path / "no-such", "/d")
        os.mkfifo(tmp_path / "fifo")
        with pytest.raises(UsageError, match="fifo"):
            await upload(channel, tmp_path, "/d")

    answered(body)


@pytest.mark.parametrize(
    ("error", "kind"), [(20, PathRefused), (28, PathRefused), (5, SandboxError)]
)
def test_an_upload_that_is_refused_names_the_member(
    tmp_path: Path, error: int, kind: type[SandboxError]
) -> None:
    async def body(channel: Channel) -> str:
        with pytest.raises(SandboxError) as caught:
            await upload(channel, tmp_path, "/d")
        assert type(caught.value) is kind
        return str(caught.value)

    (tmp_path / "f").write_bytes(b"")
    complaint, _ = answered(body, struct.pack("<I", error) + b"f")
    assert "cannot make f in /d" in complaint
