"""Snapshots of the local provider: frozen where they are, shared, gone with their last image."""

import asyncio
import gc
import os
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from gymsuite import Sandbox, SandboxDead, SandboxError, SandboxSpec
from gymsuite.sandbox.image import Image
from gymsuite.sandbox.local import LocalHost, LocalSandbox, open_local

from .processes import KEPT, PATIENCE, assert_nothing_is_left, busy, parents

pytestmark = pytest.mark.local

SPEC = SandboxSpec(image="fixture")


async def run(sandbox: Sandbox, script: str) -> str:
    result = await sandbox.exec(script, timeout=PATIENCE)
    assert result.exit_code == 0, result.output
    return result.output


async def changed(sandbox: Sandbox) -> dict[str, bytes | None]:
    found = await sandbox.changes("/workspace")
    return {change.path: change.after and change.after.data for change in found.changed}


@asynccontextmanager
async def snapshot_of(host: LocalHost, image: Image, script: str) -> AsyncIterator[Image]:
    """The snapshot of a sandbox that ran a script, and is gone."""
    async with open_local(host, image, SPEC) as sandbox:
        await run(sandbox, script)
        frozen = await sandbox.snapshot()
    yield frozen


def open_descriptors() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


def kept(host: LocalHost) -> int:
    mounts = Path(f"/proc/{host.keeper().pid}/mountinfo").read_text().splitlines()
    return len([line for line in mounts if KEPT.fullmatch(line.split()[4])])


def test_a_sandbox_goes_on_above_its_snapshot_without_its_processes(
    local_host: LocalHost, local_image: Image
) -> None:
    async def main() -> None:
        async with open_local(local_host, local_image, SPEC) as sandbox:
            assert isinstance(sandbox, LocalSandbox)
            processes = await busy(sandbox)
            await run(sandbox, "echo one > one; echo more >> plain.txt; rm script.sh")
            await sandbox.snapshot()
            assert not processes & parents().keys()
            listing = await run(sandbox, "echo two > two; cat one two plain.txt; ls script.sh || :")
            assert listing.startswith("one\ntwo\nplain\nmore\n")
            assert await changed(sandbox) == {
                "/workspace/d/f": b"\n",
                "/workspace/one": b"one\n",
                "/workspace/two": b"two\n",
                "/workspace/plain.txt": b"plain\nmore\n",
                "/workspace/script.sh": None,
            }

    asyncio.run(main())
    assert_nothing_is_left(local_host, set())


def test_children_start_where_their_parent_stood_and_share_nothing_that_they_write(
    local_host: LocalHost, local_image: Image
) -> None:
    async def child(image: Image, number: int) -> tuple[str, dict[str, bytes | None]]:
        async with open_local(local_host, image, SPEC) as sandbox:
            seen = await run(sandbox, f"ls; cat prepared; echo {number} > prepared")
            return seen, await changed(sandbox)

    async def main() -> None:
        script = "echo ready > prepared; rm -r tree; mkdir tree; echo anew > tree/new.txt"
        async with snapshot_of(local_host, local_image, script) as image:
            children = await asyncio.gather(*(child(image, number) for number in range(5)))
        for number, (seen, changes) in enumerate(children):
            assert seen.endswith("ready\n")
            assert "tree" in seen
            assert changes == {
                "/workspace/prepared": f"{number}\n".encode(),
                "/workspace/tree/new.txt": b"anew\n",
                "/workspace/tree/one.txt": None,
                "/workspace/tree/deep/two.txt": None,
            }

    asyncio.run(main())


@pytest.mark.parametrize("left", ["mkfifo", "touch", "ln -s nowhere", "ln -s /workspace"])
def test_whatever_stands_where_the_workdir_was_can_be_frozen_and_started_from(
    local_host: LocalHost, local_image: Image, left: str
) -> None:
    async def main() -> list[str]:
        async with open_local(local_host, local_image, SPEC) as sandbox:
            await run(sandbox, f"cd /; rm -rf /workspace; {left} /workspace")
            frozen = await sandbox.snapshot()
            async with open_local(local_host, frozen, SPEC) as child:
                script = "cd /; echo ran"
                commands = [one.exec(script, timeout=PATIENCE, cwd="/") for one in (sandbox, child)]
                found = [result.output for result in await asyncio.gather(*commands)]
        other = SPEC.model_copy(update={"workdir": "/made/anew"})
        async with open_local(local_host, frozen, other) as child:
            return [*found, await run(child, "pwd")]

    assert asyncio.run(main()) == ["ran\n", "ran\n", "/made/anew\n"]


def test_changes_are_those_since_the_built_image_through_any_number_of_snapshots(
    local_host: LocalHost, local_image: Image
) -> None:
    steps: list[tuple[str, dict[str, bytes | None]]] = [
        ("rm -r tree; echo 1 > a", {"a": b"1\n", "tree/one.txt": None, "tree/deep/two.txt": None}),
        ("mkdir tree; echo one > tree/one.txt", {"a": b"1\n", "tree/deep/two.txt": None}),
        ("rm a plain.txt", {"tree/deep/two.txt": None, "plain.txt": None}),
        ("echo plain > plain.txt; mkdir -p tree/deep", {"tree/deep/two.txt": None}),
        ("rm -r tree; ln -s binary.dat tree", {"tree": b"binary.dat", "tree/one.txt": None,
                                               "tree/deep/two.txt": None}),
        ("rm tree; mkdir -p tree/deep; echo two > tree/deep/two.txt", {"tree/one.txt": None}),
    ]  # fmt: skip

    async def main() -> None:
        image, held = local_image, []
        for script, expected in steps:
            async with open_local(local_host, image, SPEC) as sandbox:
                await run(sandbox, script)
                wanted = {f"/workspace/{name}": data for name, data in expected.items()}
                assert await changed(sandbox) == wanted, script
                image = await sandbox.snapshot()
                assert await changed(sandbox) == wanted, script
                held.append(image)

    asyncio.run(main())


