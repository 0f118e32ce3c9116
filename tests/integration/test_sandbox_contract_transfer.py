"""What holds in every provider for directories: up, down, and looked at."""

import asyncio
import contextlib
import os
import stat
from pathlib import Path
from typing import Any

import pytest

from gymsuite import Sandbox
from gymsuite.errors import PathRefused
from gymsuite.sandbox.transfer import Walk, walk
from gymsuite.sandbox.verbs import Verbs
from tests.integration.conftest import InSandbox

PATIENCE = 60.0
ODD = b"odd\n \xff\xfe'\"*"


def channel_walk(sandbox: Sandbox, root: str, **caps: int) -> "asyncio.Task[Walk]":
    verbs = vars(sandbox)["_verbs"]
    assert isinstance(verbs, Verbs)
    return asyncio.create_task(walk(verbs.channel, root, **caps))


async def run(sandbox: Sandbox, script: str) -> bytes:
    result = await sandbox.exec(script, timeout=PATIENCE)
    assert result.exit_code == 0, result.output
    return result.stdout


def shape(root: Path) -> dict[str, tuple[int, bytes]]:
    """Every path below a directory, with its mode and its contents or its target."""
    found = {}
    for path in root.rglob("*"):
        mode = path.lstat().st_mode
        if stat.S_ISLNK(mode):
            content = os.fsencode(path.readlink())
        else:
            content = path.read_bytes() if stat.S_ISREG(mode) else b""
        found[str(path.relative_to(root))] = (mode, content)
    return found


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """A directory with one of each."""
    root = tmp_path / "source"
    (root / "deep/er").mkdir(parents=True)
    (root / "empty").mkdir()
    (root / "run.sh").write_text("#!/bin/sh\n")
    (root / "run.sh").chmod(0o755)
    (root / "deep/er/file").write_bytes(bytes(range(256)))
    (root / "deep/nothing").touch()
    (root / "deep/link").symlink_to("er/file")
    (root / "up").symlink_to("deep/er")
    (root / "large").write_bytes(os.urandom(1_500_000))
    (root / "large").chmod(0o444)
    (root / "locked").mkdir()
    (root / "locked/file").write_text("inside")
    (root / "locked").chmod(0o555)
    Path(os.fsdecode(os.fsencode(root) + b"/" + ODD)).write_bytes(b"odd")
    return root


def test_a_directory_makes_the_round_trip(
    in_sandbox: InSandbox, source: Path, tmp_path: Path
) -> None:
    async def body(sandbox: Sandbox) -> bytes:
        await sandbox.upload(source, "new/place")
        await sandbox.download("/workspace/new/place", tmp_path / "down")
        return await run(
            sandbox, "cd new/place; cat up/file deep/link | wc -c; stat -c %a large locked"
        )

    assert in_sandbox(body) == b"512\n444\n555\n"
    # On this machine, an owner can remove what is the owner's.
    (source / "locked").chmod(0o755)
    assert shape(tmp_path / "down") == shape(source)


def test_an_upload_replaces_files_and_links_and_keeps_what_else_is_there(
    in_sandbox: InSandbox, source: Path
) -> None:
    async def body(sandbox: Sandbox) -> bytes:
        script = "mkdir -p at/deep; echo old > at/deep/own; echo precious > own; mkfifo at/up;"
        await run(sandbox, script + "ln -s ../own at/run.sh; ln -s ../../own at/deep/nothing")
        await asyncio.wait_for(sandbox.upload(source, "at"), PATIENCE)
        await sandbox.upload(source, "at")
        return await run(sandbox, "cat own at/deep/own at/run.sh; readlink at/up; stat -c %F at/up")

    assert in_sandbox(body) == b"precious\nold\n#!/bin/sh\ndeep/er\nsymbolic link\n"


@pytest.mark.parametrize("place", ["at/deep", "at/empty"])
def test_an_upload_never_goes_through_a_link_that_was_planted(
    in_sandbox: InSandbox, source: Path, place: str
) -> None:
    async def body(sandbox: Sandbox) -> bytes:
        await run(sandbox, f"mkdir -p at elsewhere; ln -s /workspace/elsewhere {place}")
        with pytest.raises(PathRefused, match="cannot make"):
            await sandbox.upload(source, "at")
        return await run(sandbox, "ls elsewhere")

    assert in_sandbox(body) == b""


