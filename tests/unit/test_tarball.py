"""Layers as a tar stream, and Docker's attach stream as bytes: the two forms Docker speaks."""

import asyncio
import io
import os
import socket
import struct
import tarfile
from pathlib import Path

from gymsuite.sandbox.accounts import Account
from gymsuite.sandbox.attach import AttachStream
from gymsuite.sandbox.tarball import tar_stream


def unpacked(layers: list[Path]) -> dict[str, tarfile.TarInfo]:
    with tarfile.open(fileobj=io.BytesIO(b"".join(tar_stream(layers, Account(5, 6, "/"))))) as tar:
        return {member.name: member for member in tar}


def test_a_tar_holds_what_the_layers_show_and_all_of_it_has_one_owner(tmp_path: Path) -> None:
    low, high = tmp_path / "low", tmp_path / "high"
    (low / "dir").mkdir(parents=True)
    high.mkdir()
    (low / "dir/tool").write_text("low")
    (low / "dir/tool").chmod(0o755)
    os.link(low / "dir/tool", low / "twin")
    (low / "gone").write_text("x")
    os.mknod(high / "gone", 0o020000, os.makedev(0, 0))
    (high / "link").symlink_to("dir/tool")
    (high / "b\udcffd").write_text("not UTF-8")
    members = unpacked([low, high])
    assert sorted(members) == ["b\udcffd", "dir", "dir/tool", "link", "twin"]
    assert {(one.uid, one.gid, one.uname) for one in members.values()} == {(5, 6, "")}
    assert members["dir/tool"].mode == 0o755
    assert members["link"].linkname == "dir/tool"
    assert (members["twin"].islnk(), members["twin"].linkname) == (True, "dir/tool")


def test_a_large_tree_comes_in_pieces(tmp_path: Path) -> None:
    for number in range(8):
        (tmp_path / str(number)).write_bytes(os.urandom(1 << 20))
    chunks = list(tar_stream([tmp_path]))
    assert len(chunks) > 3
    assert max(map(len, chunks)) < 3 << 20


def frame(kind: int, data: bytes) -> bytes:
    return struct.pack(">BxxxL", kind, len(data)) + data


def send(connection: socket.socket, data: bytes) -> None:
    connection.sendall(data)
    connection.shutdown(socket.SHUT_WR)


def received(sent: bytes) -> tuple[bytes, str]:
    async def talk() -> tuple[bytes, str]:
        ours, theirs = socket.socketpair()
        with theirs:
            stream = AttachStream(ours)
            data = bytearray()
            ended = asyncio.Event()
            stream.start(data.extend, lambda _: ended.set())
            await asyncio.to_thread(send, theirs, sent)
            await asyncio.wait_for(ended.wait(), 30)
            complaint = stream.complaint
            await stream.close()
        return bytes(data), complaint

    return asyncio.run(talk())


def test_frames_of_stdout_are_joined_and_stderr_is_kept_apart() -> None:
    sent = frame(1, b"hello ") + frame(2, b"a warning\n") + frame(1, b"") + frame(1, b"world")
    assert received(sent) == (b"hello world", "a warning")


def test_a_connection_that_breaks_in_a_frame_is_at_its_end() -> None:
    assert received(frame(1, b"whole") + frame(1, b"half")[:-2]) == (b"wholeha", "")
    assert received(frame(1, b"whole") + b"\1\0\0") == (b"whole", "")


def test_endless_complaints_take_no_memory() -> None:
    flood = b"".join(frame(2, b"x" * 70_000) for _ in range(40))
    data, complaint = received(flood + frame(1, b"done"))
    assert data == b"done"
    assert len(complaint) <= 1 << 16
