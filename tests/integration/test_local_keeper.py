"""The keeper of local sandboxes: whatever is killed, forked or cancelled, nothing is left."""

import asyncio
import contextlib
import gc
import os
import random
import shutil
import signal
import subprocess
import sys
import threading
import time
import warnings
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from gymsuite import Sandbox, SandboxDead, SandboxError, SandboxSpec
from gymsuite.sandbox import binary
from gymsuite.sandbox.image import Image
from gymsuite.sandbox.keepers import Keepers
from gymsuite.sandbox.local import LocalHost, LocalSandbox, open_local

from .processes import (
    PATIENCE,
    assert_cgroups_gone,
    assert_gone,
    assert_nothing_is_left,
    busy,
    cgroups_of,
    tree,
)

pytestmark = pytest.mark.local

SPEC = SandboxSpec(image="fixture")

OWNER = """
import asyncio, sys
from pathlib import Path
from gymsuite import SandboxSpec
from gymsuite.sandbox.image import Image
from gymsuite.sandbox.local import LocalHost, open_local

async def episode(host, image):
    while True:
        async with open_local(host, image, SandboxSpec(image="i")) as sandbox:
            await sandbox.exec("setsid sleep 1000 & echo > f", timeout=30)
            frozen = await sandbox.snapshot()
            async with open_local(host, frozen, SandboxSpec(image="i")) as child:
                await child.exec("setsid sleep 1000 & cat f", timeout=30)

async def main():
    host = LocalHost.probe(Path(sys.argv[1]))
    binds = tuple(map(Path, sys.argv[3].split(":")))
    image = Image("i", "", "host", tuple(map(Path, sys.argv[2].split(":"))), binds=binds)
    print("ready", flush=True)
    await asyncio.gather(*(episode(host, image) for _ in range(4)))

asyncio.run(main())
"""


@pytest.fixture
def own_host(local_host: LocalHost) -> Iterator[LocalHost]:
    """A host with a keeper of its own."""
    keepers = Keepers(binary.exec_server(), local_host.uid, local_host.gid, local_host.cgroups)
    yield replace(local_host, keepers=keepers)
    keepers.close()


async def echo(sandbox: Sandbox) -> bytes:
    return (await sandbox.exec("echo up", timeout=PATIENCE)).stdout


def test_a_controller_killed_at_any_moment_leaves_nothing(
    local_image: Image, tmp_path: Path
) -> None:
    layers, binds = (":".join(map(str, paths)) for paths in (local_image.layers, local_image.binds))
    command = [sys.executable, "-c", OWNER, str(tmp_path), layers, binds]
    chance = random.Random(4)
    for moment in range(20):
        with subprocess.Popen(command, stdout=subprocess.PIPE) as owner:
            assert owner.stdout is not None
            if moment:
                assert owner.stdout.readline() == b"ready\n"
            time.sleep(chance.uniform(0, 0.15))
            processes = tree(owner.pid)
            owner.kill()
        assert_gone(processes)
        assert_cgroups_gone(owner.pid)
        assert not list((tmp_path / "live").glob("*/*"))


def test_a_killed_keeper_takes_its_sandboxes_along_and_the_next_one_starts(
    own_host: LocalHost, local_image: Image
) -> None:
    processes: set[int] = set()

    async def victim() -> str:
        async with open_local(own_host, local_image, SPEC) as sandbox:
            processes.update(await busy(sandbox))
            with pytest.raises(SandboxDead) as error:
                await sandbox.exec("sleep 1000", timeout=1000)
            return error.value.reason

    async def main() -> None:
        victims = [asyncio.create_task(victim()) for _ in range(3)]
        while len(processes) < 3 * 4:  # noqa: ASYNC110 - the sandboxes tell nobody
            await asyncio.sleep(0.01)
        await asyncio.sleep(0.05)
        os.kill(own_host.keeper().pid, signal.SIGKILL)
        assert all("lost" in reason for reason in await asyncio.gather(*victims))
        async with open_local(own_host, local_image, SPEC) as sandbox:
            assert await echo(sandbox) == b"up\n"

    asyncio.run(main())
    assert_gone(processes)
    assert len(cgroups_of(os.getpid())) <= 2 * len(own_host.cgroups.parents), "one spare each"