def test_a_directory_that_is_swapped_for_a_link_again_and_again_leads_nowhere(
    in_sandbox: InSandbox, source: Path, tmp_path: Path
) -> None:
    script = (
        "mkdir -p at/deep out; echo > out/canary;"
        "setsid sh -c 'while :; do mv at/deep at/.d; ln -s ../out at/deep; rm at/deep;"
        " mv at/.d at/deep; done' >/dev/null 2>&1 &"
    )

    async def body(sandbox: Sandbox) -> bytes:
        await run(sandbox, script)
        for number in range(30):
            try:
                await sandbox.upload(source, "at")
                await sandbox.download("at", tmp_path / str(number))
            except PathRefused:
                continue
        return await run(sandbox, "ls out")

    assert in_sandbox(body) == b"canary\n"
    assert not [path for path in tmp_path.rglob("canary") if not path.parent.is_symlink()]


@pytest.mark.parametrize(
    ("script", "reason"),
    [
        ("mkfifo d/odd", "'odd': it is no file"),
        ("ln -s /etc d/odd", "'odd': it links to '/etc', an absolute path"),
        ("ln -s ../../etc d/odd", "'odd': it links to"),
        ("truncate -s 2G d/odd", "larger than"),
        ("seq 3000 | (cd d; xargs touch)", "more than 2000 members"),
        ("rmdir d; ln -s absent d", "No such file"),
        ("rmdir d; echo > d", "Not a directory"),
        ("rmdir d; mkfifo d", "Not a directory"),
        ("rmdir d; ln -s /proc/1 d", "Invalid argument"),
        ("rmdir d; ln -s d d", "Too many levels"),
    ],
)
def test_a_directory_with_what_must_not_come_out_is_refused_whole(
    in_sandbox: InSandbox, tmp_path: Path, script: str, reason: str
) -> None:
    async def body(sandbox: Sandbox) -> str:
        await run(sandbox, f"mkdir d; {script}")
        with pytest.raises(PathRefused) as error:
            await asyncio.wait_for(
                sandbox.download("d", tmp_path / "down", max_bytes=10**8, max_files=2000), PATIENCE
            )
        assert await run(sandbox, "echo alive") == b"alive\n"
        return str(error.value)

    assert reason in in_sandbox(body)
    assert list(tmp_path.iterdir()) == []


def test_a_socket_is_seen_and_not_downloaded(in_sandbox: InSandbox, tmp_path: Path) -> None:
    program = "import socket; socket.socket(socket.AF_UNIX).bind('d/s')"

    async def body(sandbox: Sandbox) -> Any:
        await run(sandbox, "mkdir d")
        result = await sandbox.exec(["python3", "-c", program], timeout=PATIENCE)
        assert result.exit_code == 0, result.output
        with pytest.raises(PathRefused, match="'s'"):
            await sandbox.download("d", tmp_path / "down")
        return [
            stat.S_ISSOCK(entry.mode)
            for entry in (await channel_walk(sandbox, "/workspace/d")).entries
        ]

    assert in_sandbox(body) == [True]


def test_modes_hide_nothing_and_are_left_as_they_were(
    in_sandbox: InSandbox, tmp_path: Path
) -> None:
    async def body(sandbox: Sandbox) -> tuple[bytes, Walk]:
        await run(sandbox, "mkdir -p d/hidden/deep; echo found > d/hidden/deep/file")
        await run(sandbox, "chmod 000 d/hidden/deep/file d/hidden/deep d/hidden")
        await sandbox.download("d", tmp_path / "down")
        found = await channel_walk(sandbox, "/workspace/d")
        modes = "stat -c %a d/hidden; chmod 700 d/hidden; stat -c %a d/hidden/deep"
        return await run(sandbox, modes), found

    modes, found = in_sandbox(body)
    assert modes == b"0\n0\n"
    assert (tmp_path / "down/hidden/deep/file").read_bytes() == b"found\n"
    assert [entry.path for entry in found.entries] == ["hidden", "hidden/deep", "hidden/deep/file"]
    assert found.skipped == ()


def test_thousands_of_files_are_seen_and_make_the_round_trip(
    in_sandbox: InSandbox, tmp_path: Path
) -> None:
    for number in range(40):
        (tmp_path / f"source/{number}").mkdir(parents=True)
        for file in range(50):
            (tmp_path / f"source/{number}/{file}").write_bytes(b"%d" % (number * file))

    async def body(sandbox: Sandbox) -> Walk:
        await sandbox.upload(tmp_path / "source", "many")
        await sandbox.download("many", tmp_path / "down")
        return await channel_walk(sandbox, "/workspace/many")

    found = in_sandbox(body)
    assert len({entry.path for entry in found.entries}) == len(found.entries) == 2_040
    assert found.complete
    assert shape(tmp_path / "down") == shape(tmp_path / "source")


