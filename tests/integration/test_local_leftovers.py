"""Nothing of a local sandbox stays: no process, no mount and no directory, however it ends."""

import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from gymsuite import SandboxSpec
from gymsuite.sandbox.image import Image
from gymsuite.sandbox.local import LocalHost, LocalSandbox, open_local
from gymsuite.sandbox.scratch import Scratches, remove_stale

from .processes import (
    PATIENCE,
    assert_cgroups_gone,
    assert_gone,
    assert_nothing_is_left,
    busy,
    tree,
)

pytestmark = pytest.mark.local

SPEC = SandboxSpec(image="fixture")


def test_nothing_is_left_after_a_sandbox_closed(local_host: LocalHost, local_image: Image) -> None:
    async def main() -> set[int]:
        async with open_local(local_host, local_image, SPEC) as sandbox:
            return await busy(sandbox)

    assert_nothing_is_left(local_host, asyncio.run(main()))


def test_nothing_is_left_after_an_exception(local_host: LocalHost, local_image: Image) -> None:
    processes: set[int] = set()

    async def main() -> None:
        async with open_local(local_host, local_image, SPEC) as sandbox:
            processes.update(await busy(sandbox))
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        asyncio.run(main())
    assert_nothing_is_left(local_host, processes)


def test_nothing_is_left_after_a_cancel_in_the_middle_of_a_command(
    local_host: LocalHost, local_image: Image
) -> None:
    processes: set[int] = set()

    async def episode() -> None:
        async with open_local(local_host, local_image, SPEC) as sandbox:
            processes.update(await busy(sandbox))
            await sandbox.exec("sleep 1000", timeout=1000)

    async def main() -> None:
        task = asyncio.create_task(episode())
        while not processes:  # noqa: ASYNC110 - the sandbox tells nobody
            await asyncio.sleep(0.01)
        await asyncio.sleep(0.05)
        task.cancel()
        await asyncio.sleep(0)
        # A second cancel, as an impatient caller sends it, does not stop the tidying.
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())
    assert_nothing_is_left(local_host, processes)


def test_a_cancel_while_it_closes_is_heard_after_everything_is_gone(
    local_host: LocalHost, local_image: Image
) -> None:
    processes: set[int] = set()

    async def episode(closing: asyncio.Event) -> None:
        async with open_local(local_host, local_image, SPEC) as sandbox:
            processes.update(await busy(sandbox))
            closing.set()

    async def main() -> None:
        closing = asyncio.Event()
        task = asyncio.create_task(episode(closing))
        await closing.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())
    assert_nothing_is_left(local_host, processes)


@pytest.mark.parametrize("delay", [0.0, 0.001, 0.003, 0.006, 0.01])
def test_nothing_is_left_after_a_cancel_while_it_opens(
    local_host: LocalHost, local_image: Image, delay: float
) -> None:
    async def episode() -> None:
        async with open_local(local_host, local_image, SPEC) as sandbox:
            await sandbox.exec("sleep 1000", timeout=1000)

    async def main() -> None:
        task = asyncio.create_task(episode())
        await asyncio.sleep(delay)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())
    assert_nothing_is_left(local_host, set())


def test_nothing_is_left_of_a_sandbox_that_was_killed(
    local_host: LocalHost, local_image: Image
) -> None:
    async def main() -> set[int]:
        async with open_local(local_host, local_image, SPEC) as sandbox:
            processes = await busy(sandbox)
            assert isinstance(sandbox, LocalSandbox)
            os.kill(sandbox.pid, signal.SIGKILL)
            return processes

    assert_nothing_is_left(local_host, asyncio.run(main()))


def test_a_sandbox_that_stands_still_is_ended_by_force(
    local_host: LocalHost, local_image: Image
) -> None:
    async def main() -> set[int]:
        async with open_local(local_host, local_image, SPEC) as sandbox:
            assert isinstance(sandbox, LocalSandbox)
            processes = await busy(sandbox)
            server = min(processes - {sandbox.pid})
            os.kill(server, signal.SIGSTOP)
            writing = asyncio.create_task(sandbox.write("large", bytes(20_000_000)))
            await asyncio.sleep(0.1)
            writing.cancel()
            return processes

    assert_nothing_is_left(local_host, asyncio.run(main()))


