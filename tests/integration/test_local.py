"""What the local provider promises about this machine: who runs there, and what it makes."""

import asyncio
import os
import subprocess
import sys
import threading
from dataclasses import replace
from pathlib import Path

import pytest

from gymsuite import SandboxError, SandboxSpec
from gymsuite.sandbox.image import Image
from gymsuite.sandbox.local import LocalHost, LocalSandbox, open_build, open_local
from gymsuite.sandbox.trees import Owner, settle

from .processes import PATIENCE, assert_nothing_is_left, busy, status

pytestmark = pytest.mark.local

SPEC = SandboxSpec(image="fixture")


def test_a_sandbox_belongs_to_an_unprivileged_user_of_the_host(
    local_host: LocalHost, local_image: Image
) -> None:
    own = Path("/proc/self/ns/user").readlink()

    def capabilities_here(pid: int) -> str:
        """What it may do to this machine, and not only to its own namespace."""
        elsewhere = Path(f"/proc/{pid}/ns/user").readlink() != own
        return "0" if elsewhere else status(pid, "CapEff")[0]

    async def main() -> list[tuple[set[str], set[str], str]]:
        async with open_local(local_host, local_image, SPEC) as sandbox:
            return [
                (set(status(pid, "Uid")), set(status(pid, "Gid")), capabilities_here(pid))
                for pid in await busy(sandbox)
            ]

    found = asyncio.run(main())
    assert local_host.uid != 0
    # The exec server is another than its commands, and no account's either.
    uids = {int(uid) for uids, _, _ in found for uid in uids}
    assert {uid for uid in uids if uid < 1_000_000_000} == {local_host.uid}
    assert {frozenset(gids) for _, gids, _ in found} == {frozenset({str(local_host.gid)})}
    assert {int(capabilities, 16) for _, _, capabilities in found} == {0}


def test_what_waits_for_a_sandboxs_end_has_no_capability_in_it(
    local_host: LocalHost, local_image: Image
) -> None:
    async def main() -> list[list[str]]:
        async with open_local(local_host, local_image, SPEC) as sandbox:
            assert isinstance(sandbox, LocalSandbox)
            await sandbox.exec("true", timeout=PATIENCE)
            kinds = ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb")
            return [status(sandbox.pid, kind) for kind in kinds]

    assert asyncio.run(main()) == [["0" * 16]] * 5


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


def test_root_gives_sandboxes_more_users_and_others_say_that_there_is_one(
    local_host: LocalHost, local_image: Image
) -> None:
    script = "id -u; id -g; echo > /tmp/f; rm /tmp/roots || chown 5 /tmp/f || echo > plain.txt"

    async def main() -> None:
        async with open_local(local_host, local_image, SPEC) as sandbox:
            if not local_host.users:
                with pytest.raises(SandboxError, match="cannot change users"):
                    await sandbox.exec("true", timeout=PATIENCE, user="1000")
                return
            await sandbox.exec("touch /tmp/roots", timeout=PATIENCE)
            result = await sandbox.exec(script, timeout=PATIENCE, user="1000")
            assert (result.stdout, result.exit_code) == (b"1000\n0\n", 2), result
            caps = "grep -E 'Cap(Prm|Eff|Bnd|Amb)' /proc/self/status; ls -ln /tmp/f"
            lines = (await sandbox.exec(caps, timeout=PATIENCE, user="1000")).output.splitlines()
            assert [int(line.split()[1], 16) for line in lines[:4]] == [0] * 4
            assert lines[4].split()[2:4] == ["1000", "0"], "no group is known of it"
            killed = await sandbox.exec("sleep 100", timeout=0.2, user="1000")
            assert killed.timed_out
            changes = await sandbox.changes("/tmp")  # noqa: S108 - inside
            assert "/tmp/f" in {  # noqa: S108 - inside
                change.path for change in changes.changed
            }

    asyncio.run(main())
    assert_nothing_is_left(local_host, set())


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


@pytest.mark.parametrize("name", ["proc", "dev"])
@pytest.mark.parametrize("target", ["/", "/var", None])
def test_an_image_cannot_say_where_the_kernels_files_are(
    local_host: LocalHost, local_image: Image, tmp_path: Path, name: str, target: str | None
) -> None:
    for directory in (tmp_path, tmp_path / "var"):
        directory.mkdir(exist_ok=True)
    if target is None:
        (tmp_path / name).touch()
    else:
        (tmp_path / name).symlink_to(target)
    settle(tmp_path, Owner(local_host.uid, local_host.gid))
    image = replace(local_image, layers=(*local_image.layers, tmp_path))

    async def main() -> None:
        async with open_local(local_host, image, SPEC):
            pytest.fail("it opened")

    with pytest.raises(SandboxError, match=f"cannot mount on /{name}: Not a directory"):
        asyncio.run(main())
    assert_nothing_is_left(local_host, set())


