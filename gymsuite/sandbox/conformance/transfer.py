"""Directories, up and down: whole, with their modes, and never outside either root."""

import asyncio
import os
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from gymsuite.errors import PathRefused
from gymsuite.sandbox.conformance.case import PATIENCE, Case, alive, done, expect, inside, same
from gymsuite.sandbox.conformance.files import refused
from gymsuite.sandbox.protocol import Sandbox

GROUP = "transfer"
_ODD = b"odd\n \xff\xfe'\"*"
_UNFIT = (
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
)
Shape = dict[str, tuple[int, bytes]]


@contextmanager
def _source() -> Iterator[tuple[Path, Path]]:
    """A directory with one of each, and a place beside it."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder) / "source"
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
        Path(os.fsdecode(os.fsencode(root) + b"/" + _ODD)).write_bytes(b"odd")
        try:
            yield root, Path(folder)
        finally:
            _unlock(Path(folder))


def _shape(root: Path) -> Shape:
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


async def a_directory_makes_the_round_trip(sandbox: Sandbox) -> None:
    with _source() as (source, beside):
        await sandbox.upload(source, "new/place")
        await sandbox.download("/workspace/new/place", beside / "down")
        # On this machine, an owner can remove what is the owner's.
        _unlock(beside)
        found, wanted = _shape(beside / "down"), _shape(source)
    script = "cd new/place; cat up/file deep/link | wc -c; stat -c %a large locked"
    same(await done(sandbox, script), b"512\n444\n555\n")
    expect(found == wanted, "what came back is not what went in")


async def an_upload_replaces_files_and_links_and_keeps_what_else_is_there(
    sandbox: Sandbox,
) -> None:
    script = "mkdir -p at/deep; echo old > at/deep/own; echo precious > own; mkfifo at/up;"
    await done(sandbox, script + "ln -s ../own at/run.sh; ln -s ../../own at/deep/nothing")
    with _source() as (source, _):
        await asyncio.wait_for(sandbox.upload(source, "at"), PATIENCE)
        await sandbox.upload(source, "at")
    script = "cat own at/deep/own at/run.sh; readlink at/up; stat -c %F at/up"
    same(await done(sandbox, script), b"precious\nold\n#!/bin/sh\ndeep/er\nsymbolic link\n")


async def an_upload_never_goes_through_a_link_that_was_planted(sandbox: Sandbox) -> None:
    with _source() as (source, _):
        for place in ("at/deep", "at/empty"):
            await done(
                sandbox, f"rm -rf at; mkdir -p at elsewhere; ln -s /workspace/elsewhere {place}"
            )
            await refused(sandbox.upload(source, "at"), "cannot make")
    same(await done(sandbox, "ls elsewhere"), b"")


async def a_directory_that_is_swapped_for_a_link_again_and_again_leads_nowhere(
    sandbox: Sandbox,
) -> None:
    script = (
        "mkdir -p at/deep out; echo > out/canary;"
        "setsid sh -c 'while :; do mv at/deep at/.d; ln -s ../out at/deep; rm at/deep;"
        " mv at/.d at/deep; done' >/dev/null 2>&1 &"
    )
    await done(sandbox, script)
    with _source() as (source, beside):
        for number in range(30):
            try:
                await sandbox.upload(source, "at")
                await sandbox.download("at", beside / str(number))
            except PathRefused:
                continue
        strays = [path for path in beside.rglob("canary") if not path.parent.is_symlink()]
    same(strays, [])
    same(await done(sandbox, "ls out"), b"canary\n")


def _unlock(root: Path) -> None:
    for path in root.glob("*/locked"):
        path.chmod(0o755)


async def a_directory_with_what_must_not_come_out_is_refused_whole(sandbox: Sandbox) -> None:
    with tempfile.TemporaryDirectory() as folder:
        for script, reason in _UNFIT:
            await done(sandbox, f"rm -rf d; mkdir d; {script}")
            down = sandbox.download("d", Path(folder) / "down", max_bytes=10**8, max_files=2000)
            await refused(down, reason)
            same(_shape(Path(folder)), {})
    await alive(sandbox)


async def a_socket_is_not_downloaded(sandbox: Sandbox) -> None:
    program = "import socket; socket.socket(socket.AF_UNIX).bind('d/s')"
    await done(sandbox, f'mkdir d; python3 -c "{program}"')
    with tempfile.TemporaryDirectory() as folder:
        await refused(sandbox.download("d", Path(folder) / "down"), "'s'")


async def modes_hide_nothing_and_are_left_as_they_were(sandbox: Sandbox) -> None:
    await done(sandbox, "mkdir -p d/hidden/deep; echo found > d/hidden/deep/file")
    await done(sandbox, "chmod 000 d/hidden/deep/file d/hidden/deep d/hidden")
    with tempfile.TemporaryDirectory() as folder:
        await sandbox.download("d", Path(folder) / "down")
        same(_shape(Path(folder) / "down")["hidden/deep/file"][1], b"found\n")
    modes = "stat -c %a d/hidden; chmod 700 d/hidden; stat -c %a d/hidden/deep"
    same(await done(sandbox, modes), b"0\n0\n")


async def what_comes_down_is_neither_setuid_nor_for_others_to_write(sandbox: Sandbox) -> None:
    await done(sandbox, "mkdir d; cp /bin/true d/a; chmod 6777 d/a; mkdir -m 7777 d/b")
    with tempfile.TemporaryDirectory() as folder:
        await sandbox.download("d", Path(folder) / "down")
        modes = {name: mode & 0o7022 for name, (mode, _) in _shape(Path(folder) / "down").items()}
    same(modes, {"a": 0, "b": 0})


async def thousands_of_files_make_the_round_trip(sandbox: Sandbox) -> None:
    with tempfile.TemporaryDirectory() as folder:
        source, down = Path(folder) / "source", Path(folder) / "down"
        _many(source)
        await sandbox.upload(source, "many")
        await sandbox.download("many", down)
        expect(_shape(down) == _shape(source), "what came back is not what went in")


def _many(source: Path) -> None:
    for number in range(40):
        (source / str(number)).mkdir(parents=True)
        for file in range(50):
            (source / f"{number}/{file}").write_bytes(b"%d" % (number * file))


async def a_directory_that_changes_all_the_time_comes_down_all_the_same(sandbox: Sandbox) -> None:
    script = (
        "mkdir -p d/1 d/2; seq 1000 | (cd d/1; xargs touch); setsid sh -c 'while :; do"
        " for i in 1 2 3 4; do echo $i >> d/log; mv d/1/$i d/2/$i; mkdir d/1/$i; done;"
        " rmdir d/1/[1-4]; mv d/2/* d/1; done' >/dev/null 2>&1 &"
    )
    await done(sandbox, script)
    with tempfile.TemporaryDirectory() as folder:
        await sandbox.download("d", Path(folder) / "down")
        expect("1/500" in _shape(Path(folder) / "down"), "a file that nobody touched is missing")


CASES: tuple[Case, ...] = tuple(
    inside(GROUP, body)
    for body in (
        a_directory_makes_the_round_trip,
        an_upload_replaces_files_and_links_and_keeps_what_else_is_there,
        an_upload_never_goes_through_a_link_that_was_planted,
        a_directory_that_is_swapped_for_a_link_again_and_again_leads_nowhere,
        a_directory_with_what_must_not_come_out_is_refused_whole,
        a_socket_is_not_downloaded,
        modes_hide_nothing_and_are_left_as_they_were,
        what_comes_down_is_neither_setuid_nor_for_others_to_write,
        thousands_of_files_make_the_round_trip,
        a_directory_that_changes_all_the_time_comes_down_all_the_same,
    )
)