@pytest.mark.parametrize("instead", [b"another version", None])
def test_a_program_that_is_replaced_in_mid_run_is_used_to_the_end(
    local_host: LocalHost, local_image: Image, tmp_path: Path, instead: bytes | None
) -> None:
    program = Path(shutil.copy(binary.exec_server(), tmp_path / "exec-server"))
    keepers = Keepers(program, local_host.uid, local_host.gid, local_host.cgroups)
    host = replace(local_host, keepers=keepers)

    def replaced() -> None:
        program.unlink()
        if instead is not None:
            program.write_bytes(instead)

    async def main() -> None:
        async with open_local(host, local_image, SPEC) as before:
            replaced()
            async with open_local(host, local_image, SPEC) as after:
                assert [await echo(before), await echo(after)] == [b"up\n"] * 2

    with contextlib.closing(keepers):
        asyncio.run(main())


def test_a_provider_that_was_closed_starts_nothing(tmp_path: Path, local_image: Image) -> None:
    host = LocalHost.probe(tmp_path)
    host.close()

    async def main() -> None:
        async with open_local(host, local_image, SPEC):
            pass

    with pytest.raises(SandboxError, match="was closed"):
        asyncio.run(main())


def test_a_keeper_that_stands_still_is_told_within_the_deadline(
    own_host: LocalHost, local_image: Image
) -> None:
    async def main() -> None:
        async with open_local(own_host, local_image, SPEC) as sandbox:
            assert isinstance(sandbox, LocalSandbox)
            os.kill(own_host.keeper().pid, signal.SIGSTOP)
            with pytest.raises(SandboxError, match=r"did not answer to 'upper' in 0\.2 seconds"):
                await sandbox._running.box.ask("upper", within=0.2)
            os.kill(own_host.keeper().pid, signal.SIGCONT)
            # The answer that nobody waited for is not taken for that to the next question.
            assert (await sandbox.changes("/workspace")).changed == ()
            assert await echo(sandbox) == b"up\n"

    asyncio.run(main())


def in_a_fork(body: Callable[[], Awaitable[bool]]) -> int:
    """Run a body in a forked process, as a trainer's worker is; return its id."""
    with warnings.catch_warnings():
        # Python warns of a fork beside threads, which is what trainers do all the same.
        warnings.simplefilter("ignore", DeprecationWarning)
        child = os.fork()
    if child == 0:
        fine = False
        try:
            fine = asyncio.run(_awaited(body))
        finally:
            os._exit(0 if fine else 1)
    return child


async def _awaited(body: Callable[[], Awaitable[bool]]) -> bool:
    return await body()


def test_a_forked_process_has_its_own_sandboxes_and_harms_no_other(
    local_host: LocalHost, local_image: Image
) -> None:
    async def main() -> None:
        async with open_local(local_host, local_image, SPEC) as sandbox:
            image = await sandbox.snapshot()
            keeper = local_host.keeper().pid

            async def child() -> bool:
                with pytest.raises(SandboxError, match="is lost"):
                    async with open_local(local_host, image, SPEC):
                        pass
                async with open_local(local_host, local_image, SPEC) as own:
                    return await echo(own) == b"up\n" and local_host.keeper().pid != keeper

            worker = in_a_fork(child)
            _, status = await asyncio.to_thread(os.waitpid, worker, 0)
            assert os.waitstatus_to_exitcode(status) == 0
            assert_cgroups_gone(worker)
            assert await echo(sandbox) == b"up\n"
            async with open_local(local_host, image, SPEC) as fork:
                assert await echo(fork) == b"up\n"
            assert local_host.keeper().pid == keeper

    asyncio.run(main())


