"""What the local provider promises about this machine: who runs there, and that nothing stays."""

import asyncio
import os
import signal
import subprocess
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path

import pytest

from gymsuite import Sandbox, SandboxError, SandboxSpec
from gymsuite.sandbox.image import Image
from gymsuite.sandbox.local import LocalHost, LocalSandbox, open_build, open_local
from gymsuite.sandbox.scratch import Scratch

pytestmark = pytest.mark.local

SPEC = SandboxSpec(image="fixture")
PATIENCE = 30.0


def parents() -> dict[int, int]:
    """Every process of the machine that is more than a zombie, and its parent."""
    found = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, parent = path.read_text().rpartition(")")[2].split()[:2]
        except OSError:
            continue
        if state != "Z":
            found[int(path.parent.name)] = int(parent)
    return found


def tree(root: int) -> set[int]:
    """A process and all that descends from it, now."""
    found, everyone = {root}, parents()
    while more := {pid for pid, parent in everyone.items() if parent in found} - found:
        found |= more
    return found


def status(pid: int, field: str) -> list[str]:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(line for line in lines if line.startswith(f"{field}:")).split()[1:]


def assert_nothing_is_left(host: LocalHost, processes: set[int]) -> None:
    assert list(host.scratch.path.iterdir()) == []
    deadline = time.monotonic() + PATIENCE
    while (left := processes & parents().keys()) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not left
    assert os.getpid() not in parents().values()
    assert str(host.scratch.path) not in Path("/proc/self/mountinfo").read_text()


async def busy(sandbox: Sandbox) -> set[int]:
    """Give the sandbox something to do, and return its processes."""
    assert isinstance(sandbox, LocalSandbox)
    await sandbox.exec("sleep 1000 & setsid sleep 1000 & mkdir d; echo > d/f", timeout=PATIENCE)
    processes = tree(sandbox.pid)
    assert len(processes) >= 4
    return processes


def test_a_sandbox_belongs_to_an_unprivileged_user_of_the_host(
    local_host: LocalHost, local_image: Image
) -> None:
    async def main() -> list[tuple[set[str], set[str], str]]:
        async with open_local(local_host, local_image, SPEC) as sandbox:
            return [
                (set(status(pid, "Uid")), set(status(pid, "Gid")), status(pid, "CapEff")[0])
                for pid in await busy(sandbox)
            ]

    found = asyncio.run(main())
    assert local_host.uid != 0
    assert {frozenset(uids) for uids, _, _ in found} == {frozenset({str(local_host.uid)})}
    assert {frozenset(gids) for _, gids, _ in found} == {frozenset({str(local_host.gid)})}
    assert {int(capabilities, 16) for _, _, capabilities in found} == {0}


def test_even_a_file_of_root_that_is_shown_inside_cannot_be_read(
    local_host: LocalHost, local_image: Image
) -> None:
    shadow = Path("/etc/shadow")
    if not shadow.is_file():
        pytest.skip("this machine has no shadow file")
    careless = replace(local_image, binds=(*local_image.binds, shadow))

    async def main() -> tuple[bytes, bytes]:
        async with open_local(local_host, careless, SPEC) as sandbox:
            return (await sandbox.exec("ls -l /etc/shadow; cat /etc/shadow", timeout=PATIENCE))[1:3]

    listed, complaint = asyncio.run(main())
    assert len(listed.splitlines()) == 1
    assert b"Permission denied" in complaint


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


def test_what_an_agent_left_cannot_keep_its_directory(
    local_host: LocalHost, local_image: Image
) -> None:
    async def main() -> None:
        async with open_local(local_host, local_image, SPEC) as sandbox:
            script = "mkdir -p locked/in; touch locked/in/f; chmod 0 locked/in locked"
            await sandbox.exec(script, timeout=PATIENCE)
            # Deeper than any path that a system call takes, and than Python recurses.
            dig = "import os\nfor _ in range(3000): os.mkdir('dddd'); os.chdir('dddd')"
            result = await sandbox.exec(["python3", "-c", dig], timeout=PATIENCE)
            assert result.exit_code == 0, result.output

    asyncio.run(main())
    assert_nothing_is_left(local_host, set())


OWNER = """
import asyncio, sys
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
        print(sandbox.pid, flush=True)
        await sandbox.exec("sleep 1000", timeout=1000)

asyncio.run(main())
"""


def test_an_owner_that_is_killed_leaves_no_process_and_its_directory_to_the_next(
    local_image: Image, tmp_path: Path
) -> None:
    layers, binds = (":".join(map(str, paths)) for paths in (local_image.layers, local_image.binds))
    arguments = [sys.executable, "-c", OWNER, str(tmp_path), layers, binds]
    with subprocess.Popen(arguments, stdout=subprocess.PIPE) as owner:
        assert owner.stdout is not None
        processes = tree(int(owner.stdout.readline()))
        assert len(processes) >= 3
        owner.kill()
    deadline = time.monotonic() + PATIENCE
    while (left := processes & parents().keys()) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not left
    live = tmp_path / "live"
    assert len(list(live.iterdir())) == 1
    scratch = Scratch.make(live)
    assert list(live.iterdir()) == [scratch.path]
    scratch.close()
    assert list(live.iterdir()) == []