SHUFFLE = """
import os, random, shutil, sys
chance = random.Random(int(sys.argv[1]))
for _ in range(6):
    place = os.path.join(chance.choice(("a", "b", "tree", "tree/deep", "a/c")))
    kind = chance.choice(("file", "file", "directory", "remove", "link", "mode", "pipe"))
    parent = os.path.dirname(place) or "."
    if not os.path.isdir(parent) or os.path.islink(parent):
        continue
    if kind in ("remove", "file", "link", "pipe") and os.path.lexists(place):
        shutil.rmtree(place) if os.path.isdir(place) and not os.path.islink(place) else os.unlink(place)
    if kind == "directory" and not os.path.lexists(place):
        os.mkdir(place)
    if kind == "file":
        open(place, "w").write(str(chance.random()))
    if kind == "link":
        os.symlink("plain.txt", place)
    if kind == "pipe":
        os.mkfifo(place)
    if kind == "mode" and os.path.isfile(place):
        os.chmod(place, chance.choice((0o755, 0o600)))
"""  # noqa: E501 - a script
STATE = "find . -printf '%p %y %m %l\\n' | sort; find . -type f | sort | xargs cat | cksum"


def test_a_deep_stack_of_snapshots_is_flattened_and_shows_the_same(
    local_host: LocalHost, local_image: Image, tmp_path: Path
) -> None:
    empty = tuple(tmp_path / str(number) for number in range(26))
    for layer in empty:
        layer.mkdir()
        os.chown(layer, local_host.uid, local_host.gid)
    tall = replace(local_image, layers=(*local_image.layers, *empty))

    async def main() -> None:
        async with open_local(local_host, tall, SPEC) as sandbox:
            depths = []
            for number in range(10):
                command = ["python3", "-c", SHUFFLE, str(number)]
                result = await sandbox.exec(command, timeout=PATIENCE)
                assert result.exit_code == 0, result.output
                state, changes = await run(sandbox, STATE), await sandbox.changes("/workspace")
                image = await sandbox.snapshot()
                depths.append(len(image.layers) + len(image.frozen))
                assert await run(sandbox, STATE) == state
                assert await sandbox.changes("/workspace") == changes
            assert max(depths) == 32
            assert depths[-1] < 32, "each of the last was above what is flat"
            async with open_local(local_host, image, SPEC) as child:
                assert await run(child, STATE) == state
                assert await child.changes("/workspace") == changes

    asyncio.run(main())


def test_a_snapshot_is_gone_with_its_last_image_and_not_before(
    local_host: LocalHost, local_image: Image
) -> None:
    async def main() -> None:
        gc.collect()
        async with open_local(local_host, local_image, SPEC):
            pass
        descriptors = open_descriptors()
        before = kept(local_host)
        async with snapshot_of(local_host, local_image, "echo ready > prepared") as image:
            name = image.name
            assert local_host.snapshots.find(name) is image
            async with open_local(local_host, image, SPEC) as sandbox:
                again = await sandbox.snapshot()
        del image, sandbox
        gc.collect()
        with pytest.raises(SandboxError, match="there is no snapshot"):
            local_host.snapshots.find(name)
        async with open_local(local_host, again, SPEC) as sandbox:
            assert await run(sandbox, "cat prepared") == "ready\n"
        assert kept(local_host) == before + 2
        del again, sandbox
        gc.collect()
        # The keeper answers to another after it heard of the last.
        async with open_local(local_host, local_image, SPEC):
            assert kept(local_host) == before
        assert open_descriptors() == descriptors

    asyncio.run(main())


def test_what_is_frozen_counts_against_the_disk_limit(
    local_host: LocalHost, local_image: Image
) -> None:
    spec = SandboxSpec(image="fixture", disk_bytes=32 << 20)
    fill = "head -c 20M /dev/zero > {}"

    async def main() -> None:
        async with open_local(local_host, local_image, spec) as sandbox:
            await run(sandbox, fill.format("first"))
            image = await sandbox.snapshot()
            result = await sandbox.exec(fill.format("second"), timeout=PATIENCE)
            assert result.exit_code != 0
            assert "No space left" in result.output
        async with open_local(local_host, image, spec) as child:
            assert (await child.exec(fill.format("second"), timeout=PATIENCE)).exit_code != 0

    asyncio.run(main())


def test_a_snapshot_does_not_outlive_its_keeper(local_host: LocalHost, local_image: Image) -> None:
    async def main() -> None:
        async with open_local(local_host, local_image, SPEC) as sandbox:
            image = await sandbox.snapshot()
            os.kill(local_host.keeper().pid, signal.SIGKILL)
            with pytest.raises(SandboxDead):
                await sandbox.exec("sleep 100", timeout=100)
        with pytest.raises(SandboxError, match="is lost"):
            async with open_local(local_host, image, SPEC):
                pytest.fail("it opened")
        async with open_local(local_host, local_image, SPEC) as sandbox:
            assert await run(sandbox, "echo up") == "up\n"

    asyncio.run(main())
    assert_nothing_is_left(local_host, set())
