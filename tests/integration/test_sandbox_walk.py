"""What an exec server tells of a directory, in every provider."""

import asyncio
import stat

from gymsuite import Sandbox
from gymsuite.sandbox.transfer import Walk, walk
from gymsuite.sandbox.verbs import Verbs

from .conftest import InSandbox

PATIENCE = 60.0


def channel_walk(sandbox: Sandbox, root: str, **caps: int) -> "asyncio.Task[Walk]":
    verbs = vars(sandbox)["_verbs"]
    assert isinstance(verbs, Verbs)
    return asyncio.create_task(walk(verbs.channel, root, **caps))


async def run(sandbox: Sandbox, script: str) -> bytes:
    result = await sandbox.exec(script, timeout=PATIENCE)
    assert result.exit_code == 0, result.output
    return result.stdout


def test_a_socket_is_seen(in_sandbox: InSandbox) -> None:
    program = "import socket; socket.socket(socket.AF_UNIX).bind('d/s')"

    async def body(sandbox: Sandbox) -> Walk:
        await run(sandbox, f'mkdir d; python3 -c "{program}"')
        return await channel_walk(sandbox, "/workspace/d")

    assert [stat.S_ISSOCK(entry.mode) for entry in in_sandbox(body).entries] == [True]


def test_modes_hide_nothing(in_sandbox: InSandbox) -> None:
    async def body(sandbox: Sandbox) -> Walk:
        await run(sandbox, "mkdir -p d/hidden/deep; echo found > d/hidden/deep/file")
        await run(sandbox, "chmod 000 d/hidden/deep/file d/hidden/deep d/hidden")
        return await channel_walk(sandbox, "/workspace/d")

    found = in_sandbox(body)
    assert [entry.path for entry in found.entries] == ["hidden", "hidden/deep", "hidden/deep/file"]
    assert found.skipped == ()


def test_thousands_of_files_are_seen(in_sandbox: InSandbox) -> None:
    script = (
        "mkdir many; cd many; for d in $(seq 40); do mkdir $d; (cd $d; seq 50 | xargs touch); done"
    )

    async def body(sandbox: Sandbox) -> Walk:
        await run(sandbox, script)
        return await channel_walk(sandbox, "/workspace/many")

    found = in_sandbox(body)
    assert len({entry.path for entry in found.entries}) == len(found.entries) == 2_040
    assert found.complete


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


def test_a_directory_that_changes_all_the_time_is_walked_to_an_end(in_sandbox: InSandbox) -> None:
    script = (
        "mkdir -p d/1 d/2; seq 1000 | (cd d/1; xargs touch); setsid sh -c 'while :; do"
        " for i in 1 2 3 4; do echo $i >> d/log; mv d/1/$i d/2/$i; mkdir d/1/$i; done;"
        " rmdir d/1/[1-4]; mv d/2/* d/1; done' >/dev/null 2>&1 &"
    )

    async def body(sandbox: Sandbox) -> list[Walk]:
        await run(sandbox, script)
        return [await channel_walk(sandbox, "/workspace/d") for _ in range(20)]

    walks = in_sandbox(body)
    assert all(found.complete and len(found.entries) >= 900 for found in walks)