def test_the_directory_of_an_owner_that_lives_stays(local_host: LocalHost) -> None:
    other = Scratch.make(local_host.scratch.path.parent)
    assert local_host.scratch.path.is_dir()
    other.close()


def test_sixty_four_sandboxes_live_at_once(local_host: LocalHost, local_image: Image) -> None:
    async def one(barrier: asyncio.Barrier) -> bytes:
        async with open_local(local_host, local_image, SPEC) as sandbox, asyncio.timeout(PATIENCE):
            await barrier.wait()
            return (await sandbox.exec("echo up", timeout=PATIENCE)).stdout

    async def main() -> list[bytes]:
        barrier = asyncio.Barrier(64)
        return await asyncio.gather(*(one(barrier) for _ in range(64)))

    threads = threading.active_count()
    assert asyncio.run(main()) == [b"up\n"] * 64
    assert threading.active_count() <= threads + 1, "no thread per sandbox"
    assert_nothing_is_left(local_host, set())


def test_sandboxes_opened_in_a_thread_work_there(local_host: LocalHost, local_image: Image) -> None:
    async def main() -> bytes:
        async with open_local(local_host, local_image, SPEC) as sandbox:
            await asyncio.sleep(0.1)
            return (await sandbox.exec("echo up", timeout=PATIENCE)).stdout

    results: list[bytes] = []
    thread = threading.Thread(target=lambda: results.append(asyncio.run(main())))
    thread.start()
    thread.join()
    assert results == [b"up\n"]
    assert_nothing_is_left(local_host, set())


def test_sandboxes_of_one_image_do_not_see_each_other(
    local_host: LocalHost, local_image: Image
) -> None:
    async def main() -> tuple[bytes | None, bytes | None]:
        async with (
            open_local(local_host, local_image, SPEC) as first,
            open_local(local_host, local_image, SPEC) as second,
        ):
            await first.write("plain.txt", b"changed\n")
            return await first.read("plain.txt"), await second.read("plain.txt")

    assert asyncio.run(main()) == (b"changed\n", b"plain\n")


def test_an_image_that_cannot_be_mounted_says_why_and_leaves_nothing(
    local_host: LocalHost, local_image: Image, tmp_path: Path
) -> None:
    broken = replace(local_image, layers=(tmp_path / "no-such-layer",))

    async def main() -> None:
        async with open_local(local_host, broken, SPEC):
            pytest.fail("it opened")

    with pytest.raises(SandboxError, match="no-such-layer"):
        asyncio.run(main())
    assert_nothing_is_left(local_host, set())


def test_a_description_admits_what_is_not_enforced(
    local_host: LocalHost, local_image: Image
) -> None:
    async def main() -> object:
        spec = SandboxSpec(image="fixture", pids=99)
        async with open_local(local_host, local_image, spec) as sandbox:
            return sandbox.description

    assert asyncio.run(main()) == {
        "provider": "local",
        "image": "fixture",
        "digest": local_image.digest,
        "base": "host",
        "python": local_image.python,
        "limits": {
            "network": "none",
            "pids": 99,
            "memory_bytes": None,
            "cpus": None,
            "disk_bytes": None,
        },
    }


def build(host: LocalHost, image: Image, script: str, *, network: bool) -> tuple[bytes, list[str]]:
    """Run a build step; return its output, and the names in its layer."""

    async def main() -> tuple[bytes, list[str]]:
        async with open_build(host, image, env={"STEP": "one"}, network=network) as sandbox:
            result = await sandbox.exec(script, timeout=PATIENCE)
            layer = await sandbox.freeze()
            names = sorted(str(path.relative_to(layer)) for path in layer.rglob("*"))
            return result.stdout, names

    return asyncio.run(main())


@pytest.mark.parametrize("network", [False, True])
def test_a_build_leaves_a_layer_of_just_what_its_step_made(
    local_host: LocalHost, local_image: Image, *, network: bool
) -> None:
    script = (
        "mkdir /opt/made; echo $STEP > /opt/made/file; ls /sys/class/net; tail -n +3 /proc/net/dev"
    )
    output, names = build(local_host, local_image, script, network=network)
    assert names == ["opt", "opt/made", "opt/made/file"]
    interfaces = {line.split(b":")[0].strip() for line in output.splitlines()}
    assert (interfaces == {b"lo"}) is not network or Path("/proc/net/dev").read_text().count(
        ":"
    ) == 1
    assert_nothing_is_left(local_host, set())


def test_a_build_with_the_network_has_the_resolver_of_the_host(
    local_host: LocalHost, local_image: Image
) -> None:
    resolver = Path("/etc/resolv.conf")
    if not resolver.exists():
        pytest.skip("this machine has no resolver")
    output, _ = build(local_host, local_image, "cat /etc/resolv.conf", network=True)
    assert output == resolver.read_bytes()
    without, _ = build(local_host, local_image, "cat /etc/resolv.conf", network=False)
    assert without == b""