def test_what_an_agent_left_cannot_keep_its_directory(
    local_host: LocalHost, local_image: Image
) -> None:
    async def main() -> None:
        async with open_local(local_host, local_image, SPEC) as sandbox:
            script = "mkdir -p locked/in; touch locked/in/f; chmod 0 locked/in locked"
            await sandbox.exec(script, timeout=PATIENCE)
            # Deeper than any path that a system call takes, and than Python recurses.
            dig = "import os\nfor _ in range(1200): os.mkdir('dddd'); os.chdir('dddd')"
            result = await sandbox.exec(["python3", "-c", dig], timeout=PATIENCE)
            assert result.exit_code == 0, result.output

    asyncio.run(main())
    assert_nothing_is_left(local_host, set())


OWNER = """
import asyncio, os, sys, time
from pathlib import Path
from gymsuite import SandboxSpec
from gymsuite.sandbox.image import Image
from gymsuite.sandbox.local import LocalHost, open_local

async def main():
    host = LocalHost.probe(Path(sys.argv[1]))
    binds = tuple(map(Path, sys.argv[3].split(":")))
    image = Image("i", "", "host", tuple(map(Path, sys.argv[2].split(":"))), binds=binds)
    async with open_local(host, image, SandboxSpec(image="i")) as sandbox:
        await sandbox.exec("setsid sleep 1000 & touch f", timeout=30)
        # As a forked worker of a trainer does, it holds all of the owner's descriptors.
        heir = os.fork()
        if heir == 0:
            os.close(1)
            time.sleep(600)
            os._exit(0)
        print(heir, sandbox.pid, flush=True)
        await sandbox.exec("sleep 1000", timeout=1000)

asyncio.run(main())
"""


def test_an_owner_that_is_killed_leaves_nothing_whoever_holds_its_descriptors(
    local_image: Image, tmp_path: Path
) -> None:
    layers, binds = (":".join(map(str, paths)) for paths in (local_image.layers, local_image.binds))
    arguments = [sys.executable, "-c", OWNER, str(tmp_path), layers, binds]
    with subprocess.Popen(arguments, stdout=subprocess.PIPE) as owner:
        assert owner.stdout is not None
        heir, sandbox = map(int, owner.stdout.readline().split())
        processes = tree(sandbox)
        assert len(processes) >= 3
        owner.kill()
    assert_gone(processes)
    os.kill(heir, signal.SIGKILL)
    assert_gone({heir})
    assert_cgroups_gone(owner.pid)
    assert not (tmp_path / "live").exists()


def test_finding_out_what_a_machine_offers_makes_no_directory_that_a_kill_could_leave(
    tmp_path: Path,
) -> None:
    for _ in range(2):
        LocalHost.probe(tmp_path).close()
        assert [path.name for path in tmp_path.iterdir()] == ["trial"]


def test_the_directory_of_a_builder_that_was_killed_goes_when_the_next_one_starts(
    tmp_path: Path,
) -> None:
    script = (
        "import os, sys; from pathlib import Path; from gymsuite.sandbox.scratch import Scratches\n"
        "(Scratches(Path(sys.argv[1])).fresh() / 'f').touch(); os.kill(os.getpid(), 9)"
    )
    subprocess.run([sys.executable, "-c", script, str(tmp_path)], check=False)
    assert len(list(tmp_path.rglob("f"))) == 1
    remove_stale(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_the_directory_of_a_builder_that_lives_stays(tmp_path: Path) -> None:
    scratches = Scratches(tmp_path)
    directory = scratches.fresh()
    remove_stale(tmp_path)
    assert directory.is_dir()
    scratches.close()
    assert list(tmp_path.iterdir()) == []