def test_other_commands_go_on_while_many_files_are_walked(
    in_sandbox: InSandbox,
) -> None:
    async def body(sandbox: Sandbox) -> tuple[int, bool, int]:
        await run(sandbox, "mkdir many; cd many; seq 20000 | xargs touch")
        task = channel_walk(sandbox, "/workspace/many", max_files=200_000)
        answers = 0
        while not task.done():
            assert await sandbox.read("plain.txt") == b"plain\n"
            answers += 1
        found = await task
        return len(found.entries), found.complete, answers

    count, complete, answers = in_sandbox(body)
    assert (count, complete) == (20_000, True)
    assert answers >= 2


def test_a_walk_of_more_than_was_asked_for_says_so(in_sandbox: InSandbox) -> None:
    async def body(sandbox: Sandbox) -> Walk:
        return await channel_walk(sandbox, "/workspace", max_files=3)

    found = in_sandbox(body)
    assert (len(found.entries), found.complete) == (3, False)


def test_a_walk_leaves_out_what_the_kernel_makes_up(in_sandbox: InSandbox) -> None:
    async def body(sandbox: Sandbox) -> tuple[str, Walk]:
        # The smallest place that has something of the kind.
        seen = await sandbox.exec("ls /dev/pts/ptmx", timeout=PATIENCE)
        if seen.exit_code == 0:
            return "pts", await channel_walk(sandbox, "/dev")
        return "proc", await channel_walk(sandbox, "/", max_files=1_000_000)

    place, found = in_sandbox(body)
    paths = {entry.path for entry in found.entries}
    assert place in paths
    assert not [path for path in paths if path.startswith(f"{place}/")]


def test_a_directory_deeper_than_anyone_looks_is_named(in_sandbox: InSandbox) -> None:
    script = "d=.; i=0; while [ $i -lt 300 ]; do d=$d/d; i=$((i+1)); done; mkdir -p $d"

    async def body(sandbox: Sandbox) -> Walk:
        await run(sandbox, script)
        return await channel_walk(sandbox, "/workspace/d")

    found = in_sandbox(body)
    assert len(found.skipped) == 1
    assert found.skipped[0].path.count("/") >= 200


def test_a_directory_that_changes_all_the_time_is_walked_to_an_end(
    in_sandbox: InSandbox, tmp_path: Path
) -> None:
    script = (
        "mkdir -p d/1 d/2; seq 1000 | (cd d/1; xargs touch); setsid sh -c 'while :; do"
        " for i in 1 2 3 4; do echo $i >> d/log; mv d/1/$i d/2/$i; mkdir d/1/$i; done;"
        " rmdir d/1/[1-4]; mv d/2/* d/1; done' >/dev/null 2>&1 &"
    )

    async def body(sandbox: Sandbox) -> list[Walk]:
        await run(sandbox, script)
        found = [await channel_walk(sandbox, "/workspace/d") for _ in range(20)]
        await sandbox.download("d", tmp_path / "down")
        return found

    walks = in_sandbox(body)
    assert all(found.complete and len(found.entries) >= 900 for found in walks)
    assert (tmp_path / "down/1/500").exists()


COUNTERS = ("memory.events", "memory/memory.oom_control", "pids.events", "pids/pids.events")


def test_a_link_to_what_the_server_holds_open_is_neither_read_nor_written(
    in_sandbox: InSandbox,
) -> None:
    async def body(sandbox: Sandbox) -> Any:
        links = " ".join(
            f"ln -s /proc/1/fd/{n} fd{n}; ln -s /proc/self/fd/{n} self{n};" for n in range(12)
        )
        await run(sandbox, links)
        names = [f"{kind}{number}" for kind in ("fd", "self") for number in range(12)]
        found = [await sandbox.read(name) for name in names]
        for name in names:
            with contextlib.suppress(PathRefused):
                await sandbox.write(name, b"x" * 100)
        # The counters of its cgroup have names that every command may read.
        counters = [await sandbox.read(f"/sys/fs/cgroup/{name}") for name in COUNTERS]
        assert [data for data in found if data not in (None, *counters)] == []
        return await run(sandbox, "echo alive")

    assert in_sandbox(body) == b"alive\n"