def test_what_is_hidden_may_lie_where_no_sandbox_can_look(
    local_host: LocalHost, local_image: Image, tmp_path: Path
) -> None:
    hidden = tmp_path / "closed/packages"
    hidden.mkdir(parents=True)
    (hidden / "secret").touch()
    tmp_path.chmod(0o755)
    hidden.parent.chmod(0o700)
    image = replace(local_image, binds=(*local_image.binds, tmp_path), hides=(hidden,))

    async def main() -> bytes:
        async with open_local(local_host, image, SPEC) as sandbox:
            listing = await sandbox.exec(f"cd {tmp_path} && find .", timeout=PATIENCE)
            return listing.stdout

    listed = asyncio.run(main()).split()
    assert b"./closed" in listed
    assert b"./closed/packages/secret" not in listed


LATER_MOUNT = """
import asyncio, subprocess, sys
from pathlib import Path
from gymsuite import SandboxSpec
from gymsuite.sandbox.image import Image
from gymsuite.sandbox.local import LocalHost, open_local

async def main(folder):
    shown, layer = folder / "shown", folder / "layer"
    for path in (shown / "below", layer):
        path.mkdir(parents=True)
    host = LocalHost.probe(folder / "cache")
    programs = filter(Path.exists, map(Path, ("/usr", "/bin", "/lib", "/lib64")))
    image = Image("i", "", "host", (layer,), binds=(*programs, shown))
    async with open_local(host, image, SandboxSpec(image="i")) as sandbox:
        subprocess.run(["mount", "-t", "tmpfs", "tmpfs", shown / "below"], check=True)
        (shown / "below/secret").touch()
        listed = await sandbox.exec(["/usr/bin/ls", str(shown), str(shown / "below")], timeout=30)
        print(listed.output)
    host.close()

asyncio.run(main(Path(sys.argv[1])))
"""


def test_what_this_machine_mounts_later_does_not_show_inside(tmp_path: Path) -> None:
    # An ordinary user makes mounts as root of a namespace.
    own = "-m" if os.geteuid() == 0 else "-Urm"
    command = ["unshare", own, "--propagation", "shared", sys.executable, "-c", LATER_MOUNT]
    done = subprocess.run([*command, tmp_path], capture_output=True, text=True, check=True)
    assert done.stdout.split() == [f"{tmp_path}/shown:", "below", f"{tmp_path}/shown/below:"]


def test_a_description_admits_what_is_not_enforced(
    local_host: LocalHost, local_image: Image
) -> None:
    spec = SandboxSpec(image="fixture", pids=99)
    controllers = local_host.cgroups.controllers
    memory = "memory" in controllers

    async def main() -> object:
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
            "memory_bytes": spec.memory_bytes if memory else None,
            "cpus": spec.cpus if "cpu" in controllers else None,
            "disk_bytes": spec.disk_bytes,
            "inodes": spec.inodes,
        },
        **({} if memory else {"per_process": {"memory_bytes": spec.memory_bytes}}),
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


def test_a_layer_of_deletions_hides_what_lies_below_it(
    local_host: LocalHost, local_image: Image
) -> None:
    async def main() -> bytes:
        script = "rm plain.txt; rm -r tree; mkdir tree; echo anew > tree/new.txt"
        async with open_build(local_host, local_image, env={}, network=False) as sandbox:
            assert (await sandbox.exec(script, timeout=PATIENCE)).exit_code == 0
            layers = (*local_image.layers, await sandbox.freeze())
            image = replace(local_image, layers=layers)
            async with open_local(local_host, image, SPEC) as next_sandbox:
                listing = await next_sandbox.exec("ls; ls tree", timeout=PATIENCE)
                assert (await next_sandbox.changes("/workspace")).changed == ()
                return listing.stdout

    names = b"binary.dat layered.txt link script.sh tree new.txt"
    assert asyncio.run(main()).split() == names.split()


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


def test_a_link_to_a_resolver_that_an_image_lacks_is_no_obstacle(
    local_host: LocalHost, local_image: Image, tmp_path: Path
) -> None:
    resolver = Path("/etc/resolv.conf")
    if not resolver.exists():
        pytest.skip("this machine has no resolver")
    (tmp_path / "etc").mkdir()
    (tmp_path / "etc/resolv.conf").symlink_to("../run/systemd/resolve/stub-resolv.conf")
    settle(tmp_path, Owner(local_host.uid, local_host.gid))
    image = replace(local_image, layers=(*local_image.layers, tmp_path))
    output, names = build(local_host, image, "cat /etc/resolv.conf", network=True)
    assert (output, names) == (resolver.read_bytes(), [])