def test_a_forked_process_that_ends_in_order_ends_nothing_of_its_parents(
    local_host: LocalHost, local_image: Image
) -> None:
    async def main() -> None:
        async with open_local(local_host, local_image, SPEC) as sandbox:

            async def child() -> bool:
                local_host.close()
                return True

            worker = in_a_fork(child)
            _, status = await asyncio.to_thread(os.waitpid, worker, 0)
            assert os.waitstatus_to_exitcode(status) == 0
            assert await echo(sandbox) == b"up\n"

    asyncio.run(main())


def test_a_sandbox_outlives_the_thread_that_opened_it(
    local_host: LocalHost, local_image: Image
) -> None:
    loop = asyncio.new_event_loop()
    opened: list[Sandbox] = []
    manager = open_local(local_host, local_image, SPEC)

    def open_it() -> None:
        opened.append(loop.run_until_complete(manager.__aenter__()))

    thread = threading.Thread(target=open_it)
    thread.start()
    thread.join()
    time.sleep(0.1)
    try:
        assert loop.run_until_complete(echo(opened[0])) == b"up\n"
    finally:
        loop.run_until_complete(manager.__aexit__(None, None, None))
        loop.close()
    assert_nothing_is_left(local_host, set())


def test_a_snapshot_is_opened_in_another_event_loop(
    local_host: LocalHost, local_image: Image
) -> None:
    async def prepare() -> Image:
        async with open_local(local_host, local_image, SPEC) as sandbox:
            await sandbox.write("prepared", b"ready\n")
            return await sandbox.snapshot()

    async def use(image: Image) -> bytes | None:
        async with open_local(local_host, image, SPEC) as sandbox:
            return await sandbox.read("prepared")

    assert asyncio.run(use(asyncio.run(prepare()))) == b"ready\n"


def test_cancelling_at_any_moment_leaves_nothing(local_host: LocalHost, local_image: Image) -> None:
    chance = random.Random(5)

    async def episode() -> None:
        async with open_local(local_host, local_image, SPEC) as sandbox:
            image = await sandbox.snapshot()
            async with open_local(local_host, image, SPEC) as child:
                await child.snapshot()

    async def five_at_once() -> None:
        tasks = [asyncio.create_task(episode()) for _ in range(5)]
        for task in tasks:
            await asyncio.sleep(chance.uniform(0, 0.02))
            task.cancel()
        ends = await asyncio.gather(*tasks, return_exceptions=True)
        assert all(end is None or isinstance(end, asyncio.CancelledError) for end in ends), ends

    async def main() -> None:
        for _ in range(5):
            await five_at_once()
        # The tasks' tracebacks hold images, and the event loop the tasks until it goes on.
        await asyncio.sleep(0)
        gc.collect()
        # The keeper has heard of all that was given up before it answers to another.
        async with open_local(local_host, local_image, SPEC):
            pass

    asyncio.run(main())
    assert_nothing_is_left(local_host, set())


def test_no_descriptor_is_left_open(local_host: LocalHost, local_image: Image) -> None:
    def open_now() -> int:
        return len(list(Path("/proc/self/fd").iterdir()))

    async def main() -> tuple[int, int]:
        async def one() -> None:
            async with open_local(local_host, local_image, SPEC) as sandbox:
                await sandbox.changes("/workspace")
                await sandbox.stats()

        await one()
        before = open_now()
        for _ in range(10):
            await asyncio.gather(one(), one(), one())
        return before, open_now()

    before, after = asyncio.run(main())
    assert before == after


def test_a_keeper_that_cannot_start_says_why(local_host: LocalHost, tmp_path: Path) -> None:
    broken = tmp_path / "server"
    broken.write_text("#!/bin/sh\necho no such luck >&2; exit 1\n")
    broken.chmod(0o755)
    keepers = Keepers(broken, local_host.uid, local_host.gid, local_host.cgroups)
    with pytest.raises(SandboxError, match="no such luck"):
        keepers.current()
    missing = Keepers(tmp_path / "none", local_host.uid, local_host.gid, local_host.cgroups)
    with pytest.raises(SandboxError, match="cannot start"):
        missing.current()
